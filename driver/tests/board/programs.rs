//! Programs and their traps.

use super::{CLOCKS, board, config, device};
use tilewright_hw::HwConfig;
use tilewright_hw::config::Counters;
use tilewright_hw::device::{Command, Device, DeviceError, RunReport};
use tilewright_hw::isa::Unit;
use tilewright_sim::Fsim;
use tilewright_sim::random::{Expected, FaultKind, MEMORY_BYTES, Program, generate, plant};

/// Runs a program without a cycle limit, because the line takes most of the cycles.
pub fn run(device: &mut dyn Device, program: &Program) -> Result<RunReport, DeviceError> {
    program.install(device)?;
    device.run(&Command { cycle_limit: None, ..program.command() })
}

pub fn memory(device: &mut dyn Device) -> Vec<u8> {
    let mut bytes = vec![0; MEMORY_BYTES as usize];
    device.read(0, &mut bytes).expect("inside memory");
    bytes
}

#[test]
fn random_programs_give_what_the_functional_simulator_gives() {
    for (config, programs) in [(config(), 20), (HwConfig { counters: Counters::Causes, ..config() }, 2)] {
        let Some(board) = board(&config, CLOCKS) else { return };
        let mut device = device(board, &config);
        let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
        for seed in 0..programs {
            let program = generate(&config, seed, 12);
            let (expected, found) = (run(&mut fsim, &program).expect("a report"), run(&mut device, &program));
            let found = found.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(found.trap, None, "seed {seed}");
            assert_eq!((found.retired, found.macs), (expected.retired, expected.macs), "seed {seed}");
            assert!(memory(&mut device) == memory(&mut fsim), "seed {seed}\n{}", program.text());
            assert!(found.bytes.is_some_and(|(read, _)| read >= program.stream.len() as u64));
            for states in found.counters.iter().flat_map(|counters| &counters.0) {
                assert_eq!(Some(states.iter().sum()), found.cycles, "seed {seed}");
            }
            assert_eq!(found.counters.is_some(), config.counters == Counters::Causes);
        }
        assert_eq!(device.retries(), 0);
    }
}

#[test]
fn the_same_program_takes_the_same_cycles() {
    let config = config();
    let program = generate(&config, 7, 12);
    let mut runs = (0..2).map_while(|_| {
        let mut device = device(board(&config, CLOCKS)?, &config);
        Some([run(&mut device, &program).expect("a report"), run(&mut device, &program).expect("a report")])
    });
    let (first, second) = (runs.next(), runs.next());
    assert_eq!(first, second);
}

#[test]
fn traps_are_those_that_were_planted() {
    let config = config();
    let Some(board) = board(&config, CLOCKS) else { return };
    let mut device = device(board, &config);
    let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
    let kinds = [
        FaultKind::Opcode,
        FaultKind::Field,
        FaultKind::Scratchpad(Unit::Gemm),
        FaultKind::Limit(Unit::Store),
        FaultKind::Token,
        FaultKind::Bus(Unit::Load),
        FaultKind::Bus(Unit::Store),
        FaultKind::Fetch,
        FaultKind::Operands,
        FaultKind::Deadlock,
    ];
    let mut planted = 0;
    for (kind, seed) in kinds.into_iter().flat_map(|kind| [(kind, 1), (kind, 2)]) {
        let Some(fault) = plant(&config, kind, seed) else { continue };
        planted += 1;
        let report = run(&mut device, &fault.program).unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        let trap = report.trap.unwrap_or_else(|| panic!("{kind:?} does not trap"));
        let found = Expected { unit: trap.unit, cause: trap.cause, ordinal: trap.ordinal };
        assert_eq!(found, fault.expected, "{kind:?}, seed {seed}");
        // After the trap the board is as good as new.
        let program = generate(&config, seed, 4);
        for device in [&mut device as &mut dyn Device, &mut fsim] {
            run(device, &program).expect("a report");
        }
        assert!(memory(&mut device) == memory(&mut fsim), "after {kind:?}");
    }
    assert!(planted >= 14, "{planted} faults");
}

#[test]
fn a_command_that_takes_too_long_is_given_up() {
    let config = config();
    let Some(board) = board(&config, CLOCKS) else { return };
    let mut device = device(board, &config);
    let program = generate(&config, 3, 12);
    program.install(&mut device).expect("inside memory");
    let outcome = device.run(&Command { cycle_limit: Some(1000), ..program.command() });
    assert!(matches!(outcome, Err(DeviceError::CycleLimit { limit: 1000 })), "{outcome:?}");
    assert!(run(&mut device, &program).is_ok());
}
