use super::*;
use crate::bench::{settle, tick};
use crate::block_ram::BlockMemory;

const BYTES: u64 = 4096;

/// A 4 KiB memory on a 32-bit bus; the bench plays the core and the bridge.
struct Bench {
    memory: Box<BlockMemory<32, 4, 2>>,
    cycle: u64,
    /// Cycle, client, data, error, last.
    beats: Vec<(u64, bool, u32, bool, bool)>,
    acks: Vec<bool>,
    to_host: Vec<u8>,
}

/// What the core requests in a cycle.
#[derive(Default, Clone, Copy)]
struct Asks {
    read: Option<(bool, u64, u8)>,
    write: Option<(u64, u8)>,
    /// Data, strobes, last.
    data: Option<(u32, u8, bool)>,
}

impl Bench {
    fn new() -> Self {
        let mut memory = Box::new(BlockMemory::new(BYTES, "block"));
        memory.connect_all();
        check_all(memory.as_ref()).expect("the block is whole");
        memory.reset.next = true;
        tick(memory.as_mut(), |memory, level| memory.clock.next = level);
        memory.reset.next = false;
        Bench { memory, cycle: 0, beats: vec![], acks: vec![], to_host: vec![] }
    }

    /// Runs one cycle; returns which of the core's three handshakes completed.
    fn cycle(&mut self, asks: Asks) -> [bool; 3] {
        let memory = self.memory.as_mut();
        let bus = &mut memory.bus;
        bus.ar_valid.next = asks.read.is_some();
        let (client, addr, len) = asks.read.unwrap_or_default();
        (bus.ar_id.next, bus.ar_addr.next, bus.ar_len.next) = (client, addr.into(), u64::from(len).into());
        bus.aw_valid.next = asks.write.is_some();
        let (addr, len) = asks.write.unwrap_or_default();
        (bus.aw_addr.next, bus.aw_len.next) = (addr.into(), u64::from(len).into());
        bus.w_valid.next = asks.data.is_some();
        let (data, strobes, last) = asks.data.unwrap_or_default();
        (bus.w_data.next, bus.w_strb.next) = (u64::from(data).into(), u64::from(strobes).into());
        bus.w_last.next = last;
        memory.to_host.take.next = false;
        settle(memory);
        // The sender takes a byte whenever one is available.
        memory.to_host.take.next = memory.to_host.valid.val();
        settle(memory);
        if memory.to_host.take.val() {
            self.to_host.push(memory.to_host.data.val().to_u8());
        }
        let bus = &memory.bus;
        if bus.r_valid.val() {
            let data = bus.r_data.val().to_u32();
            self.beats.push((self.cycle, bus.r_id.val(), data, bus.r_error.val(), bus.r_last.val()));
        }
        if bus.b_valid.val() {
            self.acks.push(bus.b_error.val());
        }
        let done = [
            asks.read.is_some() && bus.ar_ready.val(),
            asks.write.is_some() && bus.aw_ready.val(),
            asks.data.is_some() && bus.w_ready.val(),
        ];
        tick(memory, |memory, level| memory.clock.next = level);
        self.cycle += 1;
        done
    }

    fn idle(&mut self, cycles: usize) {
        for _ in 0..cycles {
            self.cycle(Asks::default());
        }
    }

    fn read(&mut self, client: bool, addr: u64, beats: u8) {
        let asks = Asks { read: Some((client, addr, beats - 1)), ..Asks::default() };
        while !self.cycle(asks)[0] {}
    }

    fn write(&mut self, addr: u64, beats: &[(u32, u8)]) {
        let asks = Asks { write: Some((addr, beats.len() as u8 - 1)), ..Asks::default() };
        while !self.cycle(asks)[1] {}
        for (i, (data, strobes)) in beats.iter().enumerate() {
            let asks = Asks { data: Some((*data, *strobes, i + 1 == beats.len())), ..Asks::default() };
            while !self.cycle(asks)[2] {}
        }
    }

