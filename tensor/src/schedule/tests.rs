//! A tensorized product, and random schedules. `tests/files/schedule` has each primitive and each refusal.

use proptest::prelude::*;

use super::{Schedule, Step};
use crate::te::{Builder, Combiner, DType, Expr, Program};
use crate::testing::inputs;
use crate::tir::tests::conv;
use crate::tir::{Action, Affine, LoopKind, Scope, lower, parse, run};

/// Checks that the schedule's function computes the same as the lowered program, and that its trace replays through
/// text.
fn check(program: &Program, s: &Schedule) {
    let plain = lower(program).unwrap();
    let args = inputs(&plain);
    let want = run(&plain, &args).unwrap();
    let f = s.function();
    let got = run(f, &args).unwrap_or_else(|e| panic!("{e}\n{f}\n{:?}", s.trace()));
    assert!(got == want, "another result\n{f}\n{:?}", s.trace());
    assert_eq!(&parse(&f.to_string()).unwrap(), f);
    let text = serde_json::to_string(s.trace()).unwrap();
    let steps: Vec<Step> = serde_json::from_str(&text).unwrap();
    let mut again = Schedule::with_intrinsics(plain, &f.intrinsics);
    again.replay(&steps).unwrap();
    assert_eq!(again.function(), f);
}

/// Matrix product over blocked operands, as an accelerator with 1 x 4 x 2 multipliers takes them.
fn blocked() -> Program {
    let (mb, kb, nb, bi, bo) = (6, 4, 3, 4, 2);
    let mut b = Builder::new("blocked");
    let x = b.input("x", DType::I8, &[kb, mb, bi]);
    let w = b.input("w", DType::I8, &[nb, kb, bo, bi]);
    let acc = b.reduce("acc", DType::I32, &[nb, mb, 1, bo], &[("k", kb), ("ki", bi)], Combiner::Sum, |i, r| {
        let xv = x.at(&[r[0].clone(), i[1].clone() + i[2].clone(), r[1].clone()]);
        let wv = w.at(&[i[0].clone(), r[0].clone(), i[3].clone(), r[1].clone()]);
        xv.cast(DType::I32) * wv.cast(DType::I32)
    });
    let y = b.compute("y", &[nb, mb, 1, bo], |i| acc.at(i).max(Expr::i32(-100)).min(Expr::i32(100)).cast(DType::I8));
    b.finish(&[y])
}

const GEMM: &str = "function g { intrinsic gemm {
    param a: i8[1, 4] in inp
    param b: i8[2, 4] in wgt
    param c: i32[1, 2] in acc
    for n in 1 { for o in 2 { for i in 4 {
      block dot reduce(i) { c[n, o] = c[n, o] + i32(b[o, i]) * i32(a[n, i]) }
    } } } } }";

#[test]
fn a_convolution_becomes_calls_of_an_intrinsic() {
    let p = blocked();
    let intrinsics = parse(GEMM).unwrap().intrinsics;
    let mut s = Schedule::with_intrinsics(lower(&p).unwrap(), &intrinsics);
    let tile = s.split("y.i1", &[4]).unwrap();
    s.set_scope("acc", Scope::Acc).unwrap();
    s.compute_at("acc", tile[0].as_str()).unwrap();
    let xs = s.cache_read("acc", "x", Scope::Inp).unwrap();
    let ws = s.cache_read("acc", "w", Scope::Wgt).unwrap();
    s.reorder(&["acc.k", "acc.i0", "acc.i1", "acc.i2", "acc.i3"]).unwrap();
    s.compute_at(xs.as_str(), "acc.k").unwrap();
    s.compute_at(ws.as_str(), "acc.k").unwrap();
    for b in ["acc", xs.as_str(), ws.as_str()] {
        s.compact(b).unwrap();
    }
    s.decompose_reduction("acc", "acc.k").unwrap();
    s.tensorize("acc.i2", "gemm").unwrap();
    s.annotate(tile[0].as_str(), LoopKind::Pipeline).unwrap();
    check(&p, &s);
    let f = s.function();
    let shape = |n: &str| f.buffer(&n.into()).unwrap().shape.clone();
    assert_eq!((shape("acc"), shape("x.inp"), shape("w.wgt")), (vec![1, 4, 1, 2], vec![1, 4, 4], vec![1, 1, 2, 4]));
    let mut calls = 0;
    f.body.visit_blocks(&mut |_, b| {
        if let Action::Call { args, .. } = &b.action {
            calls += 1;
            assert!(args.iter().flat_map(|v| &v.indices).all(|e| Affine::of(e).is_some()));
        }
    });
    assert_eq!(calls, 1, "{f}");
}

