//! A remote device gives what the device itself gives.

use std::sync::Arc;

use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::{Command, Device, DeviceError, RunReport};
use tilewright_sim::random::{FaultKind, Program, generate, plant};
use tilewright_sim::{Csim, CsimOptions};

use super::*;

/// Everything that a program leaves.
#[derive(Debug, PartialEq)]
struct Left {
    outcome: Result<RunReport, String>,
    memory: Vec<u8>,
    scratchpads: Vec<Vec<u8>>,
}

fn run(device: &mut dyn Device, program: &Program) -> Result<Left, DeviceError> {
    program.install(device)?;
    let outcome = device.run(&program.command()).map_err(|error| error.to_string());
    let mut memory = vec![0; tilewright_sim::random::MEMORY_BYTES as usize];
    device.read(0, &mut memory)?;
    let config = device.config().clone();
    let scratchpads = Mem::ALL.iter().map(|mem| device.scratchpad(*mem, 0, config.entries(*mem)));
    let scratchpads = scratchpads.collect::<Result<_, _>>()?;
    Ok(Left { outcome, memory, scratchpads })
}

#[test]
fn random_programs_leave_the_same_bytes_cycles_spans_and_traps() {
    let (mut traps, mut spans, mut errors) = (0, 0, 0);
    for (preset, seeds) in [("1x4x4", 0..6), ("1x16x16", 6..9)] {
        let mut config = HwConfig::load(preset).expect("is a preset");
        config.host.memory_mib = small().host.memory_mib;
        let running = start(loopback(), simulator(&config, true, Arc::default()));
        for seed in seeds {
            for strict in [false, true] {
                let asked = Asked { strict, spans: true, max_cycles: Some(2_000_000) };
                let options = CsimOptions { strict, spans: true, ..CsimOptions::default() };
                let mut local =
                    Csim::new(config.clone(), config.memory_bytes(), options).with_cycle_limit(Some(2_000_000));
                let mut remote = open(&running, &config, asked).expect("a device");
                assert_eq!(remote.memory_bytes(), local.memory_bytes());
                let mut programs = vec![generate(&config, seed, 40)];
                let kinds = FaultKind::ALL.iter().skip(seed as usize % 3).step_by(3);
                programs.extend(kinds.filter_map(|kind| plant(&config, *kind, seed)).map(|planted| planted.program));
                for program in &programs {
                    let wanted = run(&mut local, program).expect("it runs");
                    let found = run(&mut remote, program).expect("it runs");
                    assert_eq!(found, wanted, "{preset}, seed {seed}");
                    match &wanted.outcome {
                        Ok(report) => {
                            traps += usize::from(report.trap.is_some());
                            spans += report.spans.len();
                        }
                        Err(_) => errors += 1,
                    }
                }
            }
        }
    }
    assert!(traps > 10 && spans > 1000 && errors > 0, "{traps} traps, {spans} spans, {errors} errors");
}

#[test]
fn commands_are_queued_and_their_reports_taken_in_any_order() {
    let config = small();
    let running = start(loopback(), simulator(&config, true, Arc::default()));
    let mut device = open(&running, &config, Asked::default()).expect("a device");
    let program = generate(&config, 3, 30);
    program.install(&mut device).expect("it is written");
    let tickets: Vec<_> = (0..3).map(|_| device.submit(&program.command()).expect("it is queued")).collect();
    let reports: Vec<_> = tickets.iter().rev().map(|ticket| device.wait(*ticket).expect("a report")).collect();
    assert!(reports.iter().all(|report| report.cycles.is_some_and(|cycles| cycles > 100)));
    assert!(matches!(device.wait(tickets[0]), Err(DeviceError::UnknownTicket(_))));
}

#[test]
fn errors_are_those_of_the_device_and_come_with_the_next_answer() {
    let running = functional();
    let mut device = plain(&running);
    let size = device.memory_bytes();
    let text = |error: DeviceError| error.to_string();
    let outside = format!("2 bytes at address {:#x} pass the end of device memory ({size:#x} bytes)", size - 1);
    assert_eq!(device.write(size - 1, &[1, 2]).map_err(text), Err(outside.clone()));
    assert_eq!(device.read(size - 1, &mut [0; 2]).map_err(text), Err(outside));
    let misaligned = Command { stream_addr: 8, ..Command::default() };
    assert!(matches!(device.submit(&misaligned), Err(DeviceError::Misaligned { addr: 8 })));
    assert!(device.scratchpad(Mem::Inp, u32::MAX, 2).is_err());
    // The session goes on.
    device.write(64, &[7; 5000]).expect("it is written");
    let mut back = [0; 5000];
    device.read(64, &mut back).expect("it is read");
    assert_eq!(back, [7; 5000]);
}

#[test]
fn large_data_cross_in_pieces() {
    let running = functional();
    let mut device = plain(&running);
    let data: Vec<u8> = (0..5_000_001u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut back = vec![0; data.len()];
    device.write(3, &data).expect("it is written");
    device.read(3, &mut back).expect("it is read");
    assert!(back == data);
    device.read(0, &mut []).expect("nothing is read");
}
