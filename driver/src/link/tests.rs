//! Frames as a board sends them: whole, cut and corrupted.

use super::frames::{Frame, Frames};
use super::session::Hello;
use super::{Fault, LinkDevice, LinkOptions};
use proptest::prelude::*;
use std::io;
use std::time::Duration;
use tilewright_hw::HwConfig;
use tilewright_hw::host::WrongHardware;
use tilewright_hw::link::{self, ByteStream, MemorySide, ToHost, addr_bytes, frame, longest_burst, strobe_bytes};

const BEAT: usize = 8;

fn config() -> HwConfig {
    HwConfig { bus_bits: 8 * BEAT as u32, ..HwConfig::default() }
}

/// A frame as a board sends it.
fn sent(value: &Frame) -> Vec<u8> {
    let (kind, body) = match value {
        Frame::Value(value) => (ToHost::Value, value.to_le_bytes().to_vec()),
        Frame::Done => (ToHost::Done, vec![]),
        Frame::Interrupt => (ToHost::Interrupt, vec![]),
        Frame::Memory(bytes) => (ToHost::MemoryData, bytes.clone()),
        Frame::Refused(reason) => (ToHost::Refused, vec![*reason]),
        Frame::Hello(hello) => {
            let (place, bytes_log) = match hello.memory {
                MemorySide::Host => (0, 0),
                MemorySide::Board { bytes_log } => (1, bytes_log),
            };
            (ToHost::Hello, vec![hello.version, hello.beat_log, place, bytes_log])
        }
        Frame::Read { client, addr, beats } => {
            (ToHost::ReadRequest, [&[*client], &addr_bytes(*addr)[..], &[*beats as u8 - 1]].concat())
        }
        Frame::Write { addr, strobes, data } => {
            let strobes = strobes.map(|s| s.to_le_bytes()[..strobe_bytes(&config())].to_vec());
            let beats = (data.len() / BEAT - 1) as u8;
            (ToHost::WriteRequest, [&addr_bytes(*addr)[..], &[beats], &strobes[0], data, &strobes[1]].concat())
        }
    };
    frame(kind as u8, &body)
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let most = config().max_burst_beats as usize;
    let addr = (0u64..1 << 37).prop_map(|beat| beat * BEAT as u64);
    prop_oneof![
        any::<u32>().prop_map(Frame::Value),
        Just(Frame::Done),
        Just(Frame::Interrupt),
        any::<u8>().prop_map(Frame::Refused),
        (any::<u8>(), any::<u8>(), any::<Option<u8>>()).prop_map(|(version, beat_log, bytes_log)| {
            let memory = bytes_log.map_or(MemorySide::Host, |bytes_log| MemorySide::Board { bytes_log });
            Frame::Hello(Hello { version, beat_log, memory })
        }),
        (0u8..2, addr.clone(), 1..=most).prop_map(|(client, addr, beats)| Frame::Read { client, addr, beats }),
        (addr, any::<[u8; 2]>(), 1..=most).prop_flat_map(|(addr, strobes, beats)| {
            let data = proptest::collection::vec(any::<u8>(), beats * BEAT);
            data.prop_map(move |data| Frame::Write { addr, strobes: strobes.map(u64::from), data })
        }),
    ]
}

/// Everything that is parsed from bytes given in pieces.
fn read(pieces: &[&[u8]]) -> (Vec<Frame>, Option<Fault>) {
    let mut frames = Frames::new(&config());
    let mut found = Vec::new();
    for piece in pieces {
        frames.push(piece);
        loop {
            match frames.take() {
                Ok(Some(frame)) => found.push(frame),
                Ok(None) => break,
                Err(fault) => return (found, Some(fault)),
            }
        }
    }
    (found, None)
}

proptest! {
    #[test]
    fn frames_come_back_however_they_are_cut(
        frames in proptest::collection::vec((any_frame(), 0usize..4), 1..8),
        piece in 1usize..40,
    ) {
        let bytes: Vec<u8> =
            frames.iter().flat_map(|(frame, idle)| [vec![0; *idle], vec![0xff; *idle], sent(frame)].concat()).collect();
        let (found, fault) = read(&bytes.chunks(piece).collect::<Vec<_>>());
        prop_assert_eq!(fault, None);
        prop_assert_eq!(found, frames.into_iter().map(|(frame, _)| frame).collect::<Vec<_>>());
    }

    #[test]
    fn a_spoiled_bit_is_never_taken_for_the_frame(frame in any_frame(), place in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut bytes = sent(&frame);
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        let (found, _) = read(&[&bytes]);
        prop_assert!(!found.contains(&frame), "{found:?}");
    }

    #[test]
    fn garbage_ends_in_frames_or_a_fault(bytes in proptest::collection::vec(any::<u8>(), 0..4096), piece in 1usize..300) {
        read(&bytes.chunks(piece).collect::<Vec<_>>());
    }
}

