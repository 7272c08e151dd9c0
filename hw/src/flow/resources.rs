//! What designs take of parts, in numbers.

use serde::Serialize;

/// Cells of one kind of resource each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Cells {
    /// Look-up tables of four inputs, those of carry chains and distributed RAM included.
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

/// A resource of the part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resource {
    /// Its name, as the router has it.
    pub name: String,
    /// How much is used.
    pub used: u64,
    /// How much there is.
    pub available: u64,
}
