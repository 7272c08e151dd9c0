//! Tilewright's compiler crate.
