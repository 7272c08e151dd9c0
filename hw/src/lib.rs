//! Tilewright's hardware: configuration, instruction set, integer arithmetic, the device contract, and the RTL.
//!
//! This crate knows no other crate of the workspace.

pub mod num;
