//! Tilewright: a co-design toolkit for deep-learning accelerators.
//!
//! This library wires the workspace's crates together: model file to artifact, artifact to results on a device. The
//! command-line program is a thin layer over it.

pub mod bench;
pub mod bisect;
pub mod board;
pub mod classes;
pub mod clock;
pub mod compile;
pub mod devices;
pub mod diff;
pub mod dram;
pub mod dump;
pub mod explain;
pub mod export;
pub mod file_names;
pub mod inference;
pub mod layers;
pub mod levels;
pub mod measure;
pub mod model;
pub mod netlist_check;
pub mod picture;
pub mod profile;
pub mod quantize;
pub mod shapes;
pub mod stalls;
pub mod stream;
pub mod synth;
pub mod text_table;
pub mod trace;
pub mod values;
pub mod virtual_board;
pub mod zoo;
