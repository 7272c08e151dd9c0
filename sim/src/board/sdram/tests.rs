use super::*;
use tilewright_hw::flow::board::{Board, CoreMemory};

/// A clock with a period of 10 ns, at which the chip's times take these cycles.
const MHZ: f64 = 100.0;
const RCD: u64 = 3;
const RP: u64 = 3;
const RAS: u64 = 5;
const RC: u64 = 9;
const RFC: u64 = 7;
const WR: u64 = 2;

/// What happens at an edge, and the number of edges until the next step.
type PinStep = (Pins, u64);

fn pins(command: u8, a: u32) -> Pins {
    Pins { command, a, ..IDLE }
}

fn write(a: u32, data: u32, dqm: u32) -> Pins {
    Pins { dq: Some(data), dqm, ..pins(WRITE, a) }
}

const ALL: Pins = Pins { command: PRECHARGE, a: ALL_BANKS, ..IDLE };

/// A 16-bit chip with a short wait at power-up.
fn chip() -> Sdram {
    let CoreMemory::Sdram(mut chip) = Board::load("ulx3s-85f").expect("it is there").memory else {
        panic!("has an SDRAM")
    };
    chip.rows = 2048;
    chip.timing.power_up_us = 1.0;
    chip.timing.rc_ns = 90.0;
    *chip
}

fn run(chip: &mut SdramChip, steps: &[PinStep]) -> Result<(), String> {
    for (pins, edges) in steps {
        chip.clock(*pins)?;
        for _ in 1..*edges {
            chip.clock(IDLE)?;
        }
    }
    Ok(())
}

/// The power-up sequence.
fn start() -> Vec<PinStep> {
    let mut steps = vec![(IDLE, 100), (ALL, RP)];
    steps.extend([(pins(REFRESH, 0), RFC); START_REFRESHES as usize]);
    steps.push((pins(MODE, 0x20), 2));
    steps
}

/// Creates a chip that has finished its power-up sequence.
fn up() -> SdramChip {
    let mut model = SdramChip::new(&chip(), MHZ);
    run(&mut model, &start()).expect("the sequence is right");
    model
}

#[test]
fn words_are_written_masked_and_read_by_address() {
    let mut model = up();
    let open = [(Pins { ba: 2, ..pins(ACTIVATE, 5) }, RCD)];
    run(&mut model, &open).expect("is allowed");
    for (column, data, dqm) in [(7, 0x1234, 0), (8, 0xabcd, 0b01), (9, 0xffff, 0b11), (7, 0x56, 0b10)] {
        run(&mut model, &[(Pins { ba: 2, ..write(column, data, dqm) }, 1)]).expect("is allowed");
    }
    // Row, bank, column, byte of the word.
    let at = ((5 * 4 + 2) * 512 + 7) * 2;
    assert_eq!((model.bytes()[at], model.bytes()[at + 1], model.bytes()[at + 3]), (0x56, 0x12, 0xab));
    let noise = SdramChip::new(&chip(), MHZ);
    assert_eq!(model.bytes()[at + 2], noise.bytes()[at + 2]);
    assert_eq!(model.bytes()[at + 4..at + 6], noise.bytes()[at + 4..at + 6]);
    // A read's word appears after the next edge and stays until the one after that.
    let read = |model: &mut SdramChip, column| model.clock(Pins { ba: 2, ..pins(READ, column) }).expect("is allowed");
    read(&mut model, 7);
    assert_eq!(model.out(), None);
    read(&mut model, 7);
    assert_eq!(model.out(), Some(0x1256));
    model.clock(IDLE).expect("is allowed");
    assert_eq!(model.out(), Some(0x1256));
    model.clock(IDLE).expect("is allowed");
    assert_eq!(model.out(), None);
}

#[test]
fn what_keeps_every_time_is_allowed() {
    let steps = [
        (pins(ACTIVATE, 1), RCD),
        (pins(READ, 0), 1),
        (pins(READ, 1), 3),
        (write(2, 1, 0), 1),
        (pins(READ, 2), 1),
        (ALL, RP),
        (pins(ACTIVATE, 2), TWO_BANKS_CYCLES),
        (Pins { ba: 1, ..pins(ACTIVATE, 2) }, RCD),
        (write(2, 1, 0), WR),
        (pins(PRECHARGE, 0), RP),
        (Pins { ba: 1, ..pins(READ, 2) }, 2),
        (pins(PRECHARGE, 0), 1),
        (Pins { ba: 1, ..pins(PRECHARGE, 0) }, RP),
        (pins(REFRESH, 0), RFC),
        (pins(REFRESH, 0), RFC),
        (pins(ACTIVATE, 3), RAS),
        (ALL, RC - RAS),
        (pins(ACTIVATE, 3), RC),
    ];
    run(&mut up(), &steps).expect("is allowed");
}

