//! Compares the model, which uses and moves many words in one step and skips what cannot have changed, with itself
//! word by word.
//!
//! `TILEWRIGHT_FUZZ_PROGRAMS` and `TILEWRIGHT_FUZZ_SEED` select more and other programs.

use super::*;
use crate::random::{FaultKind, STREAM, loosen, plant, sample_config_with, sample_dram};
use rand::seq::IndexedRandom;
use tilewright_hw::isa::{Gemm, Load, MOST_ROW_BYTES, Vector, illegal_reasons, print_program};

/// Returns how many programs to run, and the seed of their configurations: as for the differential tests.
fn asked(programs: u64, seed: u64) -> (u64, SmallRng) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("TILEWRIGHT_FUZZ_SEED").unwrap_or(1) * 100 + seed;
    (number("TILEWRIGHT_FUZZ_PROGRAMS").map_or(programs, |most| most.max(programs)), SmallRng::seed_from_u64(seed))
}

/// What a run ends with: everything that a report holds, or the error.
fn outcome(device: &mut Csim, command: &Command) -> String {
    match device.run(command) {
        Ok(report) => {
            let spans: String = report.spans.iter().map(|span| format!("{span:?}\n")).collect();
            format!("{:?}\n{spans}", RunReport { spans: Vec::new(), ..report })
        }
        Err(e) => e.to_string(),
    }
}

/// Runs a command on the model and the plain model, with and without values, each twice in a row. Panics if any two
/// reports or memories differ.
fn compare(config: &HwConfig, dram: DramSection, memory: &[u8], command: &Command, what: &str) {
    for timing_only in [true, false] {
        let options = CsimOptions { dram: Some(dram), timing_only, strict: false, spans: true };
        let [mut fast, mut plain] = [false, true].map(|plain| {
            let mut device = Csim::new(config.clone(), memory.len() as u64, options);
            device.plain = plain;
            device.memory_mut().copy_from_slice(memory);
            device
        });
        for run in 0..2 {
            let [a, b] = [&mut fast, &mut plain].map(|device| outcome(device, command));
            if a != b {
                let lines = a.lines().zip(b.lines()).find(|(a, b)| a != b).unwrap_or((&a, &b));
                panic!("{what}, run {run}, timing_only {timing_only}, {dram:?}, {config:?}\n{lines:?}");
            }
            assert!(fast.memory() == plain.memory(), "{what}, run {run}, {dram:?}, {config:?}: memories differ");
        }
    }
}

fn compare_program(program: &Program, dram: DramSection, what: &str) {
    let mut memory = vec![0; MEMORY_BYTES as usize];
    program.install_into(&mut memory);
    compare(&program.config, dram, &memory, &program.command(), &format!("{what}\n{}", program.text()));
}

#[test]
fn programs_run_as_word_by_word() {
    let (programs, mut rng) = asked(150, 1);
    for seed in 0..programs {
        let (config, dram) = (sample_config(&mut rng), sample_dram(&mut rng));
        let program = generate(&config, seed, 30);
        compare_program(&program, dram, "a correct program");
        compare_program(&loosen(&program, seed), dram, "a program that lacks tokens");
        if let Some(planted) = FaultKind::ALL.choose(&mut rng).and_then(|kind| plant(&config, *kind, seed)) {
            compare_program(&planted.program, dram, "a program with a fault");
        }
    }
}

/// Makes a load or store of random shape: from one word to many bursts, aligned or not, padded, packed.
fn transfer(config: &HwConfig, rng: &mut SmallRng, store: bool) -> Insn {
    let align = u64::from(config.dma_align);
    let whole = rng.random_bool(0.5);
    let unit = if whole { config.bus_bytes().max(16) } else { 1 };
    let largest = *[1, 4, 40, 40, 400].choose(rng).unwrap_or(&1);
    let row_bytes = (rng.random_range(1..=largest) * unit).min(MOST_ROW_BYTES);
    let [rows, planes] = [0, 1].map(|_| *[1, 1, 2, 3, 9].choose(rng).unwrap_or(&1));
    let mut aligned = |most: u64| {
        let unit = if whole { align.max(u64::from(unit)) } else { align };
        rng.random_range(0..=most / unit) * unit
    };
    let (offset, row_stride, plane_stride) = (aligned(0x8000), aligned(0x800), aligned(0x1800));
    let mem =
        if store { [Mem::Inp, Mem::Out][rng.random_range(0..2usize)] } else { Mem::ALL[rng.random_range(0..7usize)] };
    let pack = config.dma_pack && matches!(mem, Mem::Inp | Mem::Out) && rng.random_bool(0.2);
    let entry = rng.random_range(0..4);
    if store {
        let base = 1;
        let x = Store {
            base,
            mem,
            offset,
            entry,
            row_bytes,
            rows,
            planes,
            row_stride,
            plane_stride,
            pack,
            ..Store::default()
        };
        return Insn::new(x);
    }
    let mut pad = || if config.dma_pad && rng.random_bool(0.3) { rng.random_range(0..3) } else { 0 };
    let [x_before, x_after, y_before, y_after] = [pad(), pad(), pad(), pad()];
    Insn::new(Load {
        mem,
        offset,
        entry,
        row_bytes,
        rows,
        planes,
        row_stride,
        plane_stride,
        x_before,
        x_after,
        y_before,
        y_after,
        pack,
        ..Load::default()
    })
}

