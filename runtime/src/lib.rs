//! Tilewright's runtime crate.
