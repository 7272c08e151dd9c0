//! Whether a netlist computes what the sources say: the same programs on both, over the same link.
//!
//! The sources are Verilated as a virtual board; the synthesized netlist, the routed one and the bitstream, read back, are simulated
//! gate by gate, their cells replaced by their models. The driver that talks to real boards runs a layer of a network and
//! random programs on each; memory, cycles, retired instructions and counters must be equal. Programs with planted faults
//! are among them, so that traps are compared too.

mod layer;

use std::path::Path;
use std::time::{Duration, Instant};

use tilewright_driver::link::{LinkDevice, LinkError, LinkOptions};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Command, Device, DeviceError, RunReport};
use tilewright_hw::flow::board::{Board, Host, Memory};
use tilewright_hw::flow::design::{SHELL, TOP};
use tilewright_hw::flow::model::{MODEL, Stage, model};
use tilewright_hw::flow::report::NetlistCheck;
use tilewright_hw::flow::{FlowError, Outcome, steps};
use tilewright_hw::link::ByteStream;
use tilewright_sim::board::{BoardDesign, Line, VirtualBoard};
use tilewright_sim::netlist::{Circuit, NetlistBoard, NetlistError};
use tilewright_sim::random::{FaultKind, MEMORY_BYTES, Program, series_with_faults};
use tilewright_sim::rtl;

pub use layer::LayerError;

/// Instructions of a program of each unit, about.
const LENGTH: usize = 12;
/// Cycles that a program may take at the least.
const LEAST_LIMIT: u64 = 100_000;
/// Of so many programs one has a planted fault.
const FAULT_EVERY: usize = 16;
/// The clock's port.
const CLOCK: &str = "clk";

/// Why a netlist was not checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The netlist cannot be turned into a model.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// The model cannot be simulated.
    #[error(transparent)]
    Netlist(#[from] NetlistError),
    /// The sources' simulator cannot be built or fails.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The network's layer cannot be made.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// A simulated board does not answer.
    #[error("the {board} does not answer: {error}")]
    Link {
        /// Which board.
        board: &'static str,
        /// What was seen.
        error: LinkError,
    },
}

/// What a check is of.
pub struct Request<'a> {
    /// The board.
    pub board: &'a Board,
    /// The configuration.
    pub config: &'a HwConfig,
    /// The shell's Verilog.
    pub shell: &'a str,
    /// The clock that was asked for, MHz; from the one that the part makes for it follows the line's speed.
    pub mhz: f64,
    /// Programs to run.
    pub programs: u64,
    /// The first program's seed; the others' follow.
    pub seed: u64,
}

/// What runs: what is put into memory, and the command.
struct Job {
    /// Its name, and what else there is to say where a netlist differs.
    name: String,
    text: String,
    writes: Vec<(u64, Vec<u8>)>,
    command: Command,
}

impl Job {
    fn of_program(at: usize, program: Program) -> Job {
        let room = MEMORY_BYTES.saturating_sub(program.stream_addr) as usize;
        // Its own limit is one for memory beside the core, and here all bytes go over the line.
        let command = Command { cycle_limit: None, ..program.command() };
        let (text, stream_addr) = (program.text(), program.stream_addr);
        // A stream may pass the end of memory on purpose.
        let stream = program.stream[..program.stream.len().min(room)].to_vec();
        let writes = vec![(0, program.image), (stream_addr, stream)];
        Job { name: format!("program {}", at + 1), text: format!("\n{text}"), writes, command }
    }
}

