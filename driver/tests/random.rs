//! Random sequences of instructions: the tokens that the builder derives order every pair that conflicts.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use tilewright_driver::{
    AccelProgram, Builder, Dim, DriverError, Nest, Order, Recording, RegionId, Role, Search, race, run_program,
};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::Device;
use tilewright_hw::isa::{
    self, Insn, Load, Op, PARAM_ROWS, Store, TAP_STRIDE, Unit, VecDst, VecOp, VecSrc, Vector, VectorUop,
};
use tilewright_hw::num::Rounding;
use tilewright_sim::Fsim;

const DATA_BYTES: u64 = 1 << 16;

fn dims(rng: &mut StdRng, operands: [u32; 3]) -> Vec<Dim> {
    (0..rng.random_range(0..5))
        .map(|_| {
            let count = rng.random_range(1..4);
            Dim::new(count, operands.map(|reach| if reach == 0 { 0 } else { rng.random_range(0..4) }))
        })
        .collect()
}

fn body(rng: &mut StdRng) -> Vec<[u32; 3]> {
    (0..rng.random_range(1..5)).map(|_| std::array::from_fn(|_| rng.random_range(0..8))).collect()
}

fn add_load(rng: &mut StdRng, b: &mut Builder, data: RegionId) -> Result<(), DriverError> {
    let mem = [Mem::Inp, Mem::Wgt, Mem::Acc, Mem::Out, Mem::Param][rng.random_range(0..5)];
    let entries = b.config().entries(mem);
    let load = Load {
        mem,
        base: data.0,
        offset: rng.random_range(0..DATA_BYTES / 2),
        entry: rng.random_range(0..entries / 2),
        row_bytes: rng.random_range(1..100),
        rows: rng.random_range(1..5),
        planes: rng.random_range(1..4),
        row_stride: rng.random_range(0..200),
        plane_stride: rng.random_range(0..2000),
        x_before: rng.random_range(0..2),
        y_after: rng.random_range(0..2),
        pad_value: rng.random(),
        ..Load::default()
    };
    b.load(load)
}

fn add_store(rng: &mut StdRng, b: &mut Builder, data: RegionId) -> Result<(), DriverError> {
    let store = Store {
        mem: if rng.random() { Mem::Inp } else { Mem::Out },
        base: data.0,
        offset: rng.random_range(0..DATA_BYTES / 2),
        entry: rng.random_range(0..b.config().out_depth / 2),
        row_bytes: rng.random_range(1..100),
        rows: rng.random_range(1..5),
        row_stride: rng.random_range(100..200),
        ..Store::default()
    };
    b.store(store)
}

fn add_gemm(rng: &mut StdRng, b: &mut Builder) -> Result<(), DriverError> {
    let at = [b.config().acc_depth, b.config().inp_depth, b.config().wgt_depth];
    let at = at.map(|depth| rng.random_range(0..depth - 64));
    let nest = Nest { at, body: body(rng), dims: dims(rng, [1, 1, 1]) };
    let wgt_zp = if b.config().wgt_zp && rng.random() { rng.random() } else { 0 };
    b.gemm_nest_less(rng.random(), wgt_zp, &nest)
}

