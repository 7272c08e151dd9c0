//! Checks whether a netlist computes the same as the sources: runs the same programs on both, over the same link.
//!
//! The sources are Verilated as a virtual board. The synthesized netlist, the routed one and the bitstream, read back,
//! are simulated gate by gate, with models of their cells. If the board has an SDRAM, both use the same model of it.
//! The driver of real boards runs a layer of a network and random programs on each. Memory, cycles, retired
//! instructions and counters must be equal. Some programs have planted faults, so that traps are compared too.
//!
//! Memory on the board is mostly written and read directly in its model. Only a part goes over the line, because all of
//! it would take as long as hundreds of programs.

mod job;
mod layer;
#[cfg(test)]
mod tests;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tilewright_driver::link::{LinkDevice, LinkError, LinkOptions};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Command, Device, DeviceError, RunReport};
use tilewright_hw::flow::board::{Board, CoreMemory, HostLink};
use tilewright_hw::flow::design::TOP;
use tilewright_hw::flow::model::{MODEL, Stage, model};
use tilewright_hw::flow::report::NetlistCheck;
use tilewright_hw::flow::{FlowError, FlowOutcome, steps};
use tilewright_sim::board::{BoardDesign, SimulatedBoard, VirtualBoard};
use tilewright_sim::netlist::{self, Circuit, NetlistBoard, NetlistError};
use tilewright_sim::random::{FaultKind, MEMORY_BYTES, Program, series_with_faults};
use tilewright_sim::rtl;

pub use layer::LayerError;

use job::Job;

/// Approximate number of instructions per unit in a program.
const LENGTH: usize = 12;
/// Least cycle limit of a program.
const LEAST_LIMIT: u64 = 100_000;
/// Bytes of a command's changes that are read back over the line if memory is on the board.
const READ_BACK: u64 = 64;
/// One of this many programs has a planted fault.
const FAULT_EVERY: usize = 16;
/// Name of the clock port.
const CLOCK: &str = "clk";

/// Identifies this check: a hash of the code that runs and compares programs, and of the netlist simulator.
pub fn name() -> &'static str {
    static NAME: LazyLock<String> = LazyLock::new(|| {
        let mut sha = Sha256::new();
        sha.update(include_bytes!("netlist_check.rs"));
        sha.update(include_bytes!("netlist_check/job.rs"));
        sha.update(include_bytes!("netlist_check/layer.rs"));
        netlist::hash_sources(&mut sha);
        sha.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    });
    &NAME
}

/// Why a netlist could not be checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The netlist cannot be turned into a model.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// The model cannot be simulated.
    #[error(transparent)]
    Netlist(#[from] NetlistError),
    /// The sources' simulator cannot be built or failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The network's layer cannot be compiled.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// A simulated board does not answer.
    #[error("the {board} does not answer: {error}")]
    Link {
        /// Which board.
        board: &'static str,
        /// The link's error.
        error: LinkError,
    },
}

/// What to check.
pub struct CheckRequest<'a> {
    /// The board.
    pub board: &'a Board,
    /// The configuration.
    pub config: &'a HwConfig,
    /// The shell's Verilog.
    pub shell: &'a str,
    /// The requested clock in MHz. The line's speed follows from the clock that the part generates for it.
    pub mhz: f64,
    /// Number of random programs.
    pub programs: u64,
    /// Seed of the first program; the others follow from it.
    pub seed: u64,
}