/// Makes a program of transfers and of work that takes time, with tokens that are balanced but for a few.
fn transfers(config: &HwConfig, rng: &mut SmallRng) -> Vec<Insn> {
    let mut insns: Vec<Insn> = Vec::new();
    let stores = rng.random_range(0..=4);
    while insns.len() < 24 {
        let count0 = rng.random_range(1..60);
        let mut insn = match rng.random_range(0..8) {
            0 => Insn::new(Gemm { uops: 1, count0, ..Gemm::default() }),
            1 => Insn::new(Vector { uops: 1, count0, ..Vector::default() }),
            n => transfer(config, rng, n < 2 + stores),
        };
        if !illegal_reasons(&insn, config).is_empty() || encode(&insn, config).is_err() {
            continue;
        }
        // The next instruction of another unit waits for this one.
        let before = insns.len().checked_sub(rng.random_range(1..4));
        if let Some(earlier) = before.and_then(|i| insns.get_mut(i))
            && earlier.unit() != insn.unit()
            && !earlier.push.contains(insn.unit())
            && rng.random_bool(0.5)
        {
            earlier.push.insert(insn.unit());
            insn.pop.insert(earlier.unit());
        }
        if rng.random_bool(0.004) {
            insn.pop.insert(Unit::ALL[(insn.unit() as usize + 1) % 4]);
        }
        insns.push(insn);
    }
    insns
}

#[test]
fn transfers_run_as_word_by_word() {
    let (programs, mut rng) = asked(1500, 2);
    let mut ends = [0; 3];
    for seed in 0..programs {
        let large = |config: &mut HwConfig| {
            (config.inp_depth, config.wgt_depth, config.acc_depth, config.out_depth) = (2048, 1024, 2048, 2048);
            (config.param_depth, config.gemm_uop_depth, config.vector_uop_depth) = (256, 1024, 1024);
        };
        let (config, dram) = (sample_config_with(&mut rng, large), sample_dram(&mut rng));
        let insns = transfers(&config, &mut rng);
        let stream: Vec<u8> = insns.iter().flat_map(|insn| encode(insn, &config).expect("encoded before")).collect();
        let mut memory = vec![0; MEMORY_BYTES as usize];
        memory[STREAM as usize..][..stream.len()].copy_from_slice(&stream);
        // Few rows pass a limit or the end of memory.
        let limit = *[0x10000, 0x20000].choose(&mut rng).unwrap_or(&0x20000);
        let results = *[0x20000, 0x20000, 0x20000, MEMORY_BYTES - 0x6000].choose(&mut rng).unwrap_or(&0x20000);
        let command = Command {
            stream_addr: STREAM,
            insns: insns.len() as u32,
            bases: vec![Base { addr: 0, limit }, Base { addr: results, limit }],
            cycle_limit: [None, None, Some(rng.random_range(1..4000))].choose(&mut rng).copied().flatten(),
        };
        let what = format!("seed {seed}, bases {:?}\n{}", command.bases, print_program(&insns));
        compare(&config, dram, &memory, &command, &what);
        let mut device = Csim::new(config, MEMORY_BYTES, CsimOptions { timing_only: true, ..CsimOptions::default() });
        device.memory_mut().copy_from_slice(&memory);
        ends[match device.run(&command) {
            Ok(report) => usize::from(report.trap.is_some()),
            Err(_) => 2,
        }] += 1;
    }
    assert!(ends.iter().all(|n| *n > 100), "{ends:?} ended, trapped, reached their limits");
}
