//! Delays of a family's cells and wires.

use crate::flow::netlist::Kept;

/// The delays of a family at its fastest speed grade, ns.
pub struct Delays {
    /// A wire to one sink.
    pub wire: f64,
    /// What a wire takes more for each doubling of its sinks.
    pub doubling: f64,
    /// Cells next to a register, if the register's data are their only sink.
    pub before_register: &'static [&'static str],
    /// The kinds of cells. The first that fits a cell counts.
    pub cells: &'static [CellDelay],
}

/// The delays of a kind of cells, ns. Ports are named without the numbers of their bits, and `"*"` is any port not
/// listed before it.
pub struct CellDelay {
    /// The kind; with a `*` at the end, all kinds that begin so.
    pub kind: &'static str,
    /// Inputs of a register: the time before the clock's edge.
    pub setup: &'static [PortDelay],
    /// Outputs of a register: the time after the clock's edge.
    pub launch: &'static [PortDelay],
    /// From an input to an output without a register between them.
    pub through: &'static [ThroughDelay],
    /// Inputs that a neighboring cell drives without a wire.
    pub direct: &'static [&'static str],
    /// What a cell of the kind must keep in registers of its own at the least.
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
