mod plain;

use super::*;
use crate::access::{Context, access};
use crate::random::{MEMORY_BYTES, Program, first_unordered, generate, sample_config};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tilewright_hw::device::{Base, Device};
use tilewright_hw::isa::{Unit, UnitSet, encode, parse_program};

const STRICT: CsimOptions = CsimOptions { dram: None, timing_only: false, strict: true, spans: false };

fn run(program: &Program) -> (Csim, Result<RunReport, DeviceError>) {
    let mut device = Csim::new(program.config.clone(), MEMORY_BYTES, STRICT);
    program.install(&mut device).expect("inside memory");
    let outcome = device.run(&program.command());
    (device, outcome)
}

#[test]
fn correct_programs_are_strictly_correct() {
    let mut rng = SmallRng::seed_from_u64(11);
    for seed in 0..200 {
        let program = generate(&sample_config(&mut rng), seed, 30);
        let (device, outcome) = run(&program);
        let report = outcome.unwrap_or_else(|e| panic!("{e}\n{}", program.text()));
        assert_eq!((report.trap, device.diagnoses()), (None, &[][..]), "{}", program.text());
    }
}

/// Removes the push and the pop of a random token. Returns whether there was one.
fn without_a_token(program: &mut Program, rng: &mut SmallRng) -> bool {
    let [from, to] = [0, 1].map(|_| Unit::ALL[rng.random_range(0..4usize)]);
    let strike = |set: UnitSet, unit: Unit| set.iter().filter(|u| *u != unit).collect::<UnitSet>();
    let insns = &program.insns;
    let pops: Vec<usize> = (0..insns.len()).filter(|&i| insns[i].unit() == to && insns[i].pop.contains(from)).collect();
    let pushes: Vec<usize> =
        (0..insns.len()).filter(|&i| insns[i].unit() == from && insns[i].push.contains(to)).collect();
    if from == to || pops.is_empty() {
        return false;
    }
    let token = rng.random_range(0..pops.len());
    program.insns[pops[token]].pop = strike(program.insns[pops[token]].pop, from);
    program.insns[pushes[token]].push = strike(program.insns[pushes[token]].push, to);
    let config = &program.config;
    program.stream = program.insns.iter().flat_map(|insn| encode(insn, config).expect("encoded before")).collect();
    true
}

/// Returns whether two instructions conflict that tokens do not order, by running the program in order.
fn has_a_race(program: &Program) -> bool {
    let mut fsim = Fsim::new(program.config.clone(), MEMORY_BYTES);
    program.install(&mut fsim).expect("inside memory");
    let command = program.command();
    let mut accesses = Vec::new();
    let mut stepper = fsim.step_through(&command).expect("a legal command");
    for insn in &program.insns {
        let context = Context {
            config: &program.config,
            bases: &command.bases,
            memory_bytes: MEMORY_BYTES,
            micro_ops: stepper.device().micro_ops(),
            most: u64::MAX,
        };
        accesses.push(access(&context, &insn.op));
        stepper.step().expect("in program order it is correct");
    }
    first_unordered(&program.insns, &accesses, &program.config).is_some()
}

#[test]
fn programs_that_lack_a_token_are_told_so() {
    let mut rng = SmallRng::seed_from_u64(12);
    let (mut races, mut silent) = (0, 0);
    for seed in 0..400 {
        let mut program = generate(&sample_config(&mut rng), seed, 20);
        if !without_a_token(&mut program, &mut rng) {
            continue;
        }
        let (device, outcome) = run(&program);
        let found = device.diagnoses();
        if !has_a_race(&program) {
            silent += 1;
            assert_eq!(outcome.expect("nothing is wrong").trap, None, "seed {seed}\n{}", program.text());
            continue;
        }
        races += 1;
        let trapped = outcome.is_ok_and(|report| report.trap.is_some());
        let told = found.iter().any(|d| matches!(d.kind, DiagnosisKind::Race | DiagnosisKind::Port));
        assert!(told || trapped, "seed {seed}\n{}", program.text());
    }
    assert!(races > 100 && silent > 5, "{races} with a race, {silent} without");
}

/// Creates a strict device with 4 KiB written by the host, and the stream of a textual program at 8 KiB.
fn device_with(text: &str) -> (Csim, Command) {
    let config = HwConfig::default();
    let mut device = Csim::new(config.clone(), 1 << 20, STRICT);
    let insns = parse_program(text).expect("a program");
    let stream: Vec<u8> = insns.iter().flat_map(|insn| encode(insn, &config).expect("legal")).collect();
    device.write(0, &[0; 4096]).expect("inside memory");
    device.write(8192, &stream).expect("inside memory");
    let command = Command {
        stream_addr: 8192,
        insns: insns.len() as u32,
        bases: vec![Base { addr: 0, limit: 1 << 20 }],
        cycle_limit: Some(200_000),
    };
    (device, command)
}