    /// Sends a host's frame: its body, then its commit.
    fn host(&mut self, kind: ToBoard, body: &[u8]) {
        for (i, byte) in body.iter().enumerate() {
            let from_host = &mut self.memory.from_host;
            from_host.kind.next = (kind as u64).into();
            from_host.valid.next = true;
            from_host.data.next = u64::from(*byte).into();
            settle(self.memory.as_mut());
            assert_eq!(self.memory.from_host.last.val(), i + 1 == body.len(), "byte {i}");
            self.idle(1);
            self.memory.from_host.valid.next = false;
            self.idle(8);
        }
        self.memory.from_host.commit.next = true;
        self.idle(1);
        self.memory.from_host.commit.next = false;
        self.idle(1);
    }
}

fn body(addr: u64, beats: u8, data: &[u8]) -> Vec<u8> {
    [&tilewright_hw::link::addr_bytes(addr)[..], &[beats - 1], data].concat()
}

#[test]
fn the_host_writes_what_the_core_reads_and_the_other_way_round() {
    let mut bench = Bench::new();
    let bytes: Vec<u8> = (1..=12).collect();
    bench.host(ToBoard::WriteMemory, &body(0x100, 3, &bytes));
    bench.read(true, 0x100, 3);
    bench.idle(5);
    let data: Vec<_> = bench.beats.iter().map(|beat| (beat.1, beat.2, beat.3, beat.4)).collect();
    let expected = [0x0403_0201, 0x0807_0605, 0x0c0b_0a09];
    assert_eq!(data, [0, 1, 2].map(|i| (true, expected[i], false, i == 2)));
    // Bytes without a strobe keep their values.
    bench.write(0x104, &[(0xaabb_ccdd, 0b1110), (0x1122_3344, 0b0001)]);
    bench.idle(3);
    assert_eq!(bench.acks, [false]);
    bench.host(ToBoard::ReadMemory, &body(0x100, 4, &[]));
    bench.idle(60);
    assert_eq!(bench.to_host, [1, 2, 3, 4, 5, 0xcc, 0xbb, 0xaa, 0x44, 10, 11, 12, 0, 0, 0, 0]);
}

#[test]
fn reads_follow_each_other_without_a_pause() {
    let mut bench = Bench::new();
    for (client, addr, beats) in [(false, 0, 8), (true, 0x40, 8), (false, 0x80, 1), (true, 0xc0, 8)] {
        bench.read(client, addr, beats);
    }
    bench.idle(20);
    let first = bench.beats[0].0;
    let cycles: Vec<u64> = bench.beats.iter().map(|beat| beat.0 - first).collect();
    assert_eq!(cycles, (0..25).collect::<Vec<u64>>());
    let lasts: Vec<usize> = bench.beats.iter().enumerate().filter(|(_, beat)| beat.4).map(|(i, _)| i).collect();
    assert_eq!(lasts, [7, 15, 16, 24]);
}

#[test]
fn reads_and_writes_take_turns() {
    let mut bench = Bench::new();
    let mut order = String::new();
    let mut left = 0;
    for _ in 0..100 {
        let asks = Asks {
            read: Some((true, 0x20, 3)),
            write: (left == 0).then_some((0x40, 1)),
            data: (left != 0).then_some((7, 15, left == 1)),
        };
        let [read, write, beat] = bench.cycle(asks);
        order.extend(read.then_some('r').into_iter().chain(write.then_some('w')));
        left = if write { 2 } else { left - i32::from(beat) };
    }
    assert!(order.len() > 20 && order[..20].chars().zip(order[1..].chars()).all(|(a, b)| a != b), "{order}");
}

#[test]
fn what_lies_outside_is_an_error_and_changes_nothing() {
    let mut bench = Bench::new();
    bench.write(0, &[(0x5555_5555, 15)]);
    bench.write(BYTES, &[(u32::MAX, 15), (u32::MAX, 15)]);
    bench.read(false, BYTES << 3, 2);
    bench.read(false, 0, 2);
    bench.idle(5);
    assert_eq!(bench.acks, [false, true]);
    let errors: Vec<_> = bench.beats.iter().map(|beat| (beat.3, beat.4)).collect();
    assert_eq!(errors, [(true, false), (true, true), (false, false), (false, true)]);
    assert_eq!((bench.beats[2].2, bench.beats[3].2), (0x5555_5555, 0));
}
