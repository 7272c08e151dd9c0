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

/// A board without memory on the other end of a pseudo-terminal: its commands run until they are reset, or at once if
/// they have no instruction.
#[cfg(unix)]
mod on_a_line {
    use super::super::{Pty, SerialPort};
    use super::*;
    use std::collections::HashMap;
    use std::thread;
    use std::time::Instant;
    use tilewright_hw::device::{Command, Device, DeviceError};
    use tilewright_hw::interrupt::Interrupt;
    use tilewright_hw::isa::ISA_VERSION;
    use tilewright_hw::link::{ToBoard, hello, resync_bytes};
    use tilewright_hw::regs;

    /// Plays the board until the host closes its end. Returns how often the core was reset while it was busy.
    fn play(mut line: SerialPort) -> u32 {
        let (config, mut registers) = (config(), HashMap::<u32, u32>::new());
        registers.insert(regs::ID, regs::ID_VALUE);
        registers.insert(regs::ISA_VERSION, ISA_VERSION);
        registers.insert(regs::CONFIG_HASH_LO, config.hash() as u32);
        registers.insert(regs::CONFIG_HASH_HI, (config.hash() >> 32) as u32);
        let (mut ahead, mut zeros, mut resets, mut bytes) = (Vec::new(), 0, 0, [0; 4096]);
        while let Ok(count) = line.receive(&mut bytes, Duration::from_secs(30)) {
            ahead.extend_from_slice(&bytes[..count]);
            let mut at = 0;
            while let Some(first) = ahead.get(at) {
                let length = match ToBoard::from_code(*first) {
                    Some(ToBoard::WriteReg) => 7 + link::CRC_BYTES,
                    Some(ToBoard::ReadReg) => 3 + link::CRC_BYTES,
                    _ => {
                        zeros = if *first == 0 { zeros + 1 } else { 0 };
                        if zeros == resync_bytes(&config) {
                            zeros = 0;
                            registers.remove(&regs::STATUS);
                            let greeting = frame(ToHost::Hello as u8, &hello(&config, MemorySide::Host));
                            line.send(&greeting).expect("it is sent");
                        }
                        at += 1;
                        continue;
                    }
                };
                let Some(sent) = ahead.get(at..at + length) else { break };
                at += length;
                let register = u32::from(u16::from_le_bytes([sent[1], sent[2]]));
                if length == 3 + link::CRC_BYTES {
                    let value = registers.entry(register).or_default();
                    // Its cycles go on.
                    *value += u32::from(register == regs::CYCLES_LO);
                    line.send(&super::sent(&Frame::Value(*value))).expect("it is sent");
                    continue;
                }
                let value = u32::from_le_bytes([sent[3], sent[4], sent[5], sent[6]]);
                if register == regs::DOORBELL {
                    let busy = registers.get(&regs::STREAM_INSNS).is_some_and(|insns| *insns > 0);
                    registers.insert(regs::STATUS, if busy { regs::STATUS_BUSY } else { 0 });
                }
                if register == regs::CONTROL && value & regs::CONTROL_RESET != 0 {
                    resets += registers.insert(regs::STATUS, 0).unwrap_or_default();
                }
                registers.insert(register, value);
                line.send(&super::sent(&Frame::Done)).expect("it is sent");
            }
            ahead.drain(..at);
        }
        resets
    }

    fn open() -> (LinkDevice<SerialPort>, thread::JoinHandle<u32>) {
        let pty = Pty::open().expect("a pseudo-terminal");
        let host = SerialPort::open(pty.path(), super::super::DEFAULT_BAUD).expect("it opens");
        let board = thread::spawn(move || play(pty.board));
        let options = LinkOptions { memory_bytes: Some(4096), ..LinkOptions::default() };
        (LinkDevice::open(host, config(), options).expect("it answers"), board)
    }

    const ENDLESS: Command = Command { stream_addr: 0, insns: 1, bases: Vec::new(), cycle_limit: None };

    #[test]
    fn a_command_that_is_waited_for_stops_with_its_work() {
        let (mut device, board) = open();
        let ticket = device.submit(&ENDLESS).expect("it is queued");
        let (work, begun) = (Interrupt::alone(), Instant::now());
        let stop = work.clone();
        let stopper = thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            stop.stop();
        });
        let error = work.during(|| device.wait(ticket)).expect_err("it does not end");
        assert!(matches!(error, DeviceError::Interrupted(_)), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        stopper.join().expect("it stops");
        // The next command runs on a core that was reset.
        device.run(&Command { insns: 0, ..ENDLESS }).expect("it runs");
        drop(device);
        assert_eq!(board.join().expect("the board ends"), 1);
    }

    #[test]
    fn a_poll_ends_before_the_command_and_others_use_the_device_meanwhile() {
        let (mut device, board) = open();
        let endless = device.submit(&ENDLESS).expect("it is queued");
        let begun = Instant::now();
        for _ in 0..3 {
            let polled = device.poll(endless, Duration::from_millis(20)).expect("it is polled");
            assert!(polled.is_none());
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        device.write(64, &[7; 8]).expect("it is written");
        let next = device.submit(&Command { insns: 0, ..ENDLESS }).expect("it is queued");
        assert!(device.poll(next, Duration::ZERO).expect("it is polled").is_none(), "it runs after the first");
        let mut bytes = [0; 8];
        device.read(64, &mut bytes).expect("it is read");
        assert_eq!(bytes, [7; 8]);
        let work = Interrupt::alone();
        work.stop();
        work.during(|| device.wait(endless)).expect_err("it is stopped");
        device.wait(next).expect("it runs");
        drop(device);
        assert_eq!(board.join().expect("the board ends"), 1);
    }
}
