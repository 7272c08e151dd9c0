//! Checks the throughput of the units when only their own timing limits them, on the preset 1x16x16 with its bus of 8
//! bytes and its memory latency of 64 cycles. The measure is cycles between retirements in a long stream.

use tilewright_hw::HwConfig;
use tilewright_hw::config::DramSection;
use tilewright_hw::device::{Base, Command, Device, Span};
use tilewright_hw::isa::{Unit, encode, parse_program};
use tilewright_sim::{Rtl, RtlOptions};

const MEMORY: u64 = 8 << 20;
const STREAM: u64 = 4 << 20;

struct Rig {
    rtl: Rtl,
}

impl Rig {
    fn new() -> Option<Rig> {
        Rig::with(|_| {})
    }

    /// Builds the design with another memory.
    fn with(change: impl FnOnce(&mut DramSection)) -> Option<Rig> {
        if !tilewright_testing::has_program("verilator") {
            return None;
        }
        let config = HwConfig::load("1x16x16").expect("a preset");
        let mut dram = config.dram;
        change(&mut dram);
        let options = RtlOptions { assertions: true, spans: true, dram: Some(dram), ..RtlOptions::default() };
        Some(Rig { rtl: Rtl::new(config, MEMORY, &options).expect("the design builds") })
    }

    /// Runs a program and returns the spans of its instructions.
    fn run(&mut self, program: &str) -> Vec<Span> {
        let insns = parse_program(program).expect("a program");
        let stream: Vec<u8> = insns.iter().flat_map(|insn| encode(insn, self.rtl.config()).expect("fits")).collect();
        self.rtl.write(STREAM, &stream).expect("inside memory");
        let command = Command {
            stream_addr: STREAM,
            insns: insns.len() as u32,
            bases: vec![Base { addr: 0, limit: STREAM }],
            cycle_limit: Some(1 << 22),
        };
        let report = self.rtl.run(&command).expect("ends");
        assert_eq!(report.trap, None);
        report.spans
    }

    /// Runs a program and returns the cycles between the retirements of two instructions of a unit.
    fn cycles(&mut self, program: &str, unit: Unit, from: usize, to: usize) -> u64 {
        let spans = self.run(program);
        let ends: Vec<u64> = spans.iter().filter(|s| s.unit == unit).map(|s| s.end.expect("retired")).collect();
        ends[to] - ends[from]
    }
}

fn lines(n: usize, line: impl Fn(usize) -> String) -> String {
    (0..n).map(|k| line(k) + "\n").collect()
}

/// Prints a row of the table and returns the share.
fn row(what: &str, done: u64, cycles: u64) -> f64 {
    let share = done as f64 / cycles as f64;
    println!("{what:58} {cycles:7} cycles, {:6.2} %", share * 100.0);
    share
}

#[test]
fn loads_fill_the_bus() {
    let Some(mut rig) = Rig::new() else { return };
    // The stream itself takes 4 beats per instruction on the same bus.
    for bytes in [1024u64, 256, 64] {
        let program =
            lines(240, |k| format!("load mem=wgt entry={} row_bytes={bytes} offset={}", k % 64 * 4, k * 1024));
        let cycles = rig.cycles(&program, Unit::Load, 40, 200);
        let share = row(&format!("loads of {bytes} bytes, one row each"), 160 * bytes / 8, cycles);
        assert_eq!(cycles, 160 * (bytes / 8 + 4), "{share}");
    }
    for bytes in [8u64, 16, 32, 64] {
        for align in [0u64, 1, 7] {
            let program = lines(12, |k| {
                let (entry, at) = (k % 2 * 1024, align + k as u64 * 4096);
                format!("load mem=inp entry={entry} row_bytes={bytes} rows=200 row_stride=128 offset={at}")
            });
            let cycles = rig.cycles(&program, Unit::Load, 4, 10);
            let (beats, chunks) = ((align + bytes).div_ceil(8), bytes.div_ceil(8));
            let share = row(
                &format!(
                    "loads of rows of {bytes} bytes at {align}: {:.2} bytes/cycle",
                    1200.0 * bytes as f64 / cycles as f64
                ),
                1200 * beats.max(chunks),
                cycles,
            );
            assert_eq!(share, 1.0);
        }
    }
}