/// Returns the diagnoses of a textual program on the default configuration, after the host wrote 4 KiB.
fn told(text: &str) -> Vec<(u32, DiagnosisKind, String)> {
    let (mut device, command) = device_with(text);
    let error = device.run(&command).expect_err("strict");
    let found: Vec<_> = device.diagnoses().iter().map(|d| (d.place, d.kind, d.text.clone())).collect();
    assert_eq!(error.to_string(), format!("instruction {} of the stream: {}", found[0].0, found[0].2));
    found
}

#[test]
fn faults_name_the_instruction_and_the_remedy() {
    let race = told("load mem=out entry=0 row_bytes=16\nstore mem=out entry=0 row_bytes=16 offset=2048\n");
    assert_eq!(race[0].1, DiagnosisKind::Race);
    assert_eq!(
        race[0].2,
        "store and instruction 0 (load) both access entry 0 of out, and no tokens order them; push a token from load to \
         store"
    );
    let entry = told("store mem=out entry=3 row_bytes=16 offset=2048\n");
    assert_eq!((entry[0].0, entry[0].1), (0, DiagnosisKind::UninitializedEntry));
    assert_eq!(entry[0].2, "reads entry 3 of out, which nothing has written; load it first");
    let memory = told("load row_bytes=16\nload row_bytes=32 offset=4080\n");
    assert_eq!((memory[0].0, memory[0].1), (1, DiagnosisKind::UninitializedMemory));
    assert!(memory[0].2.contains("byte 0x1000 of device memory"), "{}", memory[0].2);
    let deadlock = told("load row_bytes=16 pop=store\nstore mem=out row_bytes=16 pop=load\n");
    assert_eq!((deadlock[0].0, deadlock[0].1), (0, DiagnosisKind::Deadlock));
    assert_eq!(
        deadlock[0].2,
        "load waits at instruction 0 for a token from store, store waits at instruction 1 for a token from load, and nothing \
         else is running; push one of these tokens from an instruction that can start, or remove its pop"
    );
    let overflow = told(&"load row_bytes=16 push=gemm\n".repeat(1024));
    assert_eq!((overflow[0].0, overflow[0].1), (1023, DiagnosisKind::Overflow));
    assert_eq!(
        overflow[0].2,
        "load pushes a token to gemm, but that counter is full; pop the tokens sooner, or push fewer"
    );
}

#[test]
fn what_an_instruction_wrote_it_may_read() {
    let loads = "load mem=vuop row_bytes=8\nload mem=acc row_bytes=64\nload mem=out row_bytes=16 push=vector\n";
    let copies = "vector op=max dst=out a=out b=acc uops=1 dst_at=1 count0=3 dst0=1 a0=1 pop=load\n";
    let (mut device, command) = device_with(&format!("{loads}{copies}"));
    device.run(&command).expect("each row is the one before it");
    let (mut device, command) = device_with(&format!("{loads}{}", copies.replace("dst_at=1", "dst_at=2")));
    device.run(&command).expect_err("entry 1 is written by nobody");
    assert!(device.diagnoses()[0].text.starts_with("reads entry 1 of out,"), "{:?}", device.diagnoses());
}

#[test]
fn fetch_is_a_party() {
    // The store overwrites the instruction after it.
    let (mut device, command) = device_with(
        "load mem=out row_bytes=16 push=store\nstore mem=out row_bytes=16 offset=8256 pop=load\nload row_bytes=16\n",
    );
    assert!(device.run(&command).is_err());
    let found = &device.diagnoses()[0];
    assert_eq!((found.place, found.kind), (1, DiagnosisKind::Race));
    assert_eq!(
        found.text,
        "store writes byte 0x2040 of device memory, which is part of the stream and can be fetched at any time; keep the \
         stream outside the memory that the program stores to"
    );
    // Earlier instructions have already been fetched.
    let (mut device, command) = device_with(
        "load mem=out row_bytes=16 push=store\nstore mem=out row_bytes=16 offset=8192 pop=load\nload row_bytes=16\n",
    );
    device.run(&command).expect("nothing is wrong");

    let (mut device, command) = device_with("load row_bytes=16\nload row_bytes=16\n");
    let longer = Command { insns: 4, ..command };
    assert!(device.run(&longer).is_err());
    let found: Vec<_> = device.diagnoses().iter().map(|found| (found.place, found.kind)).collect();
    assert_eq!(found[0], (2, DiagnosisKind::UninitializedMemory));
    assert!(device.diagnoses()[0].text.contains("is fetched from byte 0x2040"), "{:?}", device.diagnoses());
}