#[test]
fn every_violation_is_found() {
    let open = (pins(ACTIVATE, 1), RCD);
    let cases: &[(&[PinStep], &str)] = &[
        (&[(pins(ACTIVATE, 1), RCD - 1), (pins(READ, 0), 1)], "after its row was opened: 20.0 ns, but tRCD is 21 ns"),
        (&[(pins(ACTIVATE, 1), RAS - 1), (ALL, 1)], "40.0 ns, but tRAS is 45 ns"),
        (&[(pins(ACTIVATE, 1), RAS), (ALL, RP - 1), (pins(ACTIVATE, 1), 1)], "20.0 ns, but tRP is 21 ns"),
        (&[(pins(ACTIVATE, 1), RAS), (ALL, RP - 1), (pins(REFRESH, 1), 1)], "20.0 ns, but tRP is 21 ns"),
        (
            &[(pins(ACTIVATE, 1), RAS), (ALL, RP), (pins(ACTIVATE, 1), 1)],
            "after another row of its bank: 80.0 ns, but tRC",
        ),
        (
            &[(pins(ACTIVATE, 1), RAS), (ALL, RP), (pins(REFRESH, 1), 1)],
            "refresh too soon after a row was opened: 80.0 ns",
        ),
        (&[(pins(REFRESH, 0), RFC - 1), (pins(ACTIVATE, 1), 1)], "after a refresh: 60.0 ns, but tRFC is 70 ns"),
        (&[(pins(REFRESH, 0), RFC - 1), (pins(REFRESH, 1), 1)], "after another: 60.0 ns, but tRFC is 70 ns"),
        (&[(pins(ACTIVATE, 1), RAS), (write(0, 0, 0), WR - 1), (ALL, 1)], "after a write: 10.0 ns, but tWR"),
        (
            &[(pins(ACTIVATE, 1), 1), (Pins { ba: 1, ..pins(ACTIVATE, 1) }, 1)],
            "after one of another bank: 1 cycles, but 2 are needed",
        ),
        (&[open, (pins(ACTIVATE, 2), 1)], "which already has an open row"),
        (&[open, (pins(REFRESH, 0), 1)], "refresh while a row of bank 0 is open"),
        (&[open, (Pins { ba: 1, ..pins(READ, 0) }, 1)], "no row of bank 1 is open"),
        (&[(pins(READ, 0), 1)], "no row of bank 0 is open"),
        (&[open, (pins(READ, 0x400), 1)], "automatic precharge"),
        (&[open, (pins(READ, 512), 1)], "column 512"),
        (&[(pins(ACTIVATE, 2048), 1)], "row 2048"),
        (&[open, (pins(WRITE, 0), 1)], "nothing drives the data pins"),
        (&[open, (pins(READ, 0), 1), (write(0, 0, 0), 1)], "drive the data pins at the same time"),
        (&[open, (pins(READ, 0), 2), (write(0, 0, 0), 1)], "drive the data pins at the same time"),
        (&[open, (pins(READ, 0), 1), (Pins { dq: Some(0), ..IDLE }, 1)], "drive the data pins at the same time"),
        (&[open, (Pins { dqm: 1, ..pins(READ, 0) }, 2)], "a word is masked while it is read"),
        (&[open, (pins(0b110, 0), 1)], "command 0b110 is not supported"),
        (&[(pins(MODE, 0x20), 1)], "mode set outside the power-up sequence"),
        (&[(IDLE, 2400)], "0 refreshes are done, but 3 are due"),
    ];
    for (steps, said) in cases {
        let error = run(&mut up(), steps).expect_err(said);
        assert!(error.starts_with("SDRAM, edge ") && error.contains(said), "{said}: {error}");
    }
}

#[test]
fn a_row_that_is_open_for_too_long_is_found() {
    let mut chip = chip();
    chip.timing.refresh_us = 100.0;
    let mut model = SdramChip::new(&chip, MHZ);
    let steps = [start(), vec![(pins(ACTIVATE, 1), 10_001), (ALL, 1)]].concat();
    let error = run(&mut model, &steps).unwrap_err();
    assert!(error.contains("a row of bank 0 was open for more than 100 us"), "{error}");
}

#[test]
fn each_wrong_start_is_found() {
    let without = |at: usize| {
        let mut steps = start();
        steps.remove(at);
        steps
    };
    let with = |at: usize, step: PinStep| {
        let mut steps = start();
        steps[at] = step;
        steps
    };
    let last = start().len() - 1;
    let cases: &[(Vec<PinStep>, &str)] = &[
        (with(0, (IDLE, 99)), "the first command comes 0.99 us after power-up"),
        (without(1), "the first command is not a precharge"),
        (with(1, (pins(PRECHARGE, 0), RP)), "the first command is not a precharge of all banks"),
        (with(1, (ALL, RP - 1)), "refresh too soon after a precharge: 20.0 ns"),
        (without(2), "mode set after only 7 of 8 refreshes"),
        (with(2, (pins(REFRESH, 0), RFC - 1)), "tRFC"),
        (with(last, (pins(MODE, 0x30), 2)), "the mode is 0x30, but single-word bursts at this latency need 0x20"),
        (with(last, (pins(MODE, 0x23), 2)), "the mode is 0x23"),
        (with(last, (pins(ACTIVATE, 0), 2)), "row opened before the mode is set"),
        ([start(), vec![(pins(ACTIVATE, 0), 1)]].concat(), ""),
        (
            [with(last, (pins(MODE, 0x20), 1)), vec![(pins(ACTIVATE, 0), 1)]].concat(),
            "after the mode is set: 1 cycles, but 2 are needed",
        ),
    ];
    for (steps, said) in cases {
        let outcome = run(&mut SdramChip::new(&chip(), MHZ), steps);
        match outcome {
            Ok(()) => assert!(said.is_empty(), "{said}"),
            Err(error) => assert!(!said.is_empty() && error.contains(said), "{said}: {error}"),
        }
    }
}

