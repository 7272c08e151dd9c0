//! From a configuration and a board to a bitstream, with open tools.
//!
//! [`board`] reads a board's folder, [`family`] knows what each family of parts needs, [`tools`] finds the programs,
//! [`steps`] runs them once for each content of their inputs, [`report`] reads what they left. [`synthesize`] is their
//! table of contents.
//!
//! The board's shell comes from outside as Verilog text, because this crate knows no other.

pub mod board;
mod call;
mod checks;
mod child;
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
pub use outcome::Outcome;
pub use request::Request;
pub use synthesize::{synthesize, write_sources};