#[test]
fn stores_fill_the_bus() {
    let Some(mut rig) = Rig::new() else { return };
    let moves = |n: u64, a: u64| {
        let (mut at, mut left, mut count) = (a, n, 0);
        while left > 0 {
            let step = left.min(8 - at % 8);
            (at, left, count) = (at + step, left - step, count + 1);
        }
        count
    };
    for bytes in [8u64, 16, 32, 64] {
        for align in [0u64, 1, 7] {
            let fill = "load mem=out row_bytes=16384 push=store\n".to_string();
            let program = fill
                + &lines(12, |k| {
                    let at = align + k as u64 * 4096;
                    let pop = if k == 0 { " pop=load" } else { "" };
                    format!("store mem=out row_bytes={bytes} rows=200 row_stride=128 offset={at}{pop}")
                });
            let cycles = rig.cycles(&program, Unit::Store, 4, 10);
            let share = row(
                &format!(
                    "stores of rows of {bytes} bytes at {align}: {:.2} bytes/cycle",
                    1200.0 * bytes as f64 / cycles as f64
                ),
                1200 * moves(bytes, align).max(bytes.div_ceil(8)),
                cycles,
            );
            assert_eq!(share, 1.0);
        }
    }
}

/// Alternates loads and stores of the same size, on a memory whose directions share bandwidth and on one where they do
/// not.
#[test]
fn loads_and_stores_go_on_at_once() {
    for shared in [true, false] {
        let Some(mut rig) = Rig::with(|dram| dram.shared = shared) else { return };
        for bytes in [1024u64, 256] {
            let program = lines(200, |k| {
                let (entry, at) = (k % 16 * 64, k * 1024);
                format!(
                    "load mem=inp entry={entry} row_bytes={bytes} offset={at}\n\
                     store mem=out entry={entry} row_bytes={bytes} offset={}",
                    (2 << 20) + at
                )
            });
            // Loads can run ahead of stores, so take the slower of the two.
            let cycles = [Unit::Load, Unit::Store].map(|unit| rig.cycles(&program, unit, 40, 160));
            let cycles = cycles[0].max(cycles[1]);
            let (data, stream) = (120 * bytes / 8, 120 * 2 * 4);
            let beats = if shared { 2 * data + stream } else { data + stream };
            let ways = if shared { "shared" } else { "apart" };
            let share = row(&format!("loads alongside stores of {bytes} bytes, bandwidth {ways}"), beats, cycles);
            assert!((0.99..=1.0).contains(&share), "{share}");
        }
    }
}

/// Writes micro-ops whose indices are their own number, and returns the instructions that load them.
fn micro_ops(rig: &mut Rig) -> String {
    use tilewright_hw::isa::{GemmUop, VectorUop};
    let config = rig.rtl.config().clone();
    let guops: Vec<u8> = (0..64).flat_map(|k| GemmUop { acc: k, inp: k, wgt: k }.to_bytes(&config)).collect();
    let vuops: Vec<u8> = (0..64).flat_map(|k| VectorUop { dst: k, a: k, b: k }.to_bytes(&config)).collect();
    rig.rtl.write(0, &guops).expect("inside memory");
    rig.rtl.write(4096, &vuops).expect("inside memory");
    format!(
        "load mem=guop row_bytes={}\nload mem=vuop row_bytes={} offset=4096\nload mem=param row_bytes=1440 offset=8192 push=gemm,vector\n",
        guops.len(),
        vuops.len()
    )
}

#[test]
fn products_follow_each_other() {
    let Some(mut rig) = Rig::new() else { return };
    for uops in [32u64, 8] {
        let program = micro_ops(&mut rig)
            + &lines(400, |k| format!("gemm uops={uops} acc={}{}", k % 8 * 64, if k == 0 { " pop=load" } else { "" }));
        let cycles = rig.cycles(&program, Unit::Gemm, 50, 350);
        let share = row(&format!("gemm, {uops} micro-ops an instruction"), 300 * uops, cycles);
        assert_eq!(share, 1.0);
    }
}

#[test]
fn vector_works_beside_gemm() {
    let Some(mut rig) = Rig::new() else { return };
    let pop = |k: usize| if k == 0 { " pop=load" } else { "" };
    // acc has four banks of 512 entries. Operands and results use three of them.
    let program = micro_ops(&mut rig)
        + &lines(100, |k| format!("vector op=add dst=acc a=acc b=acc uops=32 count0=4 a_at=512 b_at=1024{}", pop(k)));
    let cycles = rig.cycles(&program, Unit::Vector, 10, 90);
    let share = row("vector additions of two acc rows", 80 * 128, cycles);
    assert_eq!(share, 1.0);

    let gemm = |k: usize| format!("gemm uops=32 count0=8{}\n", pop(k));
    let requant = |k: usize| {
        format!("vector op=requant dst=out a=acc b=param descriptor=4 uops=32 count0=4 a_at=1024 b0=0{}", pop(k))
    };
    let alone = micro_ops(&mut rig) + &lines(100, gemm);
    let alone = rig.cycles(&alone, Unit::Gemm, 10, 90);
    let program = micro_ops(&mut rig) + &lines(100, |k| gemm(k) + &requant(k));
    let both = rig.cycles(&program, Unit::Gemm, 10, 90);
    row("gemm alone", 80 * 256, alone);
    row("gemm while vector requantizes (8 lanes: 2 cycles a row)", 80 * 256, both);
    assert_eq!(alone, both);
}
