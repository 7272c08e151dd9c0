use std::collections::VecDeque;

use super::*;
use crate::bench::{settle, tick};
use crate::bytes::MemoryBus;
use crate::host_memory::HostMemory;
use tilewright_hw::link::{self, ToBoard, ToHost, frame};

/// A bridge with its memory at the host; the bench plays the link and the core.
#[derive(LogicBlock)]
struct Board<const BUS: usize, const BYTES: usize, const LOG: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<Out, Bit>,
    pub from_link: LinkBytes,
    pub to_link: SentBytes,
    pub regs: RegisterPort,
    pub irq: Signal<In, Bit>,
    pub bus: MemoryBus<BUS, BYTES>,
    bridge: Bridge,
    memory: HostMemory<BUS, BYTES, LOG>,
}

impl<const BUS: usize, const BYTES: usize, const LOG: usize> Logic for Board<BUS, BYTES, LOG> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, bridge, memory);
        LinkBytes::link(&mut self.from_link, &mut self.bridge.from_link);
        SentBytes::link(&mut self.to_link, &mut self.bridge.to_link);
        RegisterPort::link(&mut self.regs, &mut self.bridge.regs);
        self.bridge.irq.next = self.irq.val();
        self.bridge.memory_up.next = self.memory.up.val();
        self.reset.next = self.bridge.reset.val();
        self.memory.reset.next = self.bridge.reset.val();
        ReceivedBody::join(&mut self.bridge.to_memory, &mut self.memory.from_host);
        SentBody::join(&mut self.bridge.from_memory, &mut self.memory.to_host);
        MemoryBus::<BUS, BYTES>::link(&mut self.bus, &mut self.memory.bus);
    }
}

/// What the bench saw on the core's side.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    sent: Vec<u8>,
    writes: Vec<(u32, u32)>,
    /// Read beats: client, bytes, error, last.
    beats: Vec<(bool, Vec<u8>, bool, bool)>,
    /// Write answers: error.
    acks: Vec<bool>,
    resets: u32,
}

/// A write of the core: address and beats with their strobes.
struct Write {
    addr: u64,
    beats: Vec<(Vec<u8>, u64)>,
}

struct Bench<const BUS: usize, const BYTES: usize, const LOG: usize> {
    board: Box<Board<BUS, BYTES, LOG>>,
    seen: Seen,
    reads: VecDeque<(bool, u64, u8)>,
    write: Option<Write>,
    was_reset: bool,
    /// Zero bytes that resync the link.
    run: usize,
}

/// The bytes of a simulator value.
fn bytes_of<const N: usize>(value: Bits<N>) -> Vec<u8> {
    (0..N / 8).map(|byte| (0..8).fold(0, |sum, bit| sum | u8::from(value.get_bit(byte * 8 + bit)) << bit)).collect()
}

fn bits_of<const N: usize>(bytes: &[u8]) -> Bits<N> {
    let mut value: Bits<N> = 0.into();
    for (at, byte) in bytes.iter().enumerate() {
        for bit in 0..8.min(N) {
            value = value.replace_bit(at * 8 + bit, byte >> bit & 1 == 1);
        }
    }
    value
}

impl<const BUS: usize, const BYTES: usize, const LOG: usize> Bench<BUS, BYTES, LOG> {
    fn new() -> Self {
        let config = HwConfig { bus_bits: BUS as u32, max_burst_beats: 4, ..HwConfig::default() };
        let mut bridge = Bridge::new(&config, MemorySide::Host);
        // The simulator is slow, and its clock is steady from the start.
        bridge.power_on = Reset::new(3);
        let mut board = Box::new(Board {
            clock: Default::default(),
            reset: Default::default(),
            from_link: Default::default(),
            to_link: Default::default(),
            regs: Default::default(),
            irq: Default::default(),
            bus: Default::default(),
            bridge,
            memory: HostMemory::new(&config),
        });
        board.connect_all();
        check_all(board.as_ref()).expect("the block is whole");
        let run = link::resync_bytes(&config);
        let mut bench =
            Bench { board, seen: Seen::default(), reads: VecDeque::new(), write: None, was_reset: false, run };
        bench.idle(60);
        assert_eq!(bench.take_sent(), hello::<LOG>());
        bench.seen.resets = 0;
        bench
    }