/// Runs a layer and the programs on the sources and on every netlist that there is.
///
/// # Errors
/// [`CheckError`]. A difference is no error: it stands in the result, and so does why a netlist cannot be checked.
pub fn check(
    request: &Request,
    outcome: &Outcome,
    cache: &Path,
    tell: &mut dyn FnMut(steps::Progress),
    building: &dyn Fn(rtl::Progress),
) -> Result<Vec<NetlistCheck>, CheckError> {
    let Request { board, config, shell, mhz, .. } = *request;
    let mut checks: Vec<NetlistCheck> = Vec::new();
    let mut circuits = Vec::new();
    let mut unchecked = |stage: Stage, why: String| {
        let (netlist, seed, unchecked) = (stage.name().into(), request.seed, Some(why));
        checks.push(NetlistCheck { netlist, seed, unchecked, ..NetlistCheck::default() });
    };
    for stage in Stage::ALL {
        if let Some(why) = cannot(board) {
            unchecked(stage, why.into());
            continue;
        }
        match model(board, stage, outcome, cache, tell) {
            Ok(None) => {}
            Ok(Some(modelled)) => circuits.push((stage, modelled.file(MODEL))),
            Err(FlowError::Unfit { reason, .. }) => unchecked(stage, reason),
            Err(error @ FlowError::MissingTool { .. }) => unchecked(stage, error.to_string()),
            Err(error) => return Err(error.into()),
        }
    }
    if circuits.is_empty() {
        return Ok(checks);
    }
    let clocks_per_bit = board.clocks_per_bit(mhz)?;
    let sources = BoardDesign::of_shell(config, shell, SHELL, Line::Uart { clocks_per_bit });
    let clock_hz = sources.clock_hz;
    let sources = VirtualBoard::new(&sources, Some(cache.to_path_buf()), building)?;
    let mut sources = open("design's sources", sources, config)?;
    let layer = layer::job(config, cache, request.seed)?;
    let name = layer.as_ref().map(|job| job.name.clone());
    let programs = programs(request).into_iter().enumerate().map(|(at, program)| Job::of_program(at, program));
    let runs = layer.into_iter().chain(programs).map(|job| Ok((run(&mut sources, &job, None)?, job)));
    let runs: Vec<(Run, Job)> = runs.collect::<Result<_, CheckError>>()?;
    for (stage, path) in circuits {
        let text = std::fs::read(&path).map_err(|error| FlowError::Io { path, reason: error.to_string() })?;
        let netlist = NetlistBoard::new(Circuit::read(&text, TOP, CLOCK)?, clocks_per_bit, clock_hz)?;
        let begun = Instant::now();
        let mut device = open(stage.name(), netlist, config)?;
        let mut check = NetlistCheck { netlist: stage.name().into(), seed: request.seed, ..NetlistCheck::default() };
        check.layer.clone_from(&name);
        for (at, (expected, job)) in runs.iter().enumerate() {
            tell(steps::Progress::Running { what: stage.name(), done: at, of: runs.len() });
            check.programs += u64::from(Some(&job.name) != name.as_ref());
            check.cycles += expected.report.cycles.unwrap_or(0);
            // A netlist that is wrong may never end.
            let limit = expected.report.cycles.map(|cycles| 2 * cycles + LEAST_LIMIT);
            let found = match run(&mut device, job, limit) {
                Err(CheckError::Device(error @ DeviceError::CycleLimit { .. })) => {
                    check.difference = Some(format!("{}: the netlist does not end: {error}", job.name));
                    break;
                }
                found => found?,
            };
            check.difference = difference(expected, &found).map(|what| format!("{}: {what}{}", job.name, job.text));
            if check.difference.is_some() {
                break;
            }
        }
        check.seconds = begun.elapsed().as_secs_f64();
        checks.push(check);
    }
    Ok(checks)
}

/// Why no netlist of a board can be checked, if so.
fn cannot(board: &Board) -> Option<&'static str> {
    match (&board.host, &board.memory) {
        (Host::Processor { .. }, _) => {
            Some("the core is a processor's peripheral, and programs come over a serial line here")
        }
        (Host::Spi { .. }, _) => Some("the board's link is SPI, and programs come over a serial line here"),
        (_, Memory::Sdram(_)) => Some("there are no models of the cells at the pins of its SDRAM"),
        _ => None,
    }
}

/// The programs of a check: one series, which fills the memories once, and in it programs that trap.
fn programs(request: &Request) -> Vec<Program> {
    let mut kinds = FaultKind::ALL.iter().copied().filter(|kind| kind.is_functional()).cycle();
    let (config, wanted) = (request.config, request.programs as usize);
    let members = series_with_faults(config, request.seed, LENGTH, wanted, FAULT_EVERY, &mut kinds);
    members.into_iter().map(|member| member.program).collect()
}

/// What a program left.
struct Run {
    report: RunReport,
    memory: Vec<u8>,
}

fn open<S: ByteStream>(board: &'static str, stream: S, config: &HwConfig) -> Result<LinkDevice<S>, CheckError> {
    // A simulated board answers at once, and its time is that of its cycles.
    let options = LinkOptions {
        answer: Duration::from_millis(20),
        poll: Duration::from_millis(10),
        memory_bytes: Some(MEMORY_BYTES),
    };
    LinkDevice::open(stream, config.clone(), options).map_err(|error| CheckError::Link { board, error })
}

fn run(device: &mut dyn Device, job: &Job, limit: Option<u64>) -> Result<Run, CheckError> {
    for (addr, bytes) in &job.writes {
        device.write(*addr, bytes)?;
    }
    let command = Command { cycle_limit: limit, ..job.command.clone() };
    let report = device.run(&command)?;
    let mut memory = vec![0; MEMORY_BYTES as usize];
    device.read(0, &mut memory)?;
    Ok(Run { report, memory })
}

/// What two runs of a program differ in.
fn difference(expected: &Run, found: &Run) -> Option<String> {
    if expected.report != found.report {
        return Some(format!("the sources report {:?}, the netlist {:?}", expected.report, found.report));
    }
    let at = expected.memory.iter().zip(&found.memory).position(|(a, b)| a != b)?;
    Some(format!(
        "at address {at:#x} the sources leave {:#04x}, the netlist {:#04x}",
        expected.memory[at], found.memory[at]
    ))
}