fn add_vector(rng: &mut StdRng, b: &mut Builder) -> Result<(), DriverError> {
    let config = b.config().clone();
    let built: Vec<VecOp> = VecOp::ALL.iter().copied().filter(|op| op.is_built(&config)).collect();
    let op = built[rng.random_range(0..built.len())];
    // Which sources an operand accepts does not depend on the other operands.
    let takes = |field: &str, x: Vector| {
        isa::illegal_reasons(&Insn::new(Vector { op, ..x }), &config).iter().all(|illegal| illegal.field != field)
    };
    let x = Vector::default();
    let dsts: Vec<VecDst> = VecDst::ALL.into_iter().filter(|&dst| takes("dst", Vector { dst, ..x })).collect();
    let firsts: Vec<VecSrc> = VecSrc::ALL.into_iter().filter(|&a| takes("a", Vector { a, ..x })).collect();
    let seconds: Vec<VecSrc> = VecSrc::ALL.into_iter().filter(|&b| takes("b", Vector { b, ..x })).collect();
    let (dst, a, b_from) = (pick(rng, &dsts), pick(rng, &firsts), pick(rng, &seconds));
    let mut at = |mem: Mem| rng.random_range(0..config.entries(mem) - 64);
    let (dst_at, a_at) = (at(dst.mem()), a.mem().map_or(0, &mut at));
    let b_at = match b_from.mem() {
        // Rows 0 to 8 of an entry are taps, so a step can leave the entry.
        Some(Mem::Param) if op == VecOp::Mac => {
            TAP_STRIDE * rng.random_range(0..config.param_depth) + rng.random_range(0..PARAM_ROWS)
        }
        Some(Mem::Param) => rng.random_range(0..config.param_depth / 2),
        Some(mem) => at(mem),
        None => 0,
    };
    let steps = u32::from(!matches!(b_from.mem(), None | Some(Mem::Param)));
    let mut body = body(rng);
    if op == VecOp::Mac && rng.random() {
        // Taps of one row, so that it is inside its entry often enough.
        body.iter_mut().for_each(|[_, _, b]| *b = 0);
    }
    let nest = Nest { at: [dst_at, a_at, b_at], body, dims: dims(rng, [1, 1, steps]) };
    let last = config.param_depth - config.constant_entries(op);
    let mode = if op.has_mode() && rng.random() { Rounding::Single } else { Rounding::Double };
    let vector = Vector { op, mode, dst, a, b: b_from, descriptor: rng.random_range(0..=last), ..x };
    b.vector_nest(vector, &nest)
}

fn pick<T: Copy>(rng: &mut StdRng, from: &[T]) -> T {
    from[rng.random_range(0..from.len())]
}

/// A program of about `steps` instructions; sequences that break a rule are drawn again.
fn random_program(rng: &mut StdRng, config: &HwConfig, steps: usize) -> AccelProgram {
    let recording = random_recording(rng, config, steps);
    recording.program(&Order::of_program(recording.len())).unwrap()
}

fn random_recording(rng: &mut StdRng, config: &HwConfig, steps: usize) -> Recording {
    let mut b = Builder::new(config).unwrap();
    let data = b.region("data", Role::Input, DATA_BYTES).unwrap();
    b.input("data in", data, 0, DATA_BYTES);
    b.output("data out", data, 0, DATA_BYTES);
    while b.len() < steps {
        let step = match rng.random_range(0..4) {
            0 => add_load(rng, &mut b, data),
            1 => add_store(rng, &mut b, data),
            2 => add_gemm(rng, &mut b),
            _ => add_vector(rng, &mut b),
        };
        match step {
            Ok(()) | Err(DriverError::Scratchpad { .. } | DriverError::Rule { .. }) => {}
            Err(e) => panic!("{e}"),
        }
    }
    b.record()
}

fn configs() -> Vec<HwConfig> {
    let mut found: Vec<HwConfig> =
        ["1x4x4", "1x8x16", "1x16x16", "4x16x16"].iter().map(|n| HwConfig::load(n).unwrap()).collect();
    found.push(HwConfig {
        loops: 2,
        token_bits: 4,
        queue_depth: 4,
        inp_banks: 4,
        out_banks: 1,
        gemm_uop_depth: 16,
        vector_uop_depth: 16,
        ..HwConfig::default()
    });
    found
}

#[test]
fn tokens_order_whatever_meets() {
    let mut tokens = 0;
    let mut drawn: HashMap<(&str, bool), u32> = HashMap::new();
    for (c, config) in configs().iter().enumerate() {
        for seed in 0..12 {
            let mut rng = StdRng::seed_from_u64(seed * 100 + c as u64);
            let program = random_program(&mut rng, config, 150);
            let faults = race::check(&program, config);
            assert!(faults.is_empty(), "{} seed {seed}: {}", config.name, faults[0]);
            tokens += program.summary(config).unwrap().tokens;
            for insn in program.decode(config).unwrap() {
                match insn.op {
                    Op::Vector(x) => *drawn.entry((x.op.name(), x.dst == VecDst::Acc)).or_default() += 1,
                    Op::Gemm(x) => *drawn.entry(("gemm", x.wgt_zp != 0)).or_default() += 1,
                    Op::Load(_) | Op::Store(_) => {}
                }
            }
        }
    }
    assert!(tokens > 1000, "only {tokens} tokens: the programs hardly conflict");
    for op in VecOp::ALL {
        let (acc, int8) = (drawn.get(&(op.name(), true)), drawn.get(&(op.name(), false)));
        assert!(acc > Some(&10), "{} to acc is too rare: {acc:?}", op.name());
        assert!(int8 > Some(&10) || *op == VecOp::Mac, "{} to int8 rows is too rare: {int8:?}", op.name());
    }
    assert!(drawn[&("gemm", true)] > 10 && drawn[&("gemm", false)] > 10, "{drawn:?}");
}

