//! Tilewright: a co-design toolkit for deep-learning accelerators.
//!
//! This library connects the workspace's crates: model file to artifact, artifact to results on a device. The
//! command-line program is a thin layer over it.
//!
//! | module | what it does |
//! |---|---|
//! | [`model`] | model files to artifacts, artifacts to results: import, compile, quantize, zoo, pictures, class names |
//! | [`device`] | devices that run programs: simulators and boards, by the names that `--device` accepts |
//! | [`examine`] | analyzes runs: comparison, bisection, dumps, traces, profiles, benchmarks |
//! | [`schedule`] | tensor expressions with a schedule, on the accelerator and checked |
//! | [`targets`] | what this build compiles for and runs on |
//! | [`message`] | texts of errors |
//! | [`flow`] | hardware to bitstreams: board shells and netlist checks |

pub mod device;
pub mod examine;
pub mod flow;
pub mod message;
pub mod model;
pub mod schedule;
pub mod targets;
pub mod text_table;
