//! Memory on the board in an SDRAM chip, whose simulation ends with an error if the design breaks one of its rules.

use super::programs::run;
use super::{CLOCKS, OPTIONS, config, device};
use std::time::Duration;
use tilewright_driver::link::{LinkDevice, LinkOptions};
use tilewright_hw::device::{Base, Command, Device, DeviceError, RunReport};
use tilewright_hw::flow::board::{self, Board};
use tilewright_hw::flow::sdram::Sdram;
use tilewright_hw::isa::{encode, parse_program};
use tilewright_hw::link::MemorySide;
use tilewright_hw::{HwConfig, Mem};
use tilewright_shell::{ShellConfig, ShellLink, ShellMemory};
use tilewright_sim::Fsim;
use tilewright_sim::board::{BoardDesign, SimulatedBoard, VirtualBoard};
use tilewright_sim::random::{MEMORY_BYTES, Program, generate};

/// The clock of the boards, MHz.
const MHZ: f64 = 50.0;

fn chip(board: &str) -> Sdram {
    match Board::load(board).expect("it is there").memory {
        board::CoreMemory::Sdram(chip) => *chip,
        other => panic!("{board} has {other:?}"),
    }
}

/// A board with a chip, whose shell keeps another chip's times: the whole design, from its top module on.
fn with_times_of(config: &HwConfig, chip: &Sdram, kept: &Sdram) -> Option<VirtualBoard> {
    if !tilewright_testing::has_program("verilator") {
        return None;
    }
    let cycles = kept.cycles(MHZ).expect("they go together");
    let memory = ShellMemory::Sdram { geometry: chip.geometry(), cycles };
    let mut around = Board::load("ulx3s-85f").expect("it is there");
    let leds = around.leds.pins.len() as u32;
    let shell = ShellConfig { host: ShellLink::Uart { clocks_per_bit: CLOCKS }, memory, leds };
    let verilog = tilewright_shell::generate(config, &shell).expect("a shell");
    let memory = board::CoreMemory::Sdram(Box::new(chip.clone()));
    let baud = (MHZ * 1e6) as u32 / CLOCKS;
    let reach = around.host.reach().expect("it has a link");
    let host = board::HostLink::Uart { rx: "A1".into(), tx: "A2".into(), baud, reach: reach.clone() };
    (around.memory, around.host, around.core_mhz) = (memory, host, MHZ);
    let design = BoardDesign::of_board(&around, config, &verilog, MHZ).expect("a design");
    Some(VirtualBoard::new(&design, None, &|_| {}).expect("the design builds"))
}

fn board(config: &HwConfig, chip: &Sdram) -> Option<VirtualBoard> {
    with_times_of(config, chip, chip)
}

/// The small configuration with a wider bus and addresses that pass the chip's end.
fn wide() -> HwConfig {
    HwConfig { bus_bits: 64, offset_bits: 32, ..config() }
}

#[test]
fn the_link_tells_the_size_and_carries_bytes_there_and_back() {
    for (config, name) in [(config(), "ulx3s-85f"), (wide(), "colorlight-i5")] {
        let chip = chip(name);
        let Some(board) = board(&config, &chip) else { return };
        let mut device = device(board, &config);
        assert_eq!(device.identity().hello.memory, MemorySide::on_board(chip.geometry().bytes()));
        // The small configuration's addresses reach 1 MiB of it.
        let size = chip.geometry().bytes().min(1 << config.offset_bits);
        assert_eq!(device.memory_bytes(), size);
        assert!(matches!(device.write(size, &[0]), Err(DeviceError::OutOfMemory { .. })));
        // Ends inside beats and words keep the bytes next to the range.
        device.write(0x3e0, &[0xee; 256]).expect("inside memory");
        let bytes: Vec<u8> = (0..201).collect();
        device.write(0x3e7, &bytes).expect("inside memory");
        let mut found = vec![0; 256];
        device.read(0x3e0, &mut found).expect("inside memory");
        assert_eq!(found, [&[0xee; 7][..], &bytes, &[0xee; 48]].concat());
        let on_chip = &device.stream_mut().sdram_mut().expect("has a chip").bytes()[0x3e0..0x4e0];
        assert_eq!(on_chip, found);
    }
}

