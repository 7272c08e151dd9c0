//! Links that fail: corrupted, lost or foreign bytes, a board that disappears, another board.

use super::programs::{memory, run};
use super::{CLOCKS, LINE, OPTIONS, board, config, device, with_memory};
use std::io;
use std::time::Duration;
use tilewright_driver::link::{Fault, LinkDevice};
use tilewright_hw::device::{Base, Command, Device};
use tilewright_hw::host::WrongHardware;
use tilewright_hw::isa::{encode, parse_program};
use tilewright_hw::link::ByteStream;
use tilewright_hw::{HwConfig, Mem};
use tilewright_shell::ShellMemory;
use tilewright_sim::Fsim;
use tilewright_sim::board::VirtualBoard;
use tilewright_sim::random::{MEMORY_BYTES, generate};

/// What happens to a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    /// A bit is flipped.
    Flip,
    /// It is lost.
    Lose,
    /// The board disappears.
    Unplug,
}

/// A board whose line fails at some byte.
struct Failing {
    board: VirtualBoard,
    /// What happens to which byte, counted from when the harm was set, and whether bytes to the board or from it are
    /// meant.
    harm: Option<(Harm, usize, bool)>,
    gone: bool,
}

impl Failing {
    fn pass(&mut self, bytes: &mut Vec<u8>, to_board: bool) -> io::Result<()> {
        if let Some((harm, at, direction)) = &mut self.harm
            && *direction == to_board
        {
            if *at >= bytes.len() {
                *at -= bytes.len();
            } else {
                match harm {
                    Harm::Flip => bytes[*at] ^= 0x10,
                    Harm::Lose => drop(bytes.remove(*at)),
                    Harm::Unplug => self.gone = true,
                }
                self.harm = None;
            }
        }
        if self.gone { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

impl ByteStream for Failing {
    fn name(&self) -> &str {
        "a failing board"
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut bytes = bytes.to_vec();
        self.pass(&mut bytes, true)?;
        self.board.send(&bytes)
    }

    fn receive(&mut self, bytes: &mut [u8], timeout: Duration) -> io::Result<usize> {
        loop {
            let count = self.board.receive(bytes, timeout)?;
            let mut came = bytes[..count].to_vec();
            self.pass(&mut came, false)?;
            bytes[..came.len()].copy_from_slice(&came);
            if count == 0 || !came.is_empty() {
                return Ok(came.len());
            }
        }
    }

    fn now(&self) -> Duration {
        self.board.now()
    }

    fn clear(&mut self) -> io::Result<()> {
        self.board.clear()
    }
}

fn failing(config: &HwConfig) -> Option<LinkDevice<Failing>> {
    failing_with(config, ShellMemory::Host)
}

fn failing_with(config: &HwConfig, memory: ShellMemory) -> Option<LinkDevice<Failing>> {
    Some(device(Failing { board: with_memory(config, LINE, memory)?, harm: None, gone: false }, config))
}

/// Temporary harm, to the board and from it.
const PASSING: [(Harm, bool); 4] = [(Harm::Flip, true), (Harm::Flip, false), (Harm::Lose, true), (Harm::Lose, false)];

#[test]
fn a_command_is_run_again_where_bytes_are_spoiled_or_lost() {
    let config = config();
    let Some(mut device) = failing(&config) else { return };
    let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
    // Random programs start by loading what they read.
    let program = generate(&config, 1, 12);
    run(&mut fsim, &program).expect("a report");
    let mut again = 0;
    for (harm, to_board) in PASSING {
        for at in [3, 60, 1001, 3002] {
            device.write(0, &vec![0; MEMORY_BYTES as usize]).expect("inside memory");
            device.stream_mut().harm = Some((harm, at, to_board));
            let report = run(&mut device, &program);
            let report =
                report.unwrap_or_else(|error| panic!("{harm:?} of byte {at}, to the board {to_board}: {error}"));
            assert_eq!(report.trap, None);
            assert!(memory(&mut device) == memory(&mut fsim), "{harm:?} of byte {at}, to the board {to_board}");
            again += 1;
            assert_eq!(device.retries(), again, "{harm:?} of byte {at}, to the board {to_board}");
        }
    }
}

#[test]
fn a_command_that_needs_what_others_left_is_not_run_again() {
    let config = config();
    let Some(mut device) = failing(&config) else { return };
    let bytes = config.entry_bytes(Mem::Out) * 16;
    let text = format!("store mem=out row_bytes={bytes} offset=0");
    let insns = parse_program(&text).expect("a program");
    let stream: Vec<u8> = insns.iter().flat_map(|insn| encode(insn, &config).expect("fits")).collect();
    device.write(0x8000, &stream).expect("inside memory");
    let bases = vec![Base { addr: 0, limit: 0x1000 }];
    let command = Command { stream_addr: 0x8000, insns: 1, bases, cycle_limit: None };
    assert_eq!(device.run(&command).expect("a report").trap, None);
    device.stream_mut().harm = Some((Harm::Flip, 100, false));
    let error = device.run(&command).unwrap_err().to_string();
    assert!(
        error.contains(
            "is not run again because it reads what earlier commands left in scratchpads; run the whole program again"
        ),
        "{error}"
    );
    assert_eq!(device.run(&command).expect("a report").trap, None);
}

#[test]
fn with_memory_on_the_board_bytes_are_brought_again_and_commands_are_not_run_again() {
    let config = config();
    let Some(mut device) = failing_with(&config, ShellMemory::BlockRam { kib: 16 }) else { return };
    let row = config.entry_bytes(Mem::Out) * 8;
    let text =
        format!("load mem=out row_bytes={row} offset=7 push=store\nstore mem=out row_bytes={row} offset=1001 pop=load");
    let insns = parse_program(&text).expect("a program");
    let stream: Vec<u8> = insns.iter().flat_map(|insn| encode(insn, &config).expect("fits")).collect();
    let bases = vec![Base { addr: 0, limit: 0x2000 }];
    let command = Command { stream_addr: 0x2000, insns: 2, bases, cycle_limit: None };
    // Ends inside beats, so that the bytes next to the range are read first.
    let bytes: Vec<u8> = (0..700).map(|at| (at * 7 + 1) as u8).collect();
    let mut again = 0;
    for (harm, to_board) in PASSING {
        let case = |at: usize| format!("{harm:?} of byte {at}, to the board {to_board}");
        for at in [3, 20, 101] {
            device.write(0, &vec![0xee; 0x400]).expect("inside memory");
            device.stream_mut().harm = Some((harm, at, to_board));
            device.write(7, &bytes).unwrap_or_else(|error| panic!("writing, {}: {error}", case(at)));
            // The answers to a write are shorter than the write, so the harm may not have happened.
            again += u64::from(device.stream_mut().harm.take().is_none());
            device.stream_mut().harm = Some((harm, at, to_board));
            let mut found = vec![0; 0x400];
            device.read(0, &mut found).unwrap_or_else(|error| panic!("reading, {}: {error}", case(at)));
            again += u64::from(device.stream_mut().harm.take().is_none());
            assert_eq!(found, [&[0xee; 7][..], &bytes, &[0xee; 0x400 - 707]].concat(), "{}", case(at));
            assert_eq!(device.retries(), again, "{}", case(at));
        }
        // A command that started may have written something.
        device.write(0x2000, &stream).expect("inside memory");
        assert_eq!(device.run(&command).expect("a report").trap, None);
        device.stream_mut().harm = Some((harm, 70, to_board));
        let error = device.run(&command).unwrap_err().to_string();
        let why =
            "a command that is not run again because it writes to the board's memory, where writes cannot be undone";
        assert!(error.contains(why) && error.contains("run the whole program again"), "{}: {error}", case(70));
        device.write(0x2000, &stream).expect("inside memory");
        assert_eq!(device.run(&command).expect("a report").trap, None);
        let mut copy = vec![0; row as usize];
        device.read(1001, &mut copy).expect("inside memory");
        assert_eq!(copy, bytes[..row as usize], "{}", case(70));
        again = device.retries();
    }
    assert!(again >= 12, "{again}");
}

#[test]
fn a_board_that_goes_away_is_told() {
    let config = config();
    let program = generate(&config, 1, 12);
    for at in [0, 500, 2000] {
        let Some(mut device) = failing(&config) else { return };
        device.stream_mut().harm = Some((Harm::Unplug, at, false));
        let error = run(&mut device, &program).unwrap_err().to_string();
        assert!(error.starts_with("a failing board: the connection broke: "), "{error}");
        assert!(run(&mut device, &program).is_err());
    }
}

#[test]
fn the_link_begins_anew_whatever_the_board_is_doing() {
    let config = config();
    let program = generate(&config, 2, 12);
    let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
    run(&mut fsim, &program).expect("a report");
    for at in [0, 41, 777, 1500, 2900] {
        let Some(mut device) = failing(&config) else { return };
        // The host goes away in the middle of a frame, with the core at work.
        device.stream_mut().harm = Some((Harm::Unplug, at, at % 2 == 0));
        assert!(run(&mut device, &program).is_err());
        let mut device = super::device(device.into_stream().board, &config);
        assert_eq!(run(&mut device, &program).expect("a report").trap, None);
        assert!(memory(&mut device) == memory(&mut fsim), "byte {at}");
    }
}

fn fault(board: VirtualBoard, config: HwConfig) -> Fault {
    LinkDevice::open(board, config, OPTIONS).err().expect("is not opened").fault
}

#[test]
fn a_line_of_another_speed_is_told() {
    let config = config();
    for line in [CLOCKS / 2, 2 * CLOCKS, 6 * CLOCKS] {
        let Some(board) = board(&config, line) else { return };
        let found = fault(board, config.clone());
        assert!(matches!(found, Fault::Garbage { .. } | Fault::Silent { .. }), "{line}: {found}");
    }
}

#[test]
fn another_configuration_is_told_with_both() {
    let config = config();
    let Some(board) = board(&config, CLOCKS) else { return };
    let other = HwConfig { queue_depth: 4, name: "other".into(), ..config.clone() };
    let expected = WrongHardware::Config { found: config.hash(), asked: other.hash(), name: "other".into() };
    assert_eq!(fault(board, other), expected.into());
}
