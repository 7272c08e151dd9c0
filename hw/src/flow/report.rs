//! What a flow's result is: resources by module, the clock and what holds it back, the bitstream.

use super::family::{Family, Part};
use super::steps::{self, Done};
use super::tools::Tools;
use super::{FlowError, Request, design};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::Path;

/// The report's file.
pub const REPORT: &str = "report.json";
/// The report for people.
pub const SUMMARY: &str = "summary.txt";

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
}

impl Cells {
    fn add(&mut self, kind: &str, family: Family) {
        let cells = family.cells();
        let count = |kinds: &[(&str, u64)]| {
            let named = |name: &str| name.strip_suffix('*').map_or(name == kind, |begin| kind.starts_with(begin));
            kinds.iter().find(|(name, _)| named(name)).map_or(0, |(_, count)| *count)
        };
        self.luts += count(cells.lut);
        self.registers += count(cells.register);
        self.brams += count(cells.bram);
        self.dsps += count(cells.dsp);
    }
}

/// The cells of a synthesized design.
#[derive(Debug, Clone)]
pub struct Netlist {
    /// Kind and name of each cell, the latter after the signal that it makes.
    cells: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Design {
    modules: HashMap<String, Module>,
}

#[derive(Deserialize)]
struct Module {
    #[serde(default)]
    cells: BTreeMap<String, Cell>,
}

#[derive(Deserialize)]
struct Cell {
    r#type: String,
}

impl Netlist {
    /// Reads what synthesis wrote.
    ///
    /// # Errors
    /// [`FlowError::Io`], [`FlowError::Output`].
    pub fn read(path: &Path) -> Result<Netlist, FlowError> {
        let mut design: Design = read_json(path, "a netlist of Yosys")?;
        // One module is the design, the others are the family's cells.
        let tops = [design::TOP, crate::rtl::PERIPHERAL];
        let module = tops.iter().find_map(|top| design.modules.remove(*top)).ok_or_else(|| FlowError::Output {
            file: path.display().to_string(),
            what: "a netlist of Yosys",
            reason: format!("it has no module {}", tops.join(" or ")),
        })?;
        Ok(Netlist { cells: module.cells.into_iter().map(|(name, cell)| (cell.r#type, name)).collect() })
    }

    /// All cells.
    pub fn total(&self, family: Family) -> Cells {
        let mut total = Cells::default();
        self.cells.iter().for_each(|(kind, _)| total.add(kind, family));
        total
    }

    /// Cells by the module whose signals they make, down to so many levels.
    fn by_module(&self, family: Family, levels: usize) -> BTreeMap<String, Cells> {
        let mut modules: BTreeMap<String, Cells> = BTreeMap::new();
        for (kind, name) in &self.cells {
            let signal = signal(name);
            let path: Vec<&str> = signal.split('.').collect();
            let module = path[..path.len() - 1].iter().take(levels).copied().collect::<Vec<_>>().join(".");
            modules.entry(module).or_default().add(kind, family);
        }
        modules.retain(|_, cells| *cells != Cells::default());
        modules
    }
}

/// The signal of the sources after which a cell or net of a netlist is named: Yosys appends the cells on the way to it.
pub(super) fn signal(name: &str) -> &str {
    const CELLS: &[&str] = &[
        "_SB_",
        "_TRELLIS_",
        "_LUT4_",
        "_CCU2C_",
        "_PFUMX_",
        "_L6MUX21_",
        "_DP16KD_",
        "_PDPW16KD_",
        "_MULT18X18D_",
        "$",
    ];
    let end = CELLS.iter().filter_map(|cell| name.find(cell)).min().unwrap_or(name.len());
    &name[..end]
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

/// Programs that ran on the design's sources and on one of its netlists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NetlistCheck {
    /// Which netlist.
    pub netlist: String,
    /// Programs that ran.
    pub programs: u64,
    /// The core's cycles in them.
    pub cycles: u64,
    /// The first program's seed.
    pub seed: u64,
    /// How the netlist differs from the sources, if it does.
    pub difference: Option<String>,
}

/// A flow's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The board.
    pub board: String,
    /// The part.
    pub device: String,
    /// The configuration.
    pub config: String,
    /// Its hash, hexadecimal.
    pub config_hash: String,
    /// The programs' versions.
    pub tools: BTreeMap<String, String>,
    /// The synthesized cells.
    pub cells: Cells,
    /// The same by module.
    pub modules: Vec<ModuleCells>,
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
    /// What was not done, and why.
    pub not_done: Vec<String>,
}

/// Levels of the design by which cells are listed: board, shell, core, unit.
const LEVELS: usize = 4;

impl Report {
    pub(super) fn new(
        request: &Request,
        tools: &Tools,
        netlist: &Netlist,
        clock_mhz: f64,
        routed: Option<&Routed>,
        packed: Option<&Done>,
    ) -> Result<Report, FlowError> {
        let Request { board, config, .. } = request;
        let programs = [Some(&tools.yosys), tools.router.as_ref(), tools.packer.as_ref()];
        let bitstream = packed.map(|packed| bitstream(packed, board.family.bitstream_file())).transpose()?;
        let mut not_done = Vec::new();
        if routed.is_none() {
            not_done.push("not placed and routed: there is no open router for this family".into());
        }
        not_done.push("no power estimate: these tools give none".into());
        Ok(Report {
            board: board.name.clone(),
            device: board.device.clone(),
            config: config.name.clone(),
            config_hash: format!("{:016x}", config.hash()),
            tools: programs.into_iter().flatten().map(|tool| (tool.name.to_string(), tool.version.clone())).collect(),
            cells: netlist.total(board.family),
            modules: netlist
                .by_module(board.family, LEVELS)
                .into_iter()
                .map(|(module, cells)| ModuleCells { module, cells })
                .collect(),
            resources: routed.map_or(Vec::new(), |routed| {
                let used = routed.utilization.iter().filter(|(_, usage)| usage.used > 0);
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
            not_done,
        })
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
        for resource in &self.resources {
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
        let _ = writeln!(s, "\nclock {:.2} MHz, {:.2} GOPS", self.clock_mhz, self.gops);
        if let Some(fmax) = self.fmax_mhz {
            let _ = writeln!(s, "fastest clock {fmax:.2} MHz (seed {}); the slowest path:", self.seed);
            for step in &self.critical_path {
                let _ = writeln!(s, "  {:6.2} ns  {}", step.ns, step.signal);
            }
        }
        if let Some(bitstream) = &self.bitstream {
            let _ = writeln!(s, "\n{}: {} bytes", bitstream.file, bitstream.bytes);
        }
        for check in &self.checks {
            let NetlistCheck { netlist, programs, cycles, seed, .. } = check;
            let _ = match &check.difference {
                None => writeln!(s, "{netlist}: {programs} programs from seed {seed} as the sources, {cycles} cycles"),
                Some(difference) => {
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

/// Refuses a netlist that has more cells than the part.
///
/// # Errors
/// [`FlowError::Unfit`], with the numbers.
pub(super) fn check_fits(netlist: &Netlist, request: &Request) -> Result<(), FlowError> {
    let Request { board, config, .. } = request;
    let Some(&Part { luts, registers, brams, dsps, .. }) = board.family.part(&board.device) else { return Ok(()) };
    let used = netlist.total(board.family);
    let over: Vec<String> = [
        ("look-up tables", used.luts, luts),
        ("registers", used.registers, registers),
        ("block RAMs", used.brams, brams),
        ("multiplier blocks", used.dsps, dsps),
    ]
    .into_iter()
    .filter(|(_, used, available)| used > available)
    .map(|(what, used, available)| format!("{used} {what} of {available}"))
    .collect();
    if over.is_empty() {
        return Ok(());
    }
    let mut modules: Vec<(String, Cells)> = netlist.by_module(board.family, LEVELS).into_iter().collect();
    modules.sort_by_key(|(_, cells)| std::cmp::Reverse(cells.luts));
    let largest: Vec<String> = modules.iter().take(5).map(|(name, cells)| format!("{name} {}", cells.luts)).collect();
    Err(FlowError::Unfit {
        board: board.name.clone(),
        config: config.name.clone(),
        reason: format!("it takes {}; the most look-up tables take {}", over.join(" and "), largest.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_named_after_signals_of_the_sources() {
        assert_eq!(
            signal("u_shell.u_core.u_load.u_rows.left_q_SB_DFFE_Q_3_D_SB_LUT4_O"),
            "u_shell.u_core.u_load.u_rows.left_q"
        );
        assert_eq!(signal("u_core.u_gemm.sum_q_TRELLIS_FF_Q_1"), "u_core.u_gemm.sum_q");
        assert_eq!(signal("$abc$1234$auto$blifparse.cc:1"), "");
        assert_eq!(signal("clk"), "clk");
    }
}
