//! Tilewright's sim crate.
