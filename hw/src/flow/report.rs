//! What a flow's result is: resources by module, the clock and what holds it back, the bitstream.

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
/// The report for people.
pub const SUMMARY: &str = "summary.txt";

const NOT_ROUTED: &str = "not placed and routed";

/// A part of the slowest path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathStep {
    /// The signal, by its place in the design.
    pub signal: String,
    /// The time that cells and wires named after it take, nanoseconds.
    pub ns: f64,
}

/// What a result is expected to be, said of the synthesized netlist before it is routed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The fastest clock, MHz; absent for families of which no delays are known.
    pub fmax_mhz: Option<f64>,
    /// The slowest path from register to register.
    pub critical_path: Vec<PathStep>,
    /// What is used of the part.
    pub resources: Vec<Resource>,
}

/// What a module takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModuleCells {
    /// Its place in the design; empty for the top module.
    pub module: String,
    /// Its cells.
    #[serde(flatten)]
    pub cells: Cells,
}

/// The bitstream.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Bitstream {
    /// Its file.
    pub file: String,
    /// Its bytes.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: String,
}

impl Bitstream {
    pub(super) fn of(file: &str, bytes: &[u8]) -> Bitstream {
        let sha256 = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Bitstream { file: file.into(), bytes: bytes.len() as u64, sha256 }
    }
}

/// Programs that ran on the design's sources and on one of its netlists, or on its bitstream read back.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
pub struct NetlistCheck {
    /// Which netlist.
    pub netlist: String,
    /// The layer of a network that ran, where the configuration takes one.
    pub layer: Option<String>,
    /// Random programs that ran.
    pub programs: u64,
    /// The core's cycles in all of them.
    pub cycles: u64,
    /// The first program's seed.
    pub seed: u64,
    /// Seconds that they took on the netlist.
    pub seconds: f64,
    /// How the netlist differs from the sources, if it does.
    pub difference: Option<String>,
    /// Why nothing ran, if nothing did.
    pub unchecked: Option<String>,
}

impl NetlistCheck {
    /// Whether one of the checks saw a difference.
    pub fn any_differs(checks: &[NetlistCheck]) -> bool {
        checks.iter().any(|check| check.difference.is_some())
    }
}

/// A flow's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The board.
    pub board: String,
    /// The part.
    pub device: String,
    /// How a host reaches it, as `--device` takes it, with the port that only the host knows as PORT.
    pub link: String,
    /// How a person joins the board to the computer, where no processor is the host.
    pub wiring: Option<String>,
    /// The configuration.
    pub config: String,
    /// How `--hw` names it: a preset, or a file.
    pub hw: String,
    /// Its hash, hexadecimal.
    pub config_hash: String,
    /// The programs' versions.
    pub tools: BTreeMap<String, String>,
    /// The synthesized cells.
    pub cells: Cells,
    /// The same by module.
    pub modules: Vec<ModuleCells>,
    /// The multiplier blocks that the core was planned to take, where the family's blocks are counted: those of gemm's
    /// lanes that are not built of tables, and of the other units. A netlist with others has products that the plan
    /// does not know.
    pub planned_multipliers: Option<u64>,
    /// What was expected before it was routed.
    pub estimate: Estimate,
    /// What is used of the part, once it is routed.
    pub resources: Vec<Resource>,
    /// The clock that shell and core run at on the board, MHz.
    pub clock_mhz: f64,
    /// The clock that was asked for, MHz.
    pub wanted_mhz: f64,
    /// The fastest clock, MHz, once it is routed.
    pub fmax_mhz: Option<f64>,
    /// Whether that is slower than its clock, which is the one that was asked for or the nearest below it that the part
    /// makes.
    pub slow: bool,
    /// The slowest path from register to register.
    pub critical_path: Vec<PathStep>,
    /// The router's seed.
    pub seed: u64,
    /// Multiply-accumulates a second at `clock_mhz`, in billions of operations, each product and each sum one.
    pub gops: f64,
    /// The bitstream, once it is packed.
    pub bitstream: Option<Bitstream>,
    /// Whether the netlists compute what the sources say, where that was looked at.
    pub checks: Vec<NetlistCheck>,
    /// Why it is no result, where it is none: the part cannot have it, or it is slower than was asked for.
    pub refused: Option<String>,
    /// What was not done, and why.
    pub not_done: Vec<String>,
}

impl Report {
    /// Marks it as that of a design that its part cannot have.
    pub(super) fn refuse_size(&mut self, reason: &str) {
        self.refused = Some(reason.into());
        self.not_done.retain(|line| !line.starts_with(NOT_ROUTED));
        self.not_done.insert(0, format!("{NOT_ROUTED}: it is larger than the part"));
    }

    /// Marks it as that of a design that is slower than was asked for.
    pub(super) fn refuse_clock(&mut self) {
        self.refused = Some(format!("{}, and a slow result was not asked for (--allow-slow)", self.clocks()));
        self.not_done.insert(0, "no bitstream: it is slower than was asked for".into());
    }

    /// What it reaches beside what it was to reach.
    fn clocks(&self) -> String {
        let fastest = self.fmax_mhz.unwrap_or_default();
        format!("its fastest clock is {fastest:.1} MHz, {:.1} were asked for", self.wanted_mhz)
    }

    /// The report as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}