#[test]
fn memory_comes_only_where_it_was_asked_for() {
    let bytes = sent(&Frame::Memory(vec![7; 3 * BEAT]));
    assert!(matches!(read(&[&bytes]).1, Some(Fault::BadFrame { .. })));
    let mut frames = Frames::new(&config());
    frames.memory_beats = Some(3);
    frames.push(&bytes);
    assert_eq!(frames.take(), Ok(Some(Frame::Memory(vec![7; 3 * BEAT]))));
}

#[test]
fn a_burst_that_is_too_long_is_a_fault_before_it_has_come() {
    let config = config();
    let mut body = addr_bytes(0).to_vec();
    body.push(longest_burst(&config) as u8);
    body.insert(0, ToHost::WriteRequest as u8);
    assert!(matches!(read(&[&body]).1, Some(Fault::BadFrame { .. })));
}

#[test]
fn an_idle_line_is_a_fault_in_the_end() {
    assert!(matches!(read(&vec![&[0; 256][..]; 65]).1, Some(Fault::BadFrame { .. })));
}

/// A peer that repeats the same bytes, or sends nothing.
struct Peer {
    says: Vec<u8>,
    at: usize,
}

impl ByteStream for Peer {
    fn name(&self) -> &str {
        "a peer"
    }

    fn send(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn receive(&mut self, bytes: &mut [u8], _: Duration) -> io::Result<usize> {
        for byte in bytes.iter_mut().take(self.says.len()) {
            *byte = self.says[self.at % self.says.len()];
            self.at += 1;
        }
        Ok(bytes.len().min(self.says.len()))
    }

    fn clear(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A port that accepts nothing.
struct Full;

impl ByteStream for Full {
    fn name(&self) -> &str {
        "a full port"
    }

    fn send(&mut self, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::TimedOut.into())
    }

    fn receive(&mut self, _: &mut [u8], _: Duration) -> io::Result<usize> {
        Ok(0)
    }

    fn clear(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A simulated peer that sends its bytes once: slowly in real time, in no time on its own clock.
struct Simulated {
    says: std::collections::VecDeque<u8>,
}

impl ByteStream for Simulated {
    fn name(&self) -> &str {
        "a simulated peer"
    }

    fn send(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn receive(&mut self, bytes: &mut [u8], _: Duration) -> io::Result<usize> {
        let Some(byte) = self.says.pop_front() else { return Ok(0) };
        std::thread::sleep(Duration::from_millis(2));
        bytes[0] = byte;
        Ok(1)
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn clear(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_slow_simulation_has_the_time_of_its_own_clock() {
    let says = sent(&Frame::Hello(Hello { version: link::VERSION, beat_log: 3, memory: MemorySide::Host })).into();
    let options = LinkOptions { answer: Duration::from_millis(1), ..LinkOptions::default() };
    let fault = LinkDevice::open(Simulated { says }, config(), options).err().expect("it says no more").fault;
    // The greeting was understood; the request after it was not answered.
    assert!(matches!(fault, Fault::Silent { .. }), "{fault}");
}

fn opened(says: Vec<u8>) -> Fault {
    LinkDevice::open(Peer { says, at: 0 }, config(), LinkOptions::default()).err().expect("is no board").fault
}

#[test]
fn peers_that_are_no_boards_are_told_apart() {
    assert!(matches!(opened(vec![]), Fault::Silent { .. }));
    let full = LinkDevice::open(Full, config(), LinkOptions::default()).err().expect("is no board");
    assert_eq!(full.fault, Fault::Full);
    assert!(
        full.to_string().starts_with("a full port: the port accepts no more bytes; check that the board has power"),
        "{full}"
    );
    assert!(matches!(opened(b"login: ".to_vec()), Fault::Garbage { .. }));
    let hello = |version| sent(&Frame::Hello(Hello { version, beat_log: 3, memory: MemorySide::Host }));
    assert_eq!(opened(hello(9)), Fault::OtherLink { found: 9, known: link::VERSION });
    // Endless greetings are not an answer.
    assert!(matches!(opened(hello(link::VERSION)), Fault::Silent { .. }));
    let with_value = |value| [hello(link::VERSION), sent(&Frame::Value(value))].concat();
    assert_eq!(opened(with_value(7)), WrongHardware::NoAccelerator { found: 7 }.into());
}
