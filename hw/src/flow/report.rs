//! What a flow's result is: resources by module, the clock and what holds it back, the bitstream.

use super::board::Board;
use super::netlist::{Cells, Netlist, signal};
use super::steps::{self, Done};
use super::tools::Tools;
use super::{FlowError, Request, timing};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The report's file.
pub const REPORT: &str = "report.json";
/// The report for people.
pub const SUMMARY: &str = "summary.txt";

const NOT_ROUTED: &str = "not placed and routed";

/// Reads what a program wrote.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path, what: &'static str) -> Result<T, FlowError> {
    let bytes = std::fs::read(path).map_err(|error| FlowError::io(path, &error))?;
    let bad = |error: serde_json::Error| FlowError::Output {
        file: path.display().to_string(),
        what,
        reason: error.to_string(),
    };
    serde_json::from_slice(&bytes).map_err(bad)
}

/// What the router reports.
#[derive(Debug, Clone, Deserialize)]
pub struct Routed {
    #[serde(default)]
    critical_paths: Vec<Path_>,
    #[serde(default)]
    fmax: BTreeMap<String, Fmax>,
    #[serde(default)]
    utilization: BTreeMap<String, Utilization>,
}

#[derive(Debug, Clone, Deserialize)]
struct Path_ {
    #[serde(default)]
    from: String,
    #[serde(default)]
    to: String,
    path: Vec<Hop>,
}