#[test]
fn a_latency_of_three_is_kept_too() {
    let mut chip = chip();
    chip.timing.cas_latency = 3;
    let mut model = SdramChip::new(&chip, MHZ);
    let mut steps = start();
    steps.last_mut().expect("has steps").0.a = 0x30;
    run(&mut model, &steps).expect("the sequence is right");
    let open = [(pins(ACTIVATE, 0), RAS), (write(0, 0x77, 0), 1), (pins(READ, 0), 2)];
    run(&mut model, &open).expect("is allowed");
    assert_eq!(model.out(), None);
    model.clock(ALL).expect("cuts nothing off");
    assert_eq!(model.out(), Some(0x77));
    let mut model = SdramChip::new(&chip, MHZ);
    run(&mut model, &steps).expect("the sequence is right");
    let error = run(&mut model, &[(pins(ACTIVATE, 0), RAS), (pins(READ, 0), 1), (ALL, 1)]).unwrap_err();
    assert!(error.contains("after a read: 1 cycles, but 2 are needed"), "{error}");
}

/// Levels of an idle controller.
const QUIET: Levels =
    Levels { clk: false, cke: true, cs_n: false, command: NOP, a: 0, ba: 0, dqm: 0, dq: 0, driven: 0 };

/// Creates a connected chip that has finished its power-up sequence.
fn socket() -> Socket {
    Socket::new(up())
}

/// Runs a whole clock cycle with a command set while the clock is low. Returns the levels on the data pins before the
/// rising edge, after it, and in the second half.
fn clocked(socket: &mut Socket, levels: Levels) -> Result<[u32; 3], String> {
    let phases = [levels, Levels { clk: true, ..levels }, levels];
    let mut dq = [0; 3];
    for (dq, levels) in dq.iter_mut().zip(phases) {
        let (stands, outcome) = socket.follow(levels);
        outcome?;
        *dq = stands;
    }
    Ok(dq)
}

fn levels(command: u8, a: u32) -> Levels {
    Levels { command, a, ..QUIET }
}

#[test]
fn a_socket_clocks_its_chip_where_the_clock_rises_and_gives_data_in_the_second_half() {
    let mut socket = socket();
    let mut clocks = |all: &[Levels]| -> Vec<[u32; 3]> {
        all.iter().map(|levels| clocked(&mut socket, *levels).expect("is allowed")).collect()
    };
    let written = Levels { dq: 0xffff_1234, driven: 0xffff, ..levels(WRITE, 3) };
    let seen = clocks(&[levels(ACTIVATE, 1), QUIET, QUIET, written, levels(READ, 3), QUIET, QUIET, QUIET]);
    assert_eq!(seen[3], [0x1234; 3], "the controller drives");
    let floating = 0x5a5a;
    assert_eq!(seen[4], [floating; 3]);
    // The word appears after the second edge, invalid at first, and disappears with the third.
    assert_eq!(seen[5], [floating, !0x1234 & 0xffff, 0x1234]);
    assert_eq!(seen[6], [0x1234, floating, floating]);
    assert_eq!(seen[7], [floating; 3]);
}

#[test]
fn a_chip_that_is_not_selected_hears_nothing() {
    let mut socket = socket();
    clocked(&mut socket, Levels { cs_n: true, ..levels(READ, 0) }).expect("it is not for this chip");
    let error = clocked(&mut socket, levels(READ, 0)).expect_err("no row is open");
    assert!(error.contains("no row of bank 0 is open"), "{error}");
}

#[test]
fn what_a_socket_alone_sees_is_found() {
    let cases: [(&str, Levels, Levels); 5] = [
        ("pins change together with the clock edge", QUIET, levels(ACTIVATE, 1)),
        ("pins change together with the clock edge", QUIET, Levels { driven: 0xffff, ..QUIET }),
        ("the clock is not enabled", Levels { cke: false, ..QUIET }, Levels { cke: false, ..QUIET }),
        ("only data pins 0xff are driven", Levels { driven: 0xff, ..QUIET }, Levels { driven: 0xff, ..QUIET }),
        ("mode set outside the power-up sequence", levels(MODE, 0x20), levels(MODE, 0x20)),
    ];
    for (said, before, at) in cases {
        let mut socket = socket();
        socket.follow(before).1.expect("it is no edge");
        let error = socket.follow(Levels { clk: true, ..at }).1.expect_err(said);
        assert!(error.starts_with("SDRAM, edge ") && error.contains(said), "{said}: {error}");
    }
}
