//! Removes tokens from programs, so that units collide.

use super::Program;
use super::builder::Builder;
use super::order::{Order, without};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use tilewright_hw::config::Mem;
use tilewright_hw::isa::{Insn, Op, Unit, encode};

/// Removes some of a program's tokens, but keeps loads of micro-ops ordered as before, so that no timing depends on
/// data that race. The result can end with a collision instead of its original trap or end.
///
/// This works only for programs whose stream matches their instructions, whose tokens are balanced, and whose micro-ops
/// no store writes. Other programs are returned unchanged.
pub fn loosen(program: &Program, seed: u64) -> Program {
    let rng = &mut SmallRng::seed_from_u64(seed);
    if micro_ops_are_stored(program) {
        return program.clone();
    }
    let Ok(order) = Order::of(&program.insns, &program.config) else { return program.clone() };
    let guarded = micro_op_pairs(&program.insns, &order);
    let mut tokens = tokens(&program.insns);
    tokens.shuffle(rng);
    let share = rng.random_range(0.3..=1.0);
    let mut insns = program.insns.clone();
    for (push, pop) in tokens {
        if !rng.random_bool(share) {
            continue;
        }
        let (from, to) = (insns[push].unit(), insns[pop].unit());
        let mut fewer = insns.clone();
        fewer[push].push = without(fewer[push].push, to);
        fewer[pop].pop = without(fewer[pop].pop, from);
        let Ok(order) = Order::of(&fewer, &program.config) else { continue };
        if guarded.iter().all(|&(early, late)| order.is_after(late, early, fewer[early].unit())) {
            insns = fewer;
        }
    }
    let stream = insns.iter().flat_map(|insn| encode(insn, &program.config).unwrap_or_default()).collect();
    Program { insns, stream, ..program.clone() }
}

/// Returns whether a store can write bytes that are loaded as micro-ops.
fn micro_ops_are_stored(program: &Program) -> bool {
    let stored = program.stored();
    let builder = Builder::new(&program.config, &program.image);
    let loads = program.insns.iter().filter(|insn| micro_op_reader(insn).is_some());
    let mut bytes = loads.flat_map(|insn| builder.access(&insn.op).dram_reads.iter().flatten().collect::<Vec<u64>>());
    bytes.any(|byte| stored[byte as usize])
}

/// Returns the unit whose micro-ops an instruction loads.
fn micro_op_reader(insn: &Insn) -> Option<Unit> {
    match &insn.op {
        Op::Load(x) if x.mem == Mem::GemmUop => Some(Unit::Gemm),
        Op::Load(x) if x.mem == Mem::VectorUop => Some(Unit::Vector),
        _ => None,
    }
}

/// Returns where each token is pushed and popped, in order for each pair of units.
fn tokens(insns: &[Insn]) -> Vec<(usize, usize)> {
    let mut tokens = Vec::new();
    for from in Unit::ALL {
        for to in Unit::ALL {
            let pushes = insns.iter().enumerate().filter(|(_, i)| i.unit() == from && i.push.contains(to));
            let pops = insns.iter().enumerate().filter(|(_, i)| i.unit() == to && i.pop.contains(from));
            tokens.extend(pushes.zip(pops).map(|((push, _), (pop, _))| (push, pop)));
        }
    }
    tokens
}

/// Returns the pairs of a micro-op load and an instruction that uses such micro-ops where one is ordered after the
/// other.
fn micro_op_pairs(insns: &[Insn], order: &Order) -> Vec<(usize, usize)> {
    let meet = |a: &Insn, b: &Insn| micro_op_reader(a) == Some(b.unit()) || micro_op_reader(b) == Some(a.unit());
    let mut pairs = Vec::new();
    for (late, b) in insns.iter().enumerate() {
        for (early, a) in insns[..late].iter().enumerate() {
            if meet(a, b) && order.is_after(late, early, a.unit()) {
                pairs.push((early, late));
            }
        }
    }
    pairs
}
