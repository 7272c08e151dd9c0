//! Links that fail: bytes that are spoiled, lost or foreign, a board that goes away, another board.

use super::programs::{memory, run};
use super::{CLOCKS, OPTIONS, board, config, device};
use std::io;
use std::time::Duration;
use tilewright_driver::link::{Fault, LinkDevice};
use tilewright_hw::device::{Command, Device};
use tilewright_hw::host::WrongHardware;
use tilewright_hw::isa::{encode, parse_program};
use tilewright_hw::link::ByteStream;
use tilewright_hw::{HwConfig, Mem};
use tilewright_sim::Fsim;
use tilewright_sim::board::VirtualBoard;
use tilewright_sim::random::{MEMORY_BYTES, generate};

/// What happens to a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    /// A bit is spoiled.
    Flip,
    /// It is lost.
    Lose,
    /// The board goes away.
    Unplug,
}

/// A board whose line fails at some byte.
struct Failing {
    board: VirtualBoard,
    /// What happens to which byte, counted from when the harm was set, to the board or from it.
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
    Some(device(Failing { board: board(config, CLOCKS)?, harm: None, gone: false }, config))
}

#[test]
fn a_command_is_run_again_where_bytes_are_spoiled_or_lost() {
    let config = config();
    let Some(mut device) = failing(&config) else { return };
    let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
    // Random programs begin with loads of what they read.
    let program = generate(&config, 1, 12);
    run(&mut fsim, &program).expect("a report");
    let mut again = 0;
    for (harm, to_board) in [(Harm::Flip, true), (Harm::Flip, false), (Harm::Lose, true), (Harm::Lose, false)] {
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
    let bases = vec![tilewright_hw::device::Base { addr: 0, limit: 0x1000 }];
    let command = Command { stream_addr: 0x8000, insns: 1, bases, cycle_limit: None };
    assert_eq!(device.run(&command).expect("a report").trap, None);
    device.stream_mut().harm = Some((Harm::Flip, 100, false));
    let error = device.run(&command).unwrap_err().to_string();
    assert!(error.contains("it is not run again; run the whole program again"), "{error}");
    assert_eq!(device.run(&command).expect("a report").trap, None);
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
