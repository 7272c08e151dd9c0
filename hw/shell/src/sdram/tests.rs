use super::*;
use crate::bench::settle;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tilewright_hw::flow::board::{Board, CoreMemory};
use tilewright_hw::flow::sdram::Sdram;
use tilewright_sim::board::sdram::{Pins, SdramChip};

/// A controller with a chip model that checks it; the bench plays the arbiter.
struct Bench<const BUS: usize, const BYTES: usize> {
    controller: Box<Controller<BUS, BYTES>>,
    chip: SdramChip,
    has_masks: bool,
    cycle: u64,
}

/// What the arbiter offers in a cycle.
#[derive(Clone, Default)]
struct Offer {
    /// Write, address, beats.
    request: Option<(bool, u64, u32)>,
    /// Bytes and strobes of a beat.
    beat: Option<(Vec<u8>, u64)>,
}

/// What the controller did in a cycle.
#[derive(Debug, Default, PartialEq)]
struct Done {
    accepted: bool,
    beat: Option<Vec<u8>>,
    taken: bool,
    last: bool,
    error: bool,
}

fn bytes_of<const N: usize>(value: Bits<N>) -> Vec<u8> {
    (0..N / 8).map(|byte| (0..8).fold(0, |sum, bit| sum | u8::from(value.get_bit(byte * 8 + bit)) << bit)).collect()
}

fn bits_of<const N: usize>(bytes: &[u8]) -> Bits<N> {
    (0..N.min(bytes.len() * 8))
        .fold(0.into(), |bits: Bits<N>, at| bits.replace_bit(at, bytes[at / 8] >> (at % 8) & 1 == 1))
}

/// The chip of a board, with a short wait at power-up.
fn chip(board: &str) -> Sdram {
    let CoreMemory::Sdram(mut chip) = Board::load(board).expect("it is there").memory else {
        panic!("{board} has an SDRAM")
    };
    chip.timing.power_up_us = 2.0;
    *chip
}

impl<const BUS: usize, const BYTES: usize> Bench<BUS, BYTES> {
    fn new(chip: &Sdram, mhz: f64) -> Self {
        let cycles = chip.cycles(mhz).expect("they go together");
        let mut controller = Box::new(Controller::new(chip.geometry(), cycles));
        controller.connect_all();
        check_all(controller.as_ref()).expect("the block is whole");
        let has_masks = chip.geometry().has_masks;
        Bench { controller, chip: SdramChip::new(chip, mhz), has_masks, cycle: 0 }
    }

    /// A bench whose power-up sequence is done.
    fn up(chip: &Sdram, mhz: f64) -> Self {
        let mut bench = Bench::new(chip, mhz);
        while !bench.controller.up.val() {
            bench.cycle(&Offer::default());
        }
        bench
    }

    fn cycle(&mut self, offer: &Offer) -> Done {
        let controller = self.controller.as_mut();
        let port = &mut controller.port;
        let (write, addr, beats) = offer.request.unwrap_or((false, 0, 1));
        port.request.next = offer.request.is_some();
        port.write.next = write;
        port.addr.next = addr.into();
        port.len.next = u64::from(beats - 1).into();
        port.w_valid.next = offer.beat.is_some();
        let noise = (vec![0xee; BYTES], u64::MAX);
        let (bytes, strobes) = offer.beat.as_ref().unwrap_or(&noise);
        port.w_data.next = bits_of(bytes);
        port.w_strb.next = bits_of(&strobes.to_le_bytes());
        settle(controller);
        let port = &controller.port;
        let done = Done {
            accepted: offer.request.is_some() && port.ready.val(),
            beat: port.r_valid.val().then(|| bytes_of(port.r_data.val())),
            taken: port.w_take.val(),
            last: port.last.val(),
            error: port.error.val() && (port.r_valid.val() || port.w_take.val()),
        };
        controller.clock.next = Clock { clk: true };
        settle(controller);
        // The chip's data is valid in the second half of the time between its edges.
        if let Some(word) = self.chip.out() {
            controller.pins.dq_i.next = u64::from(word).into();
        }
        settle(controller);
        controller.clock.next = Clock { clk: false };
        settle(controller);
        let pins = &controller.pins;
        let command =
            [&pins.ras_n, &pins.cas_n, &pins.we_n].iter().fold(0, |code, pin| code << 1 | u8::from(pin.val()));
        let seen = Pins {
            command,
            a: pins.a.val().to_u32(),
            ba: pins.ba.val().to_u32(),
            dqm: if self.has_masks { pins.dqm.val().to_u32() } else { 0 },
            dq: pins.dq_oe.val().then(|| pins.dq_o.val().to_u32()),
        };
        let outcome = self.chip.clock(seen);
        assert_eq!(outcome, Ok(()), "cycle {}", self.cycle);
        controller.pins.dq_i.next = u64::from(!self.chip.out().unwrap_or(0x5a5a_5a5a)).into();
        self.cycle += 1;
        done
    }