#[derive(Debug, Clone, Deserialize)]
struct Hop {
    delay: f64,
    to: End,
    #[serde(default)]
    net: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct End {
    cell: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Fmax {
    achieved: f64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Utilization {
    available: u64,
    used: u64,
}

impl Routed {
    /// Reads what the router wrote.
    ///
    /// # Errors
    /// [`FlowError::Io`], [`FlowError::Output`].
    pub fn read(path: &Path) -> Result<Routed, FlowError> {
        read_json(path, "a report of nextpnr")
    }

    /// The fastest clock, MHz: that of the slowest domain.
    fn fmax(&self) -> Option<f64> {
        self.fmax.values().map(|fmax| fmax.achieved).reduce(f64::min)
    }

    /// The slowest path from register to register, by the signals of the sources on it.
    fn critical_path(&self) -> Vec<PathStep> {
        let delay = |path: &Path_| path.path.iter().map(|hop| hop.delay).sum::<f64>();
        let inside = self.critical_paths.iter().filter(|path| path.from == path.to);
        let Some(slowest) = inside.max_by(|a, b| delay(a).total_cmp(&delay(b))) else { return Vec::new() };
        let mut steps: Vec<PathStep> = Vec::new();
        for hop in &slowest.path {
            let signal = signal(hop.net.as_deref().unwrap_or(&hop.to.cell)).to_string();
            match steps.last_mut() {
                Some(last) if last.signal == signal || signal.is_empty() => last.ns += hop.delay,
                _ => steps.push(PathStep { signal, ns: hop.delay }),
            }
        }
        steps
    }
}

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

impl Estimate {
    /// Of a netlist on a board.
    pub fn of(netlist: &Netlist, board: &Board) -> Estimate {
        let longest = timing::longest_path(netlist, board);
        Estimate {
            fmax_mhz: longest.as_ref().map(|longest| 1000.0 / longest.ns),
            critical_path: longest.map_or(Vec::new(), |longest| longest.path),
            resources: netlist.resources(board),
        }
    }
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
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
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

/// A flow's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The board.
    pub board: String,
    /// The part.
    pub device: String,
    /// How a host reaches it, as `--device` takes it, with the port that only the host knows as PORT.
    pub link: String,
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
    /// What was expected before it was routed.
    pub estimate: Estimate,
    /// What is used of the part, once it is routed.
    pub resources: Vec<Resource>,
    /// The clock that shell and core run at on the board, MHz.
    pub clock_mhz: f64,
    /// The fastest clock, MHz, once it is routed.
    pub fmax_mhz: Option<f64>,
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
    /// Why the part cannot have it, where it cannot.
    pub refused: Option<String>,
    /// What was not done, and why.
    pub not_done: Vec<String>,
}

impl Report {
    pub(super) fn new(
        request: &Request,
        tools: &Tools,
        netlist: &Netlist,
        estimate: Estimate,
        clock_mhz: f64,
        routed: Option<&Routed>,
        packed: Option<&Done>,
    ) -> Result<Report, FlowError> {
        let Request { board, config, .. } = request;
        let programs = [Some(&tools.yosys), tools.router.as_ref(), tools.packer.as_ref()];
        let bitstream = packed.map(|packed| bitstream(packed, board.family.bitstream_file())).transpose()?;
        let mut not_done = Vec::new();
        if routed.is_none() {
            let why = match board.family.router() {
                Some(_) => "an estimate was asked for",
                None => "there is no open router for this family",
            };
            not_done.push(format!("{NOT_ROUTED}: {why}"));
        }
        not_done.push("no power estimate: these tools give none".into());
        Ok(Report {
            board: board.name.clone(),
            device: board.device.clone(),
            link: board.host.device(clock_mhz),
            config: config.name.clone(),
            hw: request.hw.into(),
            config_hash: format!("{:016x}", config.hash()),
            tools: programs.into_iter().flatten().map(|tool| (tool.name.to_string(), tool.version.clone())).collect(),
            cells: netlist.total(board.family),
            modules: netlist
                .by_module(board.family)
                .into_iter()
                .map(|(module, cells)| ModuleCells { module, cells })
                .collect(),
            estimate,
            resources: routed.map_or(Vec::new(), |routed| {
                // Kinds that the part has none of are the router's own helpers.
                let used = routed.utilization.iter().filter(|(_, usage)| usage.used > 0 && usage.available > 0);
                used.map(|(name, usage)| Resource { name: name.clone(), used: usage.used, available: usage.available })
                    .collect()
            }),
            clock_mhz,
            fmax_mhz: routed.and_then(Routed::fmax),
            critical_path: routed.map_or(Vec::new(), Routed::critical_path),
            seed: request.seed,
            gops: 2.0 * config.macs_per_cycle() as f64 * clock_mhz / 1e3,
            bitstream,
            checks: Vec::new(),
            refused: None,
            not_done,
        })
    }

    /// Marks it as that of a design that its part cannot have.
    pub(super) fn refuse(&mut self, reason: &str) {
        self.refused = Some(reason.into());
        self.not_done.retain(|line| !line.starts_with(NOT_ROUTED));
        self.not_done.insert(0, format!("{NOT_ROUTED}: it is larger than the part"));
    }

    /// Writes the report and its summary into a folder.
    ///
    /// # Errors
    /// [`FlowError::Io`].
    pub fn write(&self, dir: &Path) -> Result<(), FlowError> {
        steps::write(&dir.join(SUMMARY), self.summary().as_bytes())?;
        steps::write(&dir.join(REPORT), self.json().as_bytes())
    }

    /// The report as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// The report for people.
    pub fn summary(&self) -> String {
        let mut s = format!("{} on {} ({})\n\n", self.config, self.board, self.device);
        if let Some(reason) = &self.refused {
            let _ = writeln!(s, "REFUSED: {reason}\n");
        }
        let resources = if self.resources.is_empty() { &self.estimate.resources } else { &self.resources };
        for resource in resources {
            let percent = 100.0 * resource.used as f64 / resource.available.max(1) as f64;
            let _ =
                writeln!(s, "{:<18} {:>7} of {:>7}  {percent:5.1} %", resource.name, resource.used, resource.available);
        }
        let _ = writeln!(s, "\n{:<44} {:>7} {:>9} {:>9} {:>5}", "module", "LUTs", "registers", "block RAM", "DSP");
        for row in &self.modules {
            let name = if row.module.is_empty() { "(top)" } else { &row.module };
            let Cells { luts, registers, brams, dsps } = row.cells;
            let _ = writeln!(s, "{name:<44} {luts:>7} {registers:>9} {brams:>9} {dsps:>5}");
        }
        let Cells { luts, registers, brams, dsps } = self.cells;
        let _ = writeln!(s, "{:<44} {luts:>7} {registers:>9} {brams:>9} {dsps:>5}", "all");
        let _ = writeln!(s, "\nclock {:.2} MHz, {:.2} GOPS; --device {}", self.clock_mhz, self.gops, self.link);
        let path = match (self.fmax_mhz, self.estimate.fmax_mhz) {
            (Some(fmax), estimate) => {
                let _ = write!(s, "fastest clock {fmax:.2} MHz (seed {}", self.seed);
                if let Some(estimate) = estimate {
                    let _ = write!(s, "; {estimate:.1} were expected before routing");
                }
                s.push_str("); the slowest path:\n");
                &self.critical_path
            }
            (None, Some(estimate)) => {
                let _ = writeln!(s, "fastest clock {estimate:.1} MHz expected once it is routed; the slowest path:");
                &self.estimate.critical_path
            }
            (None, None) => &self.critical_path,
        };
        for step in path {
            let _ = writeln!(s, "  {:6.2} ns  {}", step.ns, step.signal);
        }
        if let Some(bitstream) = &self.bitstream {
            let _ = writeln!(s, "\n{}: {} bytes", bitstream.file, bitstream.bytes);
        }
        for check in &self.checks {
            let NetlistCheck { netlist, layer, programs, cycles, seed, .. } = check;
            let layer = layer.as_ref().map_or(String::new(), |layer| format!("{layer} and "));
            let _ = match (&check.unchecked, &check.difference) {
                (Some(why), _) => writeln!(s, "{netlist}: not checked: {why}"),
                (None, None) => writeln!(
                    s,
                    "{netlist}: {layer}{programs} programs from seed {seed} as the sources, {cycles} cycles in {:.0} s",
                    check.seconds
                ),
                (None, Some(difference)) => {
                    writeln!(s, "{netlist}: DIFFERS from the sources after {programs} programs: {difference}")
                }
            };
        }
        for reason in &self.not_done {
            let _ = writeln!(s, "{reason}");
        }
        s
    }
}

fn bitstream(packed: &Done, file: &str) -> Result<Bitstream, FlowError> {
    let path = packed.file(file);
    let bytes = std::fs::read(&path).map_err(|error| FlowError::io(&path, &error))?;
    Ok(Bitstream::of(file, &bytes))
}

/// Why a part cannot have a netlist that has more cells than it, with the numbers; nothing where it has as many.
pub(super) fn refusal(netlist: &Netlist, board: &Board) -> Option<String> {
    let over: Vec<String> = netlist
        .resources(board)
        .into_iter()
        .filter(|resource| resource.used > resource.available)
        .map(|Resource { name, used, available }| format!("{used} {name} of {available}"))
        .collect();
    if over.is_empty() {
        return None;
    }
    let mut modules: Vec<(String, Cells)> = netlist.by_module(board.family).into_iter().collect();
    modules.sort_by_key(|(_, cells)| std::cmp::Reverse(cells.luts));
    let largest: Vec<String> = modules.iter().take(5).map(|(name, cells)| format!("{name} {}", cells.luts)).collect();
    Some(format!("it takes {}; the most look-up tables take {}", over.join(" and "), largest.join(", ")))
}