/// Another order in which the units could run the instructions: it keeps each unit's own order and the tokens, and
/// draws the rest at random.
fn reorder(rng: &mut StdRng, insns: &[Insn]) -> Vec<Insn> {
    let mut queues: [std::collections::VecDeque<Insn>; 4] = Default::default();
    for insn in insns {
        queues[insn.unit() as usize].push_back(*insn);
    }
    let mut tokens = [[0u32; 4]; 4];
    let mut order = Vec::new();
    while order.len() < insns.len() {
        let ready = |u: usize| queues[u].front().is_some_and(|i| i.pop.iter().all(|from| tokens[from as usize][u] > 0));
        let units: Vec<usize> = (0..4).filter(|&u| ready(u)).collect();
        let unit = units[rng.random_range(0..units.len())];
        let insn = queues[unit].pop_front().unwrap();
        insn.pop.iter().for_each(|from| tokens[from as usize][unit] -= 1);
        insn.push.iter().for_each(|to| tokens[unit][to as usize] += 1);
        order.push(insn);
    }
    order
}

/// Data memory and scratchpads after a run on the functional simulator.
fn run(config: &HwConfig, program: &AccelProgram, data: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut device = Fsim::new(config.clone(), 1 << 20);
    let (outputs, report) = run_program(&mut device, program, &[data]).unwrap();
    assert_eq!(report.trap, None);
    let memories = [Mem::Inp, Mem::Wgt, Mem::Acc, Mem::Out, Mem::Param];
    let scratchpads = memories.map(|m| device.scratchpad(m, 0, config.entries(m)).unwrap());
    (outputs.into_iter().flatten().collect(), scratchpads.into())
}

#[test]
fn every_order_that_tokens_allow_computes_the_same() {
    let mut moved = 0;
    for (c, config) in configs().iter().enumerate() {
        for seed in 0..8 {
            let mut rng = StdRng::seed_from_u64(seed * 77 + c as u64);
            let program = random_program(&mut rng, config, 120);
            let insns = program.decode(config).unwrap();
            let data: Vec<u8> = (0..DATA_BYTES).map(|_| rng.random()).collect();
            let expected = run(config, &program, &data);
            assert_ne!(expected.0, data);
            for _ in 0..4 {
                let order = reorder(&mut rng, &insns);
                moved += order.iter().zip(&insns).filter(|(a, b)| a != b).count();
                let stream = order.iter().flat_map(|i| isa::encode(i, config).unwrap()).collect();
                let other = AccelProgram { stream, ..program.clone() };
                assert!(run(config, &other, &data) == expected, "{} seed {seed}", config.name);
            }
        }
    }
    assert!(moved > 5000, "only {moved} instructions moved: the tokens order everything");
}

#[test]
fn every_order_that_a_search_finds_computes_the_same() {
    let (mut moved, mut waits) = (0, 0);
    let narrow = Search { loads: 3, patience: 0 };
    for (c, config) in configs().iter().enumerate() {
        for seed in 0..8 {
            let mut rng = StdRng::seed_from_u64(seed * 91 + c as u64);
            let recording = random_recording(&mut rng, config, 120);
            let data: Vec<u8> = (0..DATA_BYTES).map(|_| rng.random()).collect();
            let program = recording.program(&Order::of_program(recording.len())).unwrap();
            let expected = run(config, &program, &data);
            for search in Search::ALL.into_iter().chain([narrow]) {
                let order = recording.search(search);
                moved += order.places.iter().zip(0..).filter(|&(&place, at)| place != at).count();
                waits += order.waits.len();
                let program = recording.program(&order).unwrap();
                let faults = race::check(&program, config);
                assert!(faults.is_empty(), "{} seed {seed} {search:?}: {}", config.name, faults[0]);
                assert!(run(config, &program, &data) == expected, "{} seed {seed} {search:?}", config.name);
            }
        }
    }
    assert!(moved > 10_000 && waits > 10, "{moved} instructions moved, {waits} waits: the searches hardly do anything");
}