    fn idle(&mut self, cycles: usize) {
        for _ in 0..cycles {
            self.cycle(&Offer::default());
        }
    }

    /// Reads a burst; returns its bytes, and the cycles from the request to the last beat.
    fn read(&mut self, addr: u64, beats: u32) -> (Vec<u8>, u64) {
        let request = Offer { request: Some((false, addr, beats)), ..Offer::default() };
        let mut begun = self.cycle;
        while !self.cycle(&request).accepted {
            begun = self.cycle;
        }
        let mut bytes = Vec::new();
        loop {
            let done = self.cycle(&Offer::default());
            assert!(!done.error && !done.taken);
            bytes.extend(done.beat.iter().flatten());
            if done.last {
                assert_eq!(bytes.len(), beats as usize * BYTES);
                return (bytes, self.cycle - begun);
            }
        }
    }

    /// Writes a burst of bytes with their strobes; `rng` decides in which cycles a beat is offered.
    fn write(&mut self, addr: u64, beats: &[(Vec<u8>, u64)], rng: &mut SmallRng) {
        let request = Offer { request: Some((true, addr, beats.len() as u32)), ..Offer::default() };
        while !self.cycle(&request).accepted {}
        for (at, beat) in beats.iter().enumerate() {
            while rng.random_ratio(1, 5) {
                self.idle(1);
            }
            let offer = Offer { beat: Some(beat.clone()), ..Offer::default() };
            let done = std::iter::repeat_with(|| self.cycle(&offer)).find(|done| done.taken).expect("it is taken");
            assert_eq!((done.last, done.error, done.beat), (at + 1 == beats.len(), false, None));
        }
    }
}

/// Random bursts, compared with a plain byte array.
fn bursts<const BUS: usize, const BYTES: usize>(chip: &Sdram, mhz: f64, seed: u64) {
    let mut bench = Bench::<BUS, BYTES>::up(chip, mhz);
    let mut expected = bench.chip.bytes().to_vec();
    let mut rng = SmallRng::seed_from_u64(seed);
    let (size, row) = (expected.len() as u64, u64::from(chip.columns * chip.geometry().data_bytes()));
    for _ in 0..120 {
        let beats = rng.random_range(1..=if BYTES > 8 { 4 } else { 12 });
        let bytes = (beats * BYTES) as u64;
        // Around the ends of rows and banks, and at both ends of the memory.
        let near = [0, row, 4 * row, size / 2, size - bytes][rng.random_range(0..5)];
        let from = near.saturating_sub(bytes / 2) / BYTES as u64 * BYTES as u64;
        let addr = if near == size - bytes { near } else { from };
        if rng.random_ratio(1, 2) {
            let (found, _) = bench.read(addr, beats as u32);
            assert_eq!(found, expected[addr as usize..][..bytes as usize], "{mhz} MHz, {addr:#x}");
        } else {
            let all = if BYTES == 64 { u64::MAX } else { (1 << BYTES) - 1 };
            let beats: Vec<(Vec<u8>, u64)> = (0..beats)
                .map(|_| {
                    let strobes = [all, all, rng.random::<u64>() & all, 0][rng.random_range(0..4)];
                    ((0..BYTES).map(|_| rng.random()).collect(), strobes)
                })
                .collect();
            bench.write(addr, &beats, &mut rng);
            for (at, byte) in beats.iter().enumerate().flat_map(|(i, (bytes, strobes))| {
                (0..BYTES).filter(move |b| strobes >> b & 1 == 1).map(move |b| (i * BYTES + b, bytes[b]))
            }) {
                expected[addr as usize + at] = byte;
            }
        }
        bench.idle(rng.random_range(0..30));
    }
    bench.idle(20);
    assert!(bench.chip.bytes() == expected, "{mhz} MHz");
    assert!(bench.chip.refreshes() > 1, "{} cycles", bench.cycle);
}