    /// Runs one cycle, with or without a byte from the host.
    fn cycle(&mut self, byte: Option<u8>, ready: bool) {
        let board = self.board.as_mut();
        board.from_link.valid.next = byte.is_some();
        board.from_link.data.next = u64::from(byte.unwrap_or(0x5a)).into();
        board.to_link.ready.next = ready;
        board.bus.ar_valid.next = !self.reads.is_empty();
        if let Some((client, addr, len)) = self.reads.front() {
            board.bus.ar_id.next = *client;
            board.bus.ar_addr.next = (*addr).into();
            board.bus.ar_len.next = u64::from(*len).into();
        }
        let beats = self.write.as_ref().map_or(0, |write| write.beats.len());
        // The address is set to zero once it is accepted.
        board.bus.aw_valid.next = self.write.as_ref().is_some_and(|write| write.addr != 0);
        board.bus.w_valid.next = beats != 0;
        if let Some(write) = &self.write {
            board.bus.aw_addr.next = write.addr.into();
            board.bus.aw_len.next = (beats as u64).saturating_sub(1).into();
            if let Some((data, strobes)) = write.beats.first() {
                board.bus.w_data.next = bits_of(data);
                board.bus.w_strb.next = bits_of(&strobes.to_le_bytes()[..BYTES.div_ceil(8)]);
                board.bus.w_last.next = beats == 1;
            }
        }
        // A register reads as its own address plus a fixed pattern.
        settle(board);
        board.regs.rdata.next = (0x8765_0000 + board.regs.addr.val().to_u64()).into();
        settle(board);

        if board.regs.valid.val() && board.regs.write.val() {
            self.seen.writes.push((board.regs.addr.val().to_u64() as u32, board.regs.wdata.val().to_u32()));
        }
        if board.to_link.valid.val() && ready {
            self.seen.sent.push(board.to_link.data.val().to_u8());
        }
        if board.bus.r_valid.val() {
            self.seen.beats.push((
                board.bus.r_id.val(),
                bytes_of(board.bus.r_data.val()),
                board.bus.r_error.val(),
                board.bus.r_last.val(),
            ));
        }
        if board.bus.b_valid.val() {
            self.seen.acks.push(board.bus.b_error.val());
        }
        if board.bus.ar_valid.val() && board.bus.ar_ready.val() {
            self.reads.pop_front();
        }
        if let Some(write) = &mut self.write {
            if board.bus.aw_valid.val() && board.bus.aw_ready.val() {
                write.addr = 0;
            } else if board.bus.w_valid.val() && board.bus.w_ready.val() {
                write.beats.remove(0);
            }
        }
        self.seen.resets += u32::from(board.reset.val() && !self.was_reset);
        self.was_reset = board.reset.val();
        tick(board, |board, level| board.clock.next = level);
    }

    fn idle(&mut self, cycles: usize) {
        (0..cycles).for_each(|_| self.cycle(None, true));
    }

    /// Sends bytes, one every forty cycles like the fastest link; the link takes a byte to the host every fourth cycle.
    fn send(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.cycle(Some(*byte), false);
            (0..39).for_each(|cycle| self.cycle(None, cycle % 4 == 0));
        }
    }

    fn take_sent(&mut self) -> Vec<u8> {
        self.idle(40);
        std::mem::take(&mut self.seen.sent)
    }
}

fn hello<const LOG: usize>() -> Vec<u8> {
    frame(ToHost::Hello as u8, &[link::VERSION, LOG as u8, 0, 0])
}

fn write_reg(addr: u16, value: u32) -> Vec<u8> {
    frame(ToBoard::WriteReg as u8, &[&addr.to_le_bytes()[..], &value.to_le_bytes()].concat())
}

fn read_reg(addr: u16) -> Vec<u8> {
    frame(ToBoard::ReadReg as u8, &addr.to_le_bytes())
}

