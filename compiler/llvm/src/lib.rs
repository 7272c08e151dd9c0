//! Tilewright's llvm crate.
