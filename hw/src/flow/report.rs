//! Reports of flows: resources by module, the clock and the slowest path, the bitstream, and netlist checks.

mod of_flow;
mod routed;
mod summary;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

pub use super::resources::{Cells, Resource};
pub(super) use of_flow::{bitstream, refusal};
pub use routed::Routed;

/// The report's file.
pub const REPORT: &str = "report.json";
/// The report as text for people.
pub const SUMMARY: &str = "summary.txt";

const NOT_ROUTED: &str = "not placed and routed";

/// A segment of a path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathStep {
    /// The hierarchical name of the signal.
    pub signal: String,
    /// Delay of the cells and wires that are named after the signal, ns.
    pub ns: f64,
}

/// An estimate of the result from the synthesized netlist, before routing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The fastest clock, MHz; `None` if the family's delays are unknown.
    pub fmax_mhz: Option<f64>,
    /// The slowest path from register to register.
    pub critical_path: Vec<PathStep>,
    /// Use of the part's resources.
    pub resources: Vec<Resource>,
}

/// Number of cells of a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModuleCells {
    /// Its hierarchical name; empty for the top module.
    pub module: String,
    /// Number of cells.
    #[serde(flatten)]
    pub cells: Cells,
}

/// A file's size and hash, as of the bitstream.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Bitstream {
    /// The file's name.
    pub file: String,
    /// Its size, bytes.
    pub bytes: u64,
    /// Its SHA-256, hexadecimal.
    pub sha256: String,
}

impl Bitstream {
    pub(super) fn of(file: &str, bytes: &[u8]) -> Bitstream {
        let sha256 = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Bitstream { file: file.into(), bytes: bytes.len() as u64, sha256 }
    }
}

/// The result of running programs on the design's sources and on a netlist, or on the bitstream read back, and
/// comparing them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
pub struct NetlistCheck {
    /// The netlist that was checked.
    pub netlist: String,
    /// The layer of a network that ran; `None` if the configuration does not support any.
    pub layer: Option<String>,
    /// Number of random programs that ran.
    pub programs: u64,
    /// Cycles of the core in all of them.
    pub cycles: u64,
    /// Seed of the first program.
    pub seed: u64,
    /// Run time on the netlist, seconds.
    pub seconds: f64,
    /// The difference from the sources; `None` if there is none.
    pub difference: Option<String>,
    /// Why nothing could be checked; `None` if programs ran.
    pub unchecked: Option<String>,
}

impl NetlistCheck {
    /// Returns whether any of the checks found a difference.
    pub fn any_differs(checks: &[NetlistCheck]) -> bool {
        checks.iter().any(|check| check.difference.is_some())
    }
}

/// The report of a flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The board.
    pub board: String,
    /// The part.
    pub device: String,
    /// The device name for `--device`, with PORT in place of the host's port.
    pub link: String,
    /// How to connect the board to the computer; `None` if a processor is the host.
    pub wiring: Option<String>,
    /// Name of the configuration.
    pub config: String,
    /// The configuration as `--hw` names it: a preset, or a file.
    pub hw: String,
    /// Hash of the configuration, hexadecimal.
    pub config_hash: String,
    /// Versions of the programs.
    pub tools: BTreeMap<String, String>,
    /// Number of cells after synthesis.
    pub cells: Cells,
    /// Number of cells by module.
    pub modules: Vec<ModuleCells>,
    /// Number of multiplier blocks planned for the core: those of gemm lanes that are not built of look-up tables, and
    /// those of the other units. `None` if the family's blocks cannot be planned. A netlist with another number has
    /// products that the plan does not cover.
    pub planned_multipliers: Option<u64>,
    /// The estimate before routing.
    pub estimate: Estimate,
    /// Use of the part's resources after routing; empty without routing.
    pub resources: Vec<Resource>,
    /// The clock of shell and core on the board, MHz.
    pub clock_mhz: f64,
    /// The clock that was asked for, MHz.
    pub wanted_mhz: f64,
    /// The fastest clock after routing, MHz.
    pub fmax_mhz: Option<f64>,
    /// Whether `fmax_mhz` is below `clock_mhz`.
    pub slow: bool,
    /// The slowest path from register to register after routing.
    pub critical_path: Vec<PathStep>,
    /// The router's seed.
    pub seed: u64,
    /// Peak rate at `clock_mhz`, in billions of operations a second; a multiply-accumulate is two operations.
    pub gops: f64,
    /// The bitstream; `None` if there is none.
    pub bitstream: Option<Bitstream>,
    /// Results of netlist checks; empty if none ran.
    pub checks: Vec<NetlistCheck>,
    /// Why the result was refused: too large for the part, or too slow. `None` if it was not.
    pub refused: Option<String>,
    /// Steps that were not done, with reasons.
    pub not_done: Vec<String>,
}

impl Report {
    /// Marks the design as too large for its part.
    pub(super) fn refuse_size(&mut self, reason: &str) {
        self.refused = Some(reason.into());
        self.not_done.retain(|line| !line.starts_with(NOT_ROUTED));
        self.not_done.insert(0, format!("{NOT_ROUTED}: the design is larger than the part"));
    }

    /// Marks the design as slower than was asked for.
    pub(super) fn refuse_clock(&mut self) {
        self.refused = Some(format!("{} (--allow-slow keeps a slow result)", self.clocks()));
        self.not_done.insert(0, "no bitstream: the design is slower than was asked for".into());
    }

    /// Compares the fastest clock with the one that was asked for.
    fn clocks(&self) -> String {
        let fastest = self.fmax_mhz.unwrap_or_default();
        format!("its fastest clock is {fastest:.1} MHz, but {:.1} MHz was asked for", self.wanted_mhz)
    }

    /// The report as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}