/// The order of a search must not depend on anything but the program.
#[test]
fn a_search_finds_the_same_order_again() {
    let config = HwConfig::default();
    for seed in 0..4 {
        let orders =
            [0; 2].map(|_| random_recording(&mut StdRng::seed_from_u64(seed), &config, 200).search(Search::FIRST));
        assert_eq!(orders[0], orders[1], "seed {seed}");
    }
}

#[test]
fn a_missing_token_is_found() {
    let config = HwConfig::default();
    let (mut found, mut tried) = (0, 0);
    for seed in 0..20 {
        let mut rng = StdRng::seed_from_u64(seed);
        let program = random_program(&mut rng, &config, 60);
        let mut insns = program.decode(&config).unwrap();
        // The last token of a pair, so that the others still match.
        let pair = insns.iter().rev().find_map(|i| i.pop.iter().next().map(|from| (from, i.unit())));
        let Some((from, to)) = pair else { continue };
        let pop = insns.iter().rposition(|i| i.unit() == to && i.pop.contains(from)).unwrap();
        let push = insns.iter().rposition(|i| i.unit() == from && i.push.contains(to)).unwrap();
        insns[pop].pop = insns[pop].pop.iter().filter(|&u| u != from).collect();
        insns[push].push = insns[push].push.iter().filter(|&u| u != to).collect();
        let stream = insns.iter().flat_map(|i| isa::encode(i, &config).unwrap()).collect();
        tried += 1;
        found += usize::from(!race::check(&AccelProgram { stream, ..program }, &config).is_empty());
    }
    assert!(tried >= 15);
    assert_eq!(found, tried, "tokens that nothing needs");
}

#[test]
fn a_pop_before_its_push_is_refused() {
    let config = HwConfig::default();
    let text = "load row_bytes=16 pop=store\nstore row_bytes=16 push=load\n";
    let insns = isa::parse_program(text).unwrap();
    let faults = race::clocks(&insns, &config).unwrap_err();
    assert_eq!(faults, [race::Fault::PopBeforePush { index: 0, from: Unit::Store }]);
}

