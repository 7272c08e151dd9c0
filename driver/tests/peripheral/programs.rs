//! Programs, and what they do on the bus.

use std::time::Duration;

use super::{axi, config, configs, device, options};
use tilewright_driver::peripheral::PeripheralDevice;
use tilewright_hw::config::Counters;
use tilewright_hw::device::{Base, Command, Device, DeviceError, RunReport};
use tilewright_hw::host::Registers;
use tilewright_hw::isa::{Unit, encode, parse_program};
use tilewright_hw::peripheral::Peripheral;
use tilewright_hw::regs;
use tilewright_sim::Fsim;
use tilewright_sim::axi::{Axi, AxiOptions, Traffic};
use tilewright_sim::random::{Expected, FaultKind, MEMORY_BYTES, Program, generate, plant};

pub fn run(device: &mut dyn Device, program: &Program) -> Result<RunReport, DeviceError> {
    program.install(device)?;
    device.run(&program.command())
}

pub fn memory(device: &mut dyn Device) -> Vec<u8> {
    let mut bytes = vec![0; MEMORY_BYTES as usize];
    device.read(0, &mut bytes).expect("inside memory");
    bytes
}

#[test]
fn random_programs_give_what_the_functional_simulator_gives() {
    for config in configs() {
        let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
        for (pressure, programs) in [(0, 4), (4, 12), (11, 6)] {
            let surroundings = AxiOptions { pressure, seed: pressure.into(), ..options(&config) };
            let Some(axi) = axi(&config, &surroundings) else { return };
            let mut device = device(axi, &config);
            for seed in 0..programs {
                let seed = seed + 100 * u64::from(pressure);
                let program = generate(&config, seed, 24);
                let (expected, found) = (run(&mut fsim, &program).expect("a report"), run(&mut device, &program));
                let what = format!("{}, pressure {pressure}, seed {seed}", config.name);
                let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(found.trap, None, "{what}");
                assert_eq!((found.retired, found.macs), (expected.retired, expected.macs), "{what}");
                assert!(memory(&mut device) == memory(&mut fsim), "{what}\n{}", program.text());
                for states in found.counters.iter().flat_map(|counters| &counters.0) {
                    assert_eq!(Some(states.iter().sum()), found.cycles, "{what}");
                }
                assert_eq!(found.counters.is_some(), config.counters == Counters::Causes, "{what}");
                assert!(device.peripheral().is_idle(), "{what}: something is under way behind the end");
            }
            assert_eq!((device.interrupts().came, device.interrupts().missed), (programs, 0));
            let Traffic { read_bursts, write_bursts, held, interleaved, early, errors } = device.peripheral().traffic();
            assert!(read_bursts > 100 && write_bursts > 100, "{read_bursts} reads, {write_bursts} writes");
            // The conditions to be tested did occur.
            assert_eq!(pressure > 0, held > 0 && early > 0, "{held} cycles held, {early} beats early");
            assert!(interleaved > 0 || pressure == 0, "no beat came between those of another read");
            assert_eq!(errors, 0);
        }
    }
}

#[test]
fn traps_are_those_that_were_planted() {
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
    for config in configs() {
        let Some(axi) = axi(&config, &AxiOptions { pressure: 5, seed: 3, ..options(&config) }) else { return };
        let mut device = device(axi, &config);
        let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
        let (mut planted, mut errors) = (0, 0);
        for (kind, seed) in kinds.into_iter().flat_map(|kind| [(kind, 1), (kind, 2)]) {
            let Some(fault) = plant(&config, kind, seed) else { continue };
            planted += 1;
            let report = run(&mut device, &fault.program).unwrap_or_else(|error| panic!("{kind:?}: {error}"));
            let trap = report.trap.unwrap_or_else(|| panic!("{kind:?} does not trap"));
            let found = Expected { unit: trap.unit, cause: trap.cause, ordinal: trap.ordinal };
            assert_eq!(found, fault.expected, "{kind:?}, seed {seed}");
            let answered = device.peripheral().traffic().errors;
            let of_bus = matches!(kind, FaultKind::Bus(_) | FaultKind::Fetch);
            assert_eq!(answered > errors, of_bus, "{kind:?}, seed {seed}");
            errors = answered;
            // After the trap the core is as good as new.
            let program = generate(&config, seed, 4);
            for device in [&mut device as &mut dyn Device, &mut fsim] {
                assert_eq!(run(device, &program).expect("a report").trap, None);
            }
            assert!(memory(&mut device) == memory(&mut fsim), "after {kind:?}");
        }
        assert!(planted >= 14, "{planted} faults");
    }
}