#[test]
fn registers_are_written_and_read() {
    let mut bench = Bench::<16, 2, 1>::new();
    bench.send(&write_reg(0x124, 0x1234_89ab));
    assert_eq!(bench.seen.writes, [(0x124, 0x1234_89ab)]);
    assert_eq!(bench.take_sent(), frame(ToHost::Done as u8, &[]));
    // Idle bytes of both kinds between frames mean nothing.
    bench.send(&[0, 0xff, 0]);
    bench.send(&read_reg(0xf5c));
    assert_eq!(bench.take_sent(), frame(ToHost::Value as u8, &0x8765_0f5c_u32.to_le_bytes()));
    assert_eq!(bench.seen.writes.len(), 1);
}

#[test]
fn what_is_not_understood_is_refused_until_the_link_begins_anew() {
    let mut broken = write_reg(0x10, 1);
    for (bad, reason) in [(8, 1), (7, 1), (3, 1), (0, 2)] {
        let mut bench = Bench::<16, 2, 1>::new();
        broken[bad] ^= 0x40;
        bench.send(&broken);
        broken[bad] ^= 0x40;
        assert_eq!(bench.take_sent(), frame(ToHost::Refused as u8, &[reason]));
        bench.reads.push_back((false, 64, 0));
        bench.send(&read_reg(0));
        assert!(bench.take_sent().is_empty(), "nothing is sent after a refusal");
        bench.reads.clear();
        bench.send(&vec![0; bench.run]);
        assert_eq!(bench.take_sent(), hello::<1>());
        assert_eq!(bench.seen.resets, 1);
        assert_eq!(bench.seen.writes, []);
        bench.send(&read_reg(4));
        assert_eq!(bench.take_sent(), frame(ToHost::Value as u8, &0x8765_0004_u32.to_le_bytes()));
    }
    // Kinds for the other memory and for the other direction are unknown too.
    for kind in [ToBoard::WriteMemory as u8, ToBoard::ReadMemory as u8, ToHost::Done as u8, 0x7f] {
        let mut bench = Bench::<16, 2, 1>::new();
        bench.send(&[kind]);
        assert_eq!(bench.take_sent(), frame(ToHost::Refused as u8, &[2]));
    }
}

#[test]
fn a_run_of_zeros_begins_anew_in_the_middle_of_everything() {
    let mut bench = Bench::<16, 2, 1>::new();
    for start in [&write_reg(0, 0)[..3], &[ToBoard::ReadData as u8, 1, 3, 0, 7], &[]] {
        bench.send(start);
        bench.send(&vec![0; bench.run - 1]);
        if start.is_empty() {
            assert_eq!(bench.seen.resets, 0, "one zero less is not enough");
        }
        bench.send(&[0]);
        assert_eq!(bench.seen.resets, 1);
        bench.seen.resets = 0;
        let sent = bench.take_sent();
        assert!(sent.ends_with(&hello::<1>()), "{sent:?}");
        bench.seen.beats.clear();
    }
    bench.send(&read_reg(0));
    assert_eq!(bench.take_sent(), frame(ToHost::Value as u8, &0x8765_0000_u32.to_le_bytes()));
}

#[test]
fn the_interrupt_is_told_when_it_rises() {
    let mut bench = Bench::<16, 2, 1>::new();
    bench.board.irq.next = true;
    assert_eq!(bench.take_sent(), frame(ToHost::Interrupt as u8, &[]));
    bench.board.irq.next = false;
    assert!(bench.take_sent().is_empty());
    bench.board.irq.next = true;
    assert_eq!(bench.take_sent(), frame(ToHost::Interrupt as u8, &[]));
}

fn read_request(client: u8, addr: u64, beats: u8) -> Vec<u8> {
    frame(ToHost::ReadRequest as u8, &[&[client][..], &link::addr_bytes(addr), &[beats - 1]].concat())
}

fn read_data(client: u8, beats: u8, status: u8, data: &[u8]) -> Vec<u8> {
    frame(ToBoard::ReadData as u8, &[&[client, beats - 1, status], data].concat())
}

