//! Synthesis, place and route, and bitstreams with open tools, from a configuration and a board.
//!
//! [`synthesize`] runs the whole flow:
//! - [`board`] reads the folder of a board, [`family`] describes each family of parts.
//! - [`design`] writes the sources, [`tools`] finds the programs, [`steps`] runs each program and caches its results by
//!   their inputs.
//! - [`netlist`] and [`timing`] estimate the result after synthesis, [`report`] describes it, [`model`] makes netlists
//!   that can be simulated.
//! - [`flash`] loads the bitstream onto the board.
//!
//! The caller passes the board's shell as Verilog text, because this crate depends on no other crate of the workspace.
//! The files below import each other along a line, without cycles; a test holds that.

pub mod board;
mod call;
mod checks;
pub mod clock;
pub mod design;
mod error;
pub mod family;
mod files;
pub mod flash;
mod leftovers;
pub mod model;
mod multipliers;
pub mod netlist;
mod outcome;
mod port_pin;
mod progress;
pub mod reach;
pub mod report;
mod request;
mod resources;
mod routed;
pub mod sdram;
pub mod steps;
mod synthesize;
pub mod timing;
pub mod tools;
mod usage;
mod zynq;

pub use checks::RandomPrograms;
pub use error::FlowError;
pub use outcome::FlowOutcome;
pub use request::FlowRequest;
pub use synthesize::{synthesize, write_sources};