/// Writes a command that copies bytes into the device's memory.
fn copy(device: &mut PeripheralDevice<Axi>, at: u64, from: u64, to: u64) -> Command {
    let config = device.config().clone();
    let text =
        format!("load mem=out row_bytes=8 offset={from} push=store\nstore mem=out row_bytes=8 offset={to} pop=load");
    let insns = parse_program(&text).expect("a program");
    let stream: Vec<u8> = insns.iter().flat_map(|insn| encode(insn, &config).expect("fits")).collect();
    device.write(at, &stream).expect("inside memory");
    Command { stream_addr: at, insns: 2, bases: vec![Base { addr: 0, limit: 0x1000 }], cycle_limit: None }
}

#[test]
fn commands_run_one_after_the_other_and_the_first_at_once() {
    let config = config();
    let Some(axi) = axi(&config, &options(&config)) else { return };
    let mut device = device(axi, &config);
    device.write(0, b"12345678").expect("inside memory");
    // Each reads what the one before wrote.
    let commands: Vec<Command> =
        (0..3).map(|link| copy(&mut device, 0x2000 + 0x100 * link, 0x100 * link, 0x100 * (link + 1))).collect();
    let busy = |device: &mut PeripheralDevice<Axi>| {
        device.peripheral_mut().read_reg(regs::STATUS).expect("an answer") & regs::STATUS_BUSY != 0
    };
    assert!(!busy(&mut device));
    let tickets: Vec<_> = commands.iter().map(|command| device.submit(command).expect("a ticket")).collect();
    assert!(busy(&mut device), "nobody has waited yet");
    let early = device.poll(tickets[2], Duration::ZERO).expect("no error");
    assert_eq!(early, None, "it has just begun");
    // The second command's report does not exist before the first has ended.
    for ticket in [tickets[1], tickets[2], tickets[0]] {
        assert_eq!(device.wait(ticket).expect("a report").retired, [1, 0, 0, 1]);
        assert!(matches!(device.wait(ticket), Err(DeviceError::UnknownTicket(_))));
    }
    let mut last = [0; 8];
    device.read(0x300, &mut last).expect("inside memory");
    assert_eq!(&last, b"12345678");
}

#[test]
fn what_passes_the_end_of_the_buffer_is_refused() {
    let config = config();
    let Some(axi) = axi(&config, &options(&config)) else { return };
    let mut device = device(axi, &config);
    let end = device.memory_bytes();
    let fits = copy(&mut device, 0x2000, 0, 0x100);
    assert!(device.run(&Command { bases: vec![Base { addr: end - 0x1000, limit: 0x1000 }], ..fits.clone() }).is_ok());
    for wrong in [
        Command { bases: vec![Base { addr: end - 0xfff, limit: 0x1000 }], ..fits.clone() },
        Command { bases: vec![Base { addr: 0, limit: 0x1000 }, Base { addr: end, limit: 1 }], ..fits.clone() },
        Command { stream_addr: end - 32, ..fits.clone() },
    ] {
        let outcome = device.run(&wrong);
        assert!(matches!(outcome, Err(DeviceError::OutOfMemory { .. })), "{outcome:?}");
    }
    assert!(matches!(device.write(end - 3, &[0; 4]), Err(DeviceError::OutOfMemory { .. })));
    assert!(matches!(device.read(end, &mut [0]), Err(DeviceError::OutOfMemory { .. })));
    assert!(device.peripheral_mut().read_buffer(end, &mut [0]).is_err());
    assert!(device.run(&fits).is_ok());
}