fn reads_and_writes<const BUS: usize, const BYTES: usize, const LOG: usize>() {
    let mut bench = Bench::<BUS, BYTES, LOG>::new();
    let bytes = |n: usize, seed: usize| (0..n).map(|i| (i * 29 + seed * 7 + i / 13) as u8).collect::<Vec<u8>>();
    // Reads of both clients, answered in reverse order, one of them with an error.
    bench.reads.extend([(false, 0xa5_1234_5600, 1), (true, 0x40, 2)]);
    assert_eq!(bench.take_sent(), [read_request(0, 0xa5_1234_5600, 2), read_request(1, 0x40, 3)].concat());
    let (three, two) = (bytes(3 * BYTES, 1), bytes(2 * BYTES, 2));
    bench.send(&read_data(1, 3, 0, &three));
    bench.send(&read_data(0, 2, 1, &two));
    let beats = |client, data: &[u8], error| -> Vec<_> {
        let count = data.len() / BYTES;
        data.chunks(BYTES).enumerate().map(|(i, beat)| (client, beat.to_vec(), error, i + 1 == count)).collect()
    };
    assert_eq!(bench.seen.beats, [beats(true, &three, false), beats(false, &two, true)].concat());

    // Writes of three beats and of one; the core is answered only after the CRC was checked.
    let all = if BYTES == 64 { u64::MAX } else { (1 << BYTES) - 1 };
    for (count, first, last) in [(3, all & !1, 1), (1, 2, 2)] {
        let data = bytes(count * BYTES, count);
        let strobes = |i: usize| {
            if i == 0 {
                first
            } else if i + 1 == count {
                last
            } else {
                all
            }
        };
        bench.write = Some(Write {
            addr: 0x12_3456_7800,
            beats: data.chunks(BYTES).enumerate().map(|(i, beat)| (beat.to_vec(), strobes(i))).collect(),
        });
        let strobe_bytes = BYTES.div_ceil(8);
        let body = [
            &link::addr_bytes(0x12_3456_7800)[..],
            &[count as u8 - 1],
            &first.to_le_bytes()[..strobe_bytes],
            &data,
            &last.to_le_bytes()[..strobe_bytes],
        ];
        bench.idle(count * BYTES + 20);
        assert_eq!(bench.take_sent(), frame(ToHost::WriteRequest as u8, &body.concat()));
        assert!(bench.write.as_ref().is_some_and(|write| write.beats.is_empty()), "each beat was taken once");
        let error = count == 1;
        let answer = frame(ToBoard::WriteDone as u8, &[u8::from(error)]);
        bench.send(&answer[..answer.len() - 1]);
        assert!(bench.seen.acks.is_empty());
        bench.send(&answer[answer.len() - 1..]);
        assert_eq!(std::mem::take(&mut bench.seen.acks), [error]);
    }
}

#[test]
fn reads_and_writes_cross_the_link_at_every_bus_width() {
    reads_and_writes::<16, 2, 1>();
    reads_and_writes::<32, 4, 2>();
    reads_and_writes::<64, 8, 3>();
    reads_and_writes::<128, 16, 4>();
    reads_and_writes::<256, 32, 5>();
    reads_and_writes::<512, 64, 6>();
}

#[test]
fn register_frames_come_between_memory_frames() {
    let mut bench = Bench::<32, 4, 2>::new();
    bench.reads.extend([(true, 0x80, 0), (true, 0x84, 0)]);
    bench.send(&read_reg(0x14));
    assert_eq!(
        bench.take_sent(),
        [
            read_request(1, 0x80, 1),
            read_request(1, 0x84, 1),
            frame(ToHost::Value as u8, &0x8765_0014_u32.to_le_bytes())
        ]
        .concat()
    );
    // A value goes out while read data come in.
    let read = read_reg(0x28);
    bench.send(&read[..read.len() - 1]);
    bench.cycle(read.last().copied(), false);
    bench.cycle(None, false);
    for byte in read_data(1, 1, 0, &[1, 2, 3, 4]) {
        bench.cycle(Some(byte), true);
        bench.idle(1);
    }
    assert_eq!(bench.seen.beats, [(true, vec![1, 2, 3, 4], false, true)]);
    assert_eq!(bench.take_sent(), frame(ToHost::Value as u8, &0x8765_0028_u32.to_le_bytes()));
}