/// Runs a layer and the programs on the sources and on every available netlist, one after another. Each result is
/// appended to `checks` as soon as it is known.
///
/// # Errors
/// [`CheckError`]. These cases are results, not errors: a difference; a netlist that does not answer, or that fails
/// although the sources do not; and a netlist that cannot be checked.
pub fn check(
    request: &CheckRequest,
    outcome: &FlowOutcome,
    cache: &Path,
    checks: &mut Vec<NetlistCheck>,
    tell: &mut dyn FnMut(steps::Progress),
    building: &dyn Fn(rtl::Progress),
) -> Result<(), CheckError> {
    let CheckRequest { board, config, shell, mhz, seed, .. } = *request;
    let unchecked = |stage: Stage, why: String| {
        let (netlist, unchecked) = (stage.name().into(), Some(why));
        NetlistCheck { netlist, seed, unchecked, ..NetlistCheck::default() }
    };
    if let Some(why) = cannot(board) {
        checks.extend(Stage::ALL.map(|stage| unchecked(stage, why.into())));
        return Ok(());
    }
    let clocks_per_bit = board.clocks_per_bit(mhz)?;
    let layer = layer::job(config, cache, seed)?;
    let name = layer.as_ref().map(|job| job.name.clone());
    let programs = programs(request).into_iter().enumerate().map(|(at, program)| Job::of_program(at, program));
    let mut jobs: Vec<Job> = layer.into_iter().chain(programs).collect();
    if let Some(why) = nothing(&jobs, config) {
        checks.extend(Stage::ALL.map(|stage| unchecked(stage, why.clone())));
        return Ok(());
    }
    let design = BoardDesign::of_board(board, config, shell, mhz)?;
    let mut runs: Vec<(ProgramResult, Job)> = Vec::new();
    for stage in Stage::ALL {
        let path = match model(board, stage, outcome, cache, tell) {
            Ok(None) => continue,
            Ok(Some(modeled)) => modeled.file(MODEL),
            Err(FlowError::Unfit { reason, .. }) => {
                checks.push(unchecked(stage, reason));
                continue;
            }
            Err(error @ FlowError::MissingTool { .. }) => {
                checks.push(unchecked(stage, error.to_string()));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        // The sources run only once there is a netlist to compare them with.
        if runs.is_empty() {
            let sources = VirtualBoard::new(&design, Some(cache.to_path_buf()), building)?;
            runs = of_sources(sources, config, std::mem::take(&mut jobs))?;
        }
        let text = std::fs::read(&path).map_err(|error| FlowError::Io { path, reason: error.to_string() })?;
        let circuit = Circuit::read(&text, TOP, CLOCK)?;
        let netlist = NetlistBoard::new(circuit, clocks_per_bit, design.clock_hz, design.chip())?;
        let compared = compare(stage.name(), netlist, config, &runs, tell);
        checks.push(NetlistCheck { layer: name.clone(), seed, ..compared });
    }
    Ok(())
}

/// Runs jobs on the design's sources.
fn of_sources<S: SimulatedBoard>(
    sources: S,
    config: &HwConfig,
    jobs: Vec<Job>,
) -> Result<Vec<(ProgramResult, Job)>, CheckError> {
    let mut sources = open(sources, config).map_err(|error| CheckError::Link { board: "design's sources", error })?;
    jobs.into_iter().map(|job| Ok((run(&mut sources, &job, None)?, job))).collect()
}

/// Runs on a netlist what ran on the sources, until the first difference.
fn compare<S: SimulatedBoard>(
    what: &'static str,
    netlist: S,
    config: &HwConfig,
    runs: &[(ProgramResult, Job)],
    tell: &mut dyn FnMut(steps::Progress),
) -> NetlistCheck {
    let begun = Instant::now();
    let mut check = NetlistCheck { netlist: what.into(), ..NetlistCheck::default() };
    match open(netlist, config) {
        Err(error) => check.difference = Some(format!("the netlist does not answer like a board: {error}")),
        Ok(mut device) => {
            for (at, (expected, job)) in runs.iter().enumerate() {
                tell(steps::Progress::Running { what, done: at, of: runs.len() });
                check.programs += u64::from(job.is_program);
                check.cycles += expected.report.cycles.unwrap_or(0);
                // A wrong netlist might never end.
                let limit = expected.report.cycles.map(|cycles| 2 * cycles + LEAST_LIMIT);
                let found = run(&mut device, job, limit);
                // The sources ran this without an error, so an error is the netlist's fault.
                let difference = match found {
                    Err(error) => Some(format!("the netlist fails, but the sources do not: {error}")),
                    Ok(found) => difference(expected, &found),
                };
                check.difference = difference.map(|what| format!("{}: {what}{}", job.name, job.text));
                if check.difference.is_some() {
                    break;
                }
            }
        }
    }
    check.seconds = begun.elapsed().as_secs_f64();
    check
}

/// Why no netlist of a board can be checked; none if they can be.
pub fn cannot(board: &Board) -> Option<&'static str> {
    match &board.host {
        HostLink::Processor { .. } => {
            Some("the core is a peripheral of the processor, but the check needs a serial line")
        }
        HostLink::Spi { .. } => Some("the board's link is SPI, but the check needs a serial line"),
        HostLink::Uart { .. } => match board.memory {
            CoreMemory::Block { kib } | CoreMemory::Spram { kib } if u64::from(kib) * 1024 < MEMORY_BYTES => {
                Some("its on-chip memory is smaller than what the programs need")
            }
            _ => None,
        },
    }
}

/// The reason if there is nothing to run.
fn nothing(jobs: &[Job], config: &HwConfig) -> Option<String> {
    let why =
        || format!("there is nothing to run: {} supports no layer of {}; give --programs", config.name, layer::NETWORK);
    jobs.is_empty().then(why)
}

/// The programs of a check: one series, which fills the memories once and includes programs that trap.
fn programs(request: &CheckRequest) -> Vec<Program> {
    let mut kinds = FaultKind::ALL.iter().copied().filter(|kind| kind.is_functional()).cycle();
    let (config, wanted) = (request.config, request.programs as usize);
    let members = series_with_faults(config, request.seed, LENGTH, wanted, FAULT_EVERY, &mut kinds);
    members.into_iter().map(|member| member.program).collect()
}

/// Result of a program.
struct ProgramResult {
    report: RunReport,
    memory: Vec<u8>,
    /// Hash of the contents of an SDRAM chip above `memory`.
    beyond: u64,
    /// Bytes read back over the line if memory is on the board.
    came: Vec<u8>,
}

fn open<S: SimulatedBoard>(stream: S, config: &HwConfig) -> Result<LinkDevice<S>, LinkError> {
    // A simulated board answers at once, and its time advances with its cycles.
    let options = LinkOptions {
        answer: Duration::from_millis(20),
        poll: Duration::from_millis(10),
        memory_bytes: Some(MEMORY_BYTES),
    };
    LinkDevice::open(stream, config.clone(), options)
}

fn run<S: SimulatedBoard>(
    device: &mut LinkDevice<S>,
    job: &Job,
    limit: Option<u64>,
) -> Result<ProgramResult, DeviceError> {
    let command = Command { cycle_limit: limit, ..job.command.clone() };
    let mut memory = vec![0; MEMORY_BYTES as usize];
    if device.stream_mut().sdram_mut().is_none() {
        for (addr, bytes) in &job.writes {
            device.write(*addr, bytes)?;
        }
        let report = device.run(&command)?;
        device.read(0, &mut memory)?;
        return Ok(ProgramResult { report, memory, beyond: 0, came: Vec::new() });
    }
    let held = |device: &mut LinkDevice<S>| -> Vec<u8> {
        device.stream_mut().sdram_mut().map_or_else(Vec::new, |chip| chip.bytes().to_vec())
    };
    for (at, (addr, bytes)) in job.writes.iter().enumerate() {
        match device.stream_mut().sdram_mut() {
            // The whole memory, before a program's stream. Over the line, each byte would take hundreds of clock
            // cycles.
            Some(chip) if at == 0 => {
                let addr = *addr as usize;
                chip.bytes_mut()[addr..addr + bytes.len()].copy_from_slice(bytes);
            }
            _ => device.write(*addr, bytes)?,
        }
    }
    let before = held(device);
    let report = device.run(&command)?;
    let after = held(device);
    let changed = before.iter().zip(&after).position(|(before, after)| before != after).unwrap_or(0);
    let reached = device.memory_bytes().saturating_sub(changed as u64);
    let mut came = vec![0; reached.min(READ_BACK) as usize];
    device.read(changed as u64, &mut came)?;
    let (near, far) = after.split_at(memory.len().min(after.len()));
    let mut hasher = DefaultHasher::new();
    far.hash(&mut hasher);
    Ok(ProgramResult { report, memory: near.to_vec(), beyond: hasher.finish(), came })
}

/// Describes the first difference between two runs of a program.
fn difference(expected: &ProgramResult, found: &ProgramResult) -> Option<String> {
    if expected.report != found.report {
        return Some(format!("the sources report {:?}, but the netlist {:?}", expected.report, found.report));
    }
    if let Some(at) = expected.memory.iter().zip(&found.memory).position(|(a, b)| a != b) {
        return Some(format!(
            "at address {at:#x} the sources leave {:#04x}, the netlist {:#04x}",
            expected.memory[at], found.memory[at]
        ));
    }
    let what = match (expected.beyond == found.beyond, expected.came == found.came) {
        (true, true) => return None,
        (false, _) => format!("beyond address {MEMORY_BYTES:#x}"),
        (true, false) => "where it is read over the line".into(),
    };
    Some(format!("the netlist leaves other bytes than the sources {what}"))
}
