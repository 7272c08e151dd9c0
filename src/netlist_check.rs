//! Whether a netlist computes what the sources say: the same programs on both, over the same serial line.
//!
//! The sources and each netlist, its cells replaced by their models, are Verilated as virtual boards. The driver that talks to
//! real boards runs random programs on each; memory, cycles, retired instructions and counters must be equal. Programs with
//! planted faults are among them, so that traps are compared too.

use std::path::Path;
use std::time::Duration;

use tilewright_driver::link::{LinkDevice, LinkError, LinkOptions};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Command, Device, DeviceError, RunReport};
use tilewright_hw::flow::board::{Board, Memory};
use tilewright_hw::flow::design::{SHELL, TOP};
use tilewright_hw::flow::model::{Stage, model};
use tilewright_hw::flow::report::NetlistCheck;
use tilewright_hw::flow::{FlowError, Outcome, steps};
use tilewright_sim::board::{BoardDesign, VirtualBoard};
use tilewright_sim::random::{FaultKind, MEMORY_BYTES, Program, plant, series};
use tilewright_sim::rtl;

/// Instructions of a program of each unit, about.
const LENGTH: usize = 12;
/// Cycles that a program may take at the least.
const LEAST_LIMIT: u64 = 100_000;
/// Of so many programs one has a planted fault.
const FAULT_EVERY: usize = 16;

/// Why a netlist was not checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The netlist cannot be turned into a model.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// The simulator cannot be built or fails.
    #[error(transparent)]
    Device(#[from] DeviceError),
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
    /// The clock, MHz, from which the line's speed follows.
    pub mhz: f64,
    /// Programs to run.
    pub programs: u64,
    /// The first program's seed; the others' follow.
    pub seed: u64,
}

/// Runs the programs on the sources and on every netlist that there is.
///
/// # Errors
/// [`CheckError`]. A difference is no error: it stands in the result.
pub fn check(
    request: &Request,
    outcome: &Outcome,
    cache: &Path,
    tell: &mut dyn FnMut(steps::Progress),
    building: &dyn Fn(rtl::Progress),
) -> Result<Vec<NetlistCheck>, CheckError> {
    let Request { board, config, shell, mhz, .. } = *request;
    let clocks_per_bit = board.clocks_per_bit(mhz);
    let sources = BoardDesign::of_shell(config, shell, SHELL, clocks_per_bit);
    let sources = match &board.memory {
        Memory::Sdram(chip) => sources.with_sdram((**chip).clone(), mhz),
        _ => sources,
    };
    let mut expected = open("design's sources", &sources, config, cache, building)?;
    let runs = programs(request).into_iter().map(|program| Ok((run(&mut expected, &program, None)?, program)));
    let runs: Vec<(Run, Program)> = runs.collect::<Result<_, CheckError>>()?;
    let netlists = [(Stage::Synthesized, Some(&outcome.synthesized)), (Stage::Routed, outcome.routed.as_ref())];
    let mut checks = Vec::new();
    for (stage, from) in netlists.into_iter().filter_map(|(stage, from)| Some((stage, from?))) {
        let modelled = model(board.family, stage, &outcome.tools, from, cache, tell)?;
        let path = modelled.file(stage.file());
        let text = std::fs::read_to_string(&path)
            .map_err(|error| FlowError::Io { path: path.clone(), reason: error.to_string() })?;
        let design = BoardDesign {
            files: vec![(stage.file().to_string(), text)],
            top: TOP.into(),
            is_netlist: true,
            ..BoardDesign { files: Vec::new(), ..sources.clone() }
        };
        let mut device = open(stage.name(), &design, config, cache, building)?;
        let mut check =
            NetlistCheck { netlist: stage.name().into(), programs: 0, cycles: 0, seed: request.seed, difference: None };
        for (expected, program) in &runs {
            check.programs += 1;
            check.cycles += expected.report.cycles.unwrap_or(0);
            // A netlist that is wrong may never end.
            let limit = expected.report.cycles.map(|cycles| 2 * cycles + LEAST_LIMIT);
            let found = match run(&mut device, program, limit) {
                Err(CheckError::Device(error @ DeviceError::CycleLimit { .. })) => {
                    check.difference = Some(format!("program {}: the netlist does not end: {error}", check.programs));
                    break;
                }
                found => found?,
            };
            check.difference = difference(expected, &found)
                .map(|what| format!("program {}: {what}\n{}", check.programs, program.text()));
            if check.difference.is_some() {
                break;
            }
        }
        checks.push(check);
    }
    Ok(checks)
}

/// The programs of a check: series, which fill the memories once, and behind each a program that traps.
fn programs(request: &Request) -> Vec<Program> {
    let config = request.config;
    let mut kinds = FaultKind::ALL.iter().filter(|kind| kind.is_functional()).cycle();
    let wanted = request.programs as usize;
    let mut programs = Vec::with_capacity(wanted);
    while programs.len() < wanted {
        let seed = request.seed + programs.len() as u64;
        programs.extend(series(config, seed, LENGTH, (FAULT_EVERY - 1).min(wanted - programs.len())));
        if programs.len() < wanted {
            // Not every configuration can have every fault.
            let planted = kinds.by_ref().take(FaultKind::ALL.len()).find_map(|kind| plant(config, *kind, seed));
            programs.extend(planted.map(|planted| planted.program));
        }
    }
    programs
}

/// What a program left.
struct Run {
    report: RunReport,
    memory: Vec<u8>,
}

fn open(
    board: &'static str,
    design: &BoardDesign,
    config: &HwConfig,
    cache: &Path,
    building: &dyn Fn(rtl::Progress),
) -> Result<LinkDevice<VirtualBoard>, CheckError> {
    let stream = VirtualBoard::new(design, Some(cache.to_path_buf()), building)?;
    // A simulated board answers at once, and its time is that of its cycles.
    let options = LinkOptions {
        answer: Duration::from_millis(20),
        poll: Duration::from_millis(10),
        memory_bytes: Some(MEMORY_BYTES),
    };
    LinkDevice::open(stream, config.clone(), options).map_err(|error| CheckError::Link { board, error })
}

fn run(device: &mut LinkDevice<VirtualBoard>, program: &Program, limit: Option<u64>) -> Result<Run, CheckError> {
    // Memory beside the design is reached at once; over the line it would take most of the time.
    match device.stream_mut().sdram_mut() {
        Some(chip) => program.install_into(chip.bytes_mut()),
        None => program.install(device)?,
    }
    let report = device.run(&Command { cycle_limit: limit, ..program.command() })?;
    let mut memory = vec![0; MEMORY_BYTES as usize];
    match device.stream_mut().sdram_mut() {
        Some(chip) => memory.copy_from_slice(&chip.bytes()[..MEMORY_BYTES as usize]),
        None => device.read(0, &mut memory)?,
    }
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
