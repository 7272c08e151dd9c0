//! Tilewright's compiler crate.

pub mod graph;