/// Runs a program whose data is put into the chip directly, and returns the memory that it leaves.
fn run_on_chip(device: &mut LinkDevice<VirtualBoard>, program: &Program) -> (RunReport, Vec<u8>) {
    program.install_into(device.stream_mut().sdram_mut().expect("has a chip").bytes_mut());
    let report = device.run(&Command { cycle_limit: None, ..program.command() }).expect("a report");
    (report, device.stream_mut().sdram_mut().expect("has a chip").bytes()[..MEMORY_BYTES as usize].to_vec())
}

#[test]
fn random_programs_give_what_the_functional_simulator_gives() {
    for (config, name) in [(config(), "ulx3s-85f"), (wide(), "colorlight-i5")] {
        let Some(board) = board(&config, &chip(name)) else { return };
        let mut device = device(board, &config);
        let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
        let (mut cycles, refreshes) = (0, refreshes(&mut device));
        for seed in 0..10 {
            let program = generate(&config, seed, 12);
            let expected = run(&mut fsim, &program).expect("a report");
            let (found, left) = run_on_chip(&mut device, &program);
            assert_eq!((found.trap, found.retired, found.macs), (None, expected.retired, expected.macs), "seed {seed}");
            assert!(left == super::programs::memory(&mut fsim), "{name}, seed {seed}\n{}", program.text());
            cycles += found.cycles.expect("a board knows time");
        }
        // The chip was refreshed all along; it reports refreshes that come too late.
        assert!(self::refreshes(&mut device) - refreshes > cycles / 800, "{cycles} cycles");
    }
}

fn refreshes(device: &mut LinkDevice<VirtualBoard>) -> u64 {
    device.stream_mut().sdram_mut().expect("has a chip").refreshes()
}

#[test]
fn what_passes_the_end_of_the_chip_traps() {
    let config = wide();
    let chip = chip("colorlight-i5");
    let Some(board) = board(&config, &chip) else { return };
    let mut device = device(board, &config);
    let size = chip.geometry().bytes();
    assert_eq!(device.memory_bytes(), size);
    let row = config.entry_bytes(Mem::Out) * 32;
    let text = format!("load mem=out row_bytes={row} offset=0");
    let stream: Vec<u8> =
        parse_program(&text).expect("a program").iter().flat_map(|insn| encode(insn, &config).expect("fits")).collect();
    device.write(0x2000, &stream).expect("inside memory");
    let command =
        |addr| Command { stream_addr: 0x2000, insns: 1, bases: vec![Base { addr, limit: 0x2000 }], cycle_limit: None };
    assert_eq!(device.run(&command(size - u64::from(row))).expect("a report").trap, None);
    assert!(device.run(&command(size)).expect("a report").trap.is_some());
    assert_eq!(device.run(&command(0)).expect("a report").trap, None);
}

#[test]
fn a_shell_that_breaks_the_chips_times_is_found() {
    let config = config();
    let kept = chip("ulx3s-85f");
    type Change = fn(&mut Sdram);
    let cases: [(Change, &str); 4] = [
        (|chip| chip.timing.rcd_ns = 61.0, "tRCD is 61 ns"),
        (|chip| chip.timing.rfc_ns = 121.0, "tRFC is 121 ns"),
        (|chip| chip.timing.refresh_us = 3.0, "refreshes are done"),
        (|chip| chip.timing.power_up_us = 250.0, "the first command comes 200"),
    ];
    for (change, said) in cases {
        let mut chip = kept.clone();
        change(&mut chip);
        let Some(board) = with_times_of(&config, &chip, &kept) else { return };
        let options = LinkOptions { answer: Duration::from_millis(1), ..OPTIONS };
        let outcome = LinkDevice::open(board, config.clone(), options)
            .map_err(DeviceError::from)
            .and_then(|mut device| device.write(0, &[1; 64]).and_then(|()| device.read(0, &mut [0; 64])));
        let error = outcome.expect_err(said).to_string();
        assert!(error.contains("SDRAM, edge ") && error.contains(said), "{said}: {error}");
    }
}
