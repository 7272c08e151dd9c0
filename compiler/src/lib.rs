//! Tilewright's compiler crate.

pub mod backend;
pub mod graph;
pub mod te;
pub mod tir;