/// Returns another loop of the same extent, chosen by a number.
fn alike(s: &Schedule, first: &str, number: u16) -> String {
    let extent = s.function().body.find_loop(&first.into()).map(|l| l.extent);
    let mut loops = Vec::new();
    s.function().body.visit_loops(&mut |l| {
        if Some(l.extent) == extent && l.var.as_str() != first {
            loops.push(l.var.to_string());
        }
    });
    loops.get(number as usize % loops.len().max(1)).cloned().unwrap_or_default()
}

/// Number of kinds of random steps.
const KINDS: u16 = 18;

/// Applies a step chosen by four numbers; true where it was accepted.
fn random_step(s: &mut Schedule, [kind, a, b, c]: [u16; 4]) -> bool {
    let (mut loops, mut blocks) = (Vec::new(), Vec::new());
    s.function().body.visit_loops(&mut |l| loops.push(l.var.to_string()));
    s.function().body.visit_blocks(&mut |_, b| blocks.push(b.name.to_string()));
    let names = |list: Vec<&crate::tir::Buffer>| list.iter().map(|b| b.name.to_string()).collect::<Vec<_>>();
    let locals = names(s.function().locals.iter().collect());
    let buffers = names(s.function().params.iter().chain(&s.function().locals).collect());
    fn pick(list: &[String], i: u16) -> String {
        list.get(i as usize % list.len().max(1)).cloned().unwrap_or_default()
    }
    let (l, m, block) = (pick(&loops, a), pick(&loops, b), pick(&blocks, c));
    let scope = Scope::NAMES[b as usize % 3].1.to_string();
    let step = match kind % KINDS {
        0 | 1 => Step::Split { target: l, factors: vec![1 + b as i64 % 4] },
        2 => Step::Split { target: l, factors: vec![1 + b as i64 % 3, 2] },
        3 => Step::Fuse { inner: pick(&loops, a + 1), outer: l },
        4 | 5 => Step::Reorder { order: vec![l, m] },
        6 => Step::Reorder { order: vec![pick(&loops, a + 1), l] },
        7..=9 => Step::ComputeAt { block, target: l },
        10 => Step::ComputeInline { block },
        11 => Step::CacheRead { block, buffer: pick(&buffers, a), scope },
        12 => Step::CacheWrite { block, scope },
        13 => Step::Compact { buffer: pick(&locals, a) },
        14 => Step::Annotate { target: l, kind: LoopKind::NAMES[b as usize % 5].1.into() },
        15 => Step::Bind { target: l, place: LoopKind::NAMES[5 + b as usize % 6].1.into() },
        16 => Step::Merge { second: alike(s, &l, b), first: l },
        _ => Step::DecomposeReduction { block, target: l },
    };
    s.apply(step).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn random_schedules_compute_the_same(choices in prop::collection::vec(any::<[u16; 4]>(), 1..60)) {
        let p = conv();
        let mut s = Schedule::new(lower(&p).unwrap());
        for c in choices {
            random_step(&mut s, c.map(|v| v / 2));
        }
        check(&p, &s);
    }
}

#[test]
fn random_schedules_apply_every_primitive() {
    let mut state = 7u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 17) as u16
    };
    let mut taken = [0; KINDS as usize];
    for _ in 0..100 {
        let mut s = Schedule::new(lower(&conv()).unwrap());
        for _ in 0..40 {
            let c = [next(), next(), next(), next()];
            taken[(c[0] % KINDS) as usize] += random_step(&mut s, c) as usize;
        }
    }
    assert!(taken.iter().all(|&n| n > 5), "{taken:?}");
}
