//! Tilewright's driver crate.