#[test]
fn what_comes_behind_a_trap_does_not_count() {
    // Load traps immediately; store would read unwritten entries long after that.
    let text = "gemm uops=16 count0=100 count1=10 push=store\nload row_bytes=16 offset=1048570\n\
                store mem=out entry=3 row_bytes=16 offset=2048 pop=gemm\n";
    let (mut device, command) = device_with(text);
    assert!(device.run(&command).is_err());
    let places: Vec<u32> = device.diagnoses().iter().map(|found| found.place).collect();
    assert!(places.contains(&0) && !places.contains(&2), "{:?}", device.diagnoses());
    let overflow = "load row_bytes=16 offset=1048570\n".to_owned() + &"load row_bytes=16 push=gemm\n".repeat(1024);
    let (mut device, command) = device_with(&overflow);
    let report = device.run(&command).expect("a trap");
    assert_eq!(report.trap.map(|trap| (trap.unit, trap.ordinal)), Some((Unit::Load.into(), 0)));
    // A deep operation that reads its own row, before the trap and long after it.
    let own = "vector op=mul dst=out a=out b=out uops=2 b_at=1024 count0=2 dst0=1 a0=1 b0=1";
    let early = format!("load mem=vuop row_bytes=64 push=vector\n{own} pop=load\n");
    for (text, traps) in [
        (
            format!("{early}gemm uops=16 count0=100 count1=100 push=load\nload row_bytes=16 offset=1048570 pop=gemm\n"),
            false,
        ),
        (
            format!(
                "load row_bytes=16 offset=1048570\ngemm uops=16 count0=100 count1=100 push=vector\n{own} pop=gemm\n"
            ),
            true,
        ),
    ] {
        let (device, command) = device_with(&text);
        let mut device = Csim { options: CsimOptions::default(), ..device };
        match device.run(&command) {
            Ok(report) => assert!(traps && report.trap.is_some(), "{text}"),
            Err(e) => assert!(!traps && e.to_string().contains("deep operations do not forward"), "{e}"),
        }
    }
}

#[test]
fn counters_wrap_as_the_hardware_s() {
    let options = CsimOptions { timing_only: true, ..CsimOptions::default() };
    let (device, command) = device_with("gemm uops=16 count0=1000 count1=1000 count2=1000\n");
    let mut device = Csim { options, ..device };
    let report = device.run(&Command { cycle_limit: None, ..command }).expect("ends");
    let cycles = report.cycles.expect("the model has time");
    assert!(cycles > 3 << 32, "{cycles}");
    for counts in report.counters.expect("the preset counts").0 {
        assert!(counts.iter().all(|count| *count <= u64::from(u32::MAX)), "{counts:?}");
        assert_eq!(counts.iter().sum::<u64>() as u32, cycles as u32, "{counts:?}");
    }
}

#[test]
fn transfers_of_many_rows_are_compared_at_once() {
    // 262144 rows each, interleaved so that none overlap, without tokens between them.
    let rows = "row_bytes=1 pack=yes rows=1024 planes=256 row_stride=2 plane_stride=2048";
    let (mut device, command) = device_with(&format!("load {rows}\nstore {rows} offset=4097\n"));
    let command = Command { cycle_limit: None, ..command };
    device.run(&command).expect_err("the host wrote less");
    assert!(device.diagnoses().iter().all(|found| found.kind != DiagnosisKind::Race), "{:?}", device.diagnoses());
}

#[test]
fn given_instructions_take_the_cycles_of_a_full_run() {
    let mut rng = SmallRng::seed_from_u64(14);
    for seed in 0..200 {
        let program = generate(&sample_config(&mut rng), seed, 40);
        let mut full = Csim::new(program.config.clone(), MEMORY_BYTES, CsimOptions::default());
        program.install(&mut full).expect("inside memory");
        let command = program.command();
        let report = full.run(&command).expect("it ends");
        let options = CsimOptions { timing_only: true, ..CsimOptions::default() };
        // There is nothing in this device's memory.
        let mut times = Csim::new(program.config.clone(), MEMORY_BYTES, options);
        let timed = times.time(&command, &program.insns).expect("it ends");
        assert_eq!((timed.cycles, timed.trap), (report.cycles, report.trap), "seed {seed}\n{}", program.text());
    }
}