#[test]
fn the_stream_reads_as_text_and_kernels_are_loaded_once() {
    let config = HwConfig::default();
    let mut b = Builder::new(&config).unwrap();
    let data = b.region("data", Role::Input, 4096).unwrap();
    for _ in 0..2 {
        b.load(Load { base: data.0, row_bytes: 64, ..Load::default() }).unwrap();
        b.gemm_nest(false, &Nest { at: [0; 3], body: vec![[0; 3], [1, 1, 1]], dims: vec![] }).unwrap();
    }
    let program = b.finish().unwrap();
    let insns = program.decode(&config).unwrap();
    let uop_loads = insns.iter().filter(|i| matches!(i.op, Op::Load(l) if l.mem == Mem::GemmUop)).count();
    assert_eq!((insns.len(), uop_loads), (5, 1));
    let text = program.disassemble(&config).unwrap();
    assert_eq!(isa::parse_program(&text).unwrap(), insns);
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let config = HwConfig::default();
    let mut b = Builder::new(&config).unwrap();
    let data = b.region("data", Role::Input, 100).unwrap();
    let past_region = b.load(Load { base: data.0, row_bytes: 101, ..Load::default() }).unwrap_err();
    assert!(past_region.to_string().contains("passes the end of region data"), "{past_region}");
    let past_memory = b.load(Load { base: data.0, row_bytes: 32, entry: 2047, ..Load::default() }).unwrap_err();
    assert!(past_memory.to_string().contains("entry 2048 is outside inp"), "{past_memory}");
    let zero = b.load(Load { base: data.0, row_bytes: 0, ..Load::default() }).unwrap_err();
    assert!(zero.to_string().contains("row_bytes is 0"), "{zero}");
    let constants = b.store(Store { row_bytes: 16, ..Store::default() }).unwrap_err();
    assert!(constants.to_string().contains("constants"), "{constants}");
    let qadd = Vector { op: VecOp::Qadd, dst: VecDst::Out, a: VecSrc::Out, b: VecSrc::Out, ..Vector::default() };
    let one_bank = b.vector_nest(qadd, &Nest { at: [0, 1, 2], body: vec![[0; 3]], dims: vec![] }).unwrap_err();
    assert!(one_bank.to_string().contains("one bank"), "{one_bank}");
    let chain = Nest { at: [101, 100, 1500], body: vec![[0; 3]], dims: vec![Dim::new(3, [1, 1, 1])] };
    let own_result = b.vector_nest(qadd, &chain).unwrap_err();
    assert!(own_result.to_string().contains("row that it wrote"), "{own_result}");
    let wide = [
        (Load { rows: u32::MAX, y_before: 1, ..Load::default() }, "rows is 4294967295, but"),
        (Load { planes: u32::MAX, ..Load::default() }, "planes is 4294967295, but"),
        (Load { offset: u64::MAX, rows: 2, row_stride: u64::MAX, ..Load::default() }, "offset is 18446744073709551615"),
    ];
    for (load, what) in wide {
        let too_wide = b.load(Load { base: data.0, ..load }).unwrap_err();
        assert!(too_wide.to_string().contains(what), "{too_wide}");
    }
    let counts = Vector { count0: u32::MAX, count1: u32::MAX, dst: VecDst::Out, a: VecSrc::Out, ..qadd };
    let too_many = b.vector(counts, &[VectorUop::default()]).unwrap_err();
    assert!(too_many.to_string().contains("count0 is 4294967295"), "{too_many}");
    let huge = b.load_linear(Mem::Inp, data, 0, 0, u64::MAX).unwrap_err();
    assert!(matches!(huge, DriverError::Scratchpad { mem: Mem::Inp, .. }), "{huge}");
    // Index 16 e + r of a tap is row r of entry e, and loads count nine rows per entry.
    let mac = Vector { op: VecOp::Mac, a: VecSrc::Out, b: VecSrc::Param, ..qadd };
    let taps = Vector { dst: VecDst::Acc, b_at: 16 * (config.param_depth - 1) + 8, count0: 2, b0: 8, ..mac };
    let past_taps = b.vector(taps, &[VectorUop::default()]).unwrap_err();
    let first_past = format!("entry {} is outside param", 9 * config.param_depth);
    assert!(past_taps.to_string().contains(&first_past), "{past_taps}");
    let narrow = HwConfig { token_bits: 3, ..HwConfig::default() };
    assert!(matches!(Builder::new(&narrow), Err(DriverError::Tokens { .. })));
}

#[test]
fn a_damaged_program_is_refused_before_it_touches_memory() {
    let config = HwConfig::default();
    let mut b = Builder::new(&config).unwrap();
    let data = b.region("data", Role::Input, 64).unwrap();
    b.load(Load { base: data.0, row_bytes: 64, ..Load::default() }).unwrap();
    b.input("x", data, 0, 64);
    let program = b.finish().unwrap();
    assert_eq!(program.check(), Ok(()));
    let refused = |damage: fn(&mut AccelProgram), what: &str| {
        let mut damaged = program.clone();
        damage(&mut damaged);
        let mut device = Fsim::new(config.clone(), 1 << 20);
        let error = run_program(&mut device, &damaged, &[vec![0u8; 64]]).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    refused(|p| p.constants = vec![0; p.regions[0].bytes as usize + 1], "constants do not fit");
    refused(|p| p.inputs[0].offset = u64::MAX, "x is outside its region");
    refused(|p| p.inputs[0].region = RegionId(9), "x is outside its region");
    refused(|p| p.regions[1].bytes = u64::MAX, "region data has");
}
