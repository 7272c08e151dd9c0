//! Delays of a family's cells and wires.

use crate::flow::netlist::Kept;

/// The delays of a family at its fastest speed grade, ns.
pub struct Delays {
    /// A wire to one sink.
    pub wire: f64,
    /// The additional delay for each doubling of a wire's sinks.
    pub doubling: f64,
    /// Kinds of cells that are placed next to a register, without a wire, if the register's data input is their only
    /// sink.
    pub before_register: &'static [&'static str],
    /// The kinds of cells. For a cell, the first entry that matches it counts.
    pub cells: &'static [CellDelay],
}

/// The delays of a kind of cells, ns.
///
/// Ports are named without the numbers of their bits. `"*"` is any port that no earlier entry names.
pub struct CellDelay {
    /// The kind. With `*` at the end, it matches all kinds with this prefix.
    pub kind: &'static str,
    /// Setup times of inputs before the clock's edge.
    pub setup: &'static [PortDelay],
    /// Delays of outputs after the clock's edge.
    pub launch: &'static [PortDelay],
    /// Delays from inputs to outputs without a register between them.
    pub through: &'static [ThroughDelay],
    /// Inputs that a neighboring cell drives directly, without a wire.
    pub direct: &'static [&'static str],
    /// The entry matches only cells that keep at least these values in their own registers.
    pub kept: Kept,
}

/// The delay of a port.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PortDelay {
    pub port: &'static str,
    pub ns: f64,
}

/// The delay between two ports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThroughDelay {
    pub from: &'static str,
    pub to: &'static str,
    pub ns: f64,
}

/// A kind of cells without delays.
pub const fn cell(kind: &'static str) -> CellDelay {
    CellDelay { kind, setup: &[], launch: &[], through: &[], direct: &[], kept: Kept::Nothing }
}

/// The delay of a port.
pub const fn at(port: &'static str, ns: f64) -> PortDelay {
    PortDelay { port, ns }
}

/// The delay from a port to another.
pub const fn through(from: &'static str, to: &'static str, ns: f64) -> ThroughDelay {
    ThroughDelay { from, to, ns }
}