/// The chip with a different word width.
fn with_data_bits(chip: Sdram, bits: usize) -> Sdram {
    let mut chip = chip;
    chip.pins.dq = (0..bits).map(|at| at.to_string()).collect();
    chip.pins.dqm.truncate(bits / 8);
    chip
}

#[test]
fn bursts_of_every_shape_keep_the_chips_times_and_its_bytes() {
    let masked = chip("ulx3s-85f");
    let bare = chip("colorlight-i5");
    let mut slow = chip("ulx3s-85f");
    slow.timing.cas_latency = 3;
    bursts::<16, 2>(&masked, 50.0, 1);
    bursts::<32, 4>(&slow, 80.0, 2);
    bursts::<64, 8>(&masked, 66.0, 3);
    bursts::<64, 8>(&bare, 50.0, 4);
    bursts::<32, 4>(&bare, 75.0, 5);
    bursts::<128, 16>(&with_data_bits(masked, 8), 13.0, 6);
    bursts::<512, 64>(&with_data_bits(bare, 16), 50.0, 7);
}

#[test]
fn a_word_comes_in_each_cycle_of_a_burst() {
    let mut bench = Bench::<64, 8>::up(&chip("ulx3s-85f"), 50.0);
    bench.read(0, 1);
    // With the row open, the first 16-bit word takes five cycles; none of these bursts meets a refresh.
    assert_eq!([1, 8, 32].map(|beats| bench.read(64, beats).1), [4 + 5, 32 + 5, 128 + 5]);
}

#[test]
fn refreshes_keep_their_rate_whatever_comes() {
    let mut bench = Bench::<64, 8>::up(&chip("ulx3s-85f"), 50.0);
    let begun = bench.cycle;
    while bench.cycle < begun + 4000 {
        bench.read(0x100, 64);
    }
    // Every 390 cycles.
    assert_eq!(bench.chip.refreshes(), (bench.cycle - begun) / 390);
}

#[test]
fn a_reset_ends_a_burst_and_keeps_the_bytes() {
    let mut bench = Bench::<64, 8>::up(&chip("colorlight-i5"), 50.0);
    let mut rng = SmallRng::seed_from_u64(1);
    let bytes: Vec<u8> = (0..64).collect();
    let beats: Vec<(Vec<u8>, u64)> = bytes.chunks(8).map(|beat| (beat.to_vec(), 0xff)).collect();
    bench.write(0x40, &beats, &mut rng);
    for cycles in 0..24 {
        // A read, and a write whose strobes select no byte.
        for (write, strobes) in [(false, 0), (true, 0)] {
            while !bench.cycle(&Offer { request: Some((write, 0x40, 8)), ..Offer::default() }).accepted {}
            for _ in 0..cycles {
                bench.cycle(&Offer { beat: Some((vec![0; 8], strobes)), ..Offer::default() });
            }
            bench.controller.reset.next = true;
            bench.idle(31);
            bench.controller.reset.next = false;
            assert_eq!(bench.read(0x40, 8).0, bytes, "{cycles} cycles");
        }
    }
}

#[test]
fn what_lies_outside_is_an_error_and_reaches_no_pin() {
    let mut bench = Bench::<64, 8>::up(&chip("colorlight-i5"), 50.0);
    let size = bench.chip.bytes().len() as u64;
    for write in [false, true] {
        while !bench.cycle(&Offer { request: Some((write, size, 3)), ..Offer::default() }).accepted {}
        let offer = Offer { beat: Some((vec![1; 8], 0xff)), ..Offer::default() };
        let all: Vec<Done> = (0..3).map(|_| bench.cycle(&offer)).collect();
        for (at, done) in all.iter().enumerate() {
            assert!(done.error && done.taken == write && done.beat.is_some() != write, "{done:?}");
            assert_eq!(done.last, at == 2);
        }
    }
    let noise = SdramChip::new(&chip("colorlight-i5"), 50.0);
    assert!(bench.chip.bytes() == noise.bytes());
    assert_eq!(bench.read(size - 8, 1).0, noise.bytes()[noise.bytes().len() - 8..]);
}
