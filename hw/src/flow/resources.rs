//! Numbers of cells and of a part's resources.

use serde::Serialize;

/// Number of cells by kind of resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Cells {
    /// Look-up tables of four inputs (AMD's have six), including those of carry chains and distributed RAM.
    pub luts: u64,
    /// Registers.
    pub registers: u64,
    /// Block RAMs.
    pub brams: u64,
    /// Multiplier blocks.
    pub dsps: u64,
    /// Single-port RAMs.
    pub sprams: u64,
}

/// Use of a resource of the part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resource {
    /// The name, as the router reports it.
    pub name: String,
    /// How many are used.
    pub used: u64,
    /// How many the part has.
    pub available: u64,
}
