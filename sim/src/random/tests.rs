use super::*;
use crate::cycle::{Csim, CsimOptions};
use crate::functional::Fsim;
use tilewright_hw::regs::TrapCause;

fn run(program: &Program) -> (Fsim, tilewright_hw::device::RunReport) {
    let mut fsim = Fsim::new(program.config.clone(), MEMORY_BYTES);
    program.install(&mut fsim).expect("inside memory");
    let report = fsim.run(&program.command()).expect("a report");
    (fsim, report)
}

#[test]
fn programs_run_to_their_end_and_cover_everything() {
    let mut rng = SmallRng::seed_from_u64(5);
    let mut coverage = Coverage::new();
    for seed in 0..400 {
        let config = sample_config(&mut rng);
        let program = generate(&config, seed, 30);
        // Scratchpads are compared only if the program fills them.
        for mem in Mem::ALL {
            assert!(program.fills(mem), "{mem:?} of {config:?}\n{}", program.text());
        }
        let (_, report) = run(&program);
        assert_eq!(report.trap, None, "{}", program.text());
        assert_eq!(report.retired.iter().sum::<u32>() as usize, program.insns.len());
        coverage.add(&program);
    }
    assert!(coverage.missing(20).is_empty(), "seen too rarely: {:?}", coverage.missing(20));
    let (programs, overlapping) = coverage.programs();
    assert!(overlapping * 10 > programs * 9, "{coverage}");
}

#[test]
fn a_series_runs_on_one_device_and_fills_the_memories_once() {
    let mut rng = SmallRng::seed_from_u64(9);
    for seed in 0..40 {
        let config = sample_config(&mut rng);
        let programs = series(&config, seed, 12, 5);
        assert_eq!(programs.len(), 5);
        let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
        let mut csim = Csim::new(config, MEMORY_BYTES, CsimOptions::default());
        for (at, program) in programs.iter().enumerate() {
            assert_eq!(Mem::ALL.iter().all(|mem| program.fills(*mem)), at == 0, "{}", program.text());
            let devices: [&mut dyn Device; 2] = [&mut fsim, &mut csim];
            for device in devices {
                program.install(device).expect("inside memory");
                let report = device.run(&program.command()).expect("a report");
                assert_eq!(report.trap, None, "{at}: {}", program.text());
            }
            let mut left = [(); 2].map(|()| vec![0; MEMORY_BYTES as usize]);
            fsim.read(0, &mut left[0]).expect("inside memory");
            csim.read(0, &mut left[1]).expect("inside memory");
            assert!(left[0] == left[1], "{at}: {}", program.text());
        }
    }
}

#[test]
fn a_series_goes_on_behind_its_faults() {
    let mut rng = SmallRng::seed_from_u64(12);
    let mut kinds = FaultKind::ALL.iter().copied().cycle();
    let mut seen = std::collections::BTreeMap::<FaultKind, usize>::new();
    for seed in 0..40 {
        let config = sample_config(&mut rng);
        let members = series_with_faults(&config, seed, 12, 13, 4, &mut kinds);
        assert_eq!(members.len(), 13);
        let mut csim = Csim::new(config, MEMORY_BYTES, CsimOptions::default());
        for (at, Member { program, fault }) in members.iter().enumerate() {
            program.install(&mut csim).expect("inside memory");
            let trap = csim.run(&program.command()).expect("a report").trap;
            let found = trap.map(|trap| Expected { unit: trap.unit, cause: trap.cause, ordinal: trap.ordinal });
            assert_eq!(found, fault.map(|(_, expected)| expected), "{at}, {fault:?}: {}", program.text());
            assert!(fault.is_none() || [3, 7, 11].contains(&at), "{at}");
            fault.map(|(kind, _)| *seen.entry(kind).or_default() += 1);
        }
    }
    assert_eq!(seen.len(), FaultKind::ALL.len(), "{seen:?}");
}

#[test]
fn programs_depend_on_the_seed_alone() {
    let config = sample_config(&mut SmallRng::seed_from_u64(1));
    let (a, b) = (generate(&config, 7, 20), generate(&config, 7, 20));
    assert_eq!((a.insns, a.image), (b.insns, b.image));
    assert_ne!(generate(&config, 8, 20).insns, generate(&config, 7, 20).insns);
}

#[test]
fn planted_faults_trap_as_planted() {
    let mut rng = SmallRng::seed_from_u64(6);
    for kind in FaultKind::ALL {
        let mut planted = 0;
        for seed in 0..400 {
            let config = sample_config(&mut rng);
            let Some(fault) = plant(&config, *kind, seed) else { continue };
            planted += 1;
            let report = if kind.is_functional() {
                run(&fault.program).1
            } else {
                let mut csim = Csim::new(config, MEMORY_BYTES, CsimOptions::default());
                fault.program.install(&mut csim).expect("inside memory");
                csim.run(&fault.program.command()).expect("a report")
            };
            let trap = report.trap.unwrap_or_else(|| panic!("{kind:?} did not trap:\n{}", fault.program.text()));
            let found = Expected { unit: trap.unit, cause: trap.cause, ordinal: trap.ordinal };
            assert_eq!(found, fault.expected, "{kind:?}\n{}", fault.program.text());
        }
        assert!(planted >= 40, "{kind:?}: only {planted}");
    }
}

#[test]
fn a_missing_token_is_a_race() {
    // A correct program has no race. Without its tokens, it has one.
    let config = sample_config(&mut SmallRng::seed_from_u64(3));
    let program = generate(&config, 11, 20);
    let mut rng = SmallRng::seed_from_u64(0);
    let mut builder = Builder::new(&config, &program.image);
    for insn in &program.insns {
        builder.add(insn.op, None, &mut rng).expect("correct");
    }
    let order = order::Order::of(&builder.insns, &config).expect("balanced");
    let races = |order: &order::Order| {
        (0..builder.insns.len()).any(|i| order::first_race(order, &builder.accesses, i).is_some())
    };
    assert!(!races(&order));
    let bare: Vec<Insn> = builder.insns.iter().map(|i| Insn::new(i.op)).collect();
    assert!(races(&order::Order::of(&bare, &config).expect("no tokens")));
}

#[test]
fn shrinking_keeps_the_failure_and_drops_the_rest() {
    let config = sample_config(&mut SmallRng::seed_from_u64(2));
    let program = generate(&config, 3, 30);
    let fails = |p: &Program| {
        let (_, report) = run(p);
        assert_eq!(report.trap, None, "a smaller program is still correct");
        p.insns.iter().any(|i| matches!(i.op, Op::Gemm(_)))
    };
    assert!(fails(&program));
    let small = shrink(&program, fails);
    assert_eq!(small.insns.iter().filter(|i| i.unit() == Unit::Gemm).count(), 1);
    // The loads that gemm depends on must remain: micro-ops, inp, wgt, and acc if it accumulates.
    assert!(small.insns.len() <= 5, "{}", small.text());
}

#[test]
fn a_pop_without_a_push_is_a_deadlock_in_program_order() {
    let config = sample_config(&mut SmallRng::seed_from_u64(2));
    let mut program = generate(&config, 3, 0);
    program.insns.truncate(1);
    program.insns[0].pop.insert(Unit::Store);
    program.stream = encode(&program.insns[0], &config).expect("fits").to_vec();
    assert_eq!(run(&program).1.trap.map(|t| t.cause), Some(TrapCause::Deadlock));
}
