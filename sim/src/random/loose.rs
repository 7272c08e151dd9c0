//! Programs with some of their tokens left out, so that units meet.

use super::Program;
use super::builder::Builder;
use super::order::{Order, without};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use tilewright_hw::config::Mem;
use tilewright_hw::isa::{Insn, Op, Unit, encode};

/// The program without some of its tokens, where those that are left order loads of micro-ops as before: of what races, no
/// timing depends on it. It may end with a collision, in place of another trap or of none.
///
/// For programs whose stream is that of their instructions, whose tokens are in balance, and whose micro-ops no store may have
/// written; others come back as they are.
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

/// Whether a store may write what is loaded as micro-ops.
fn micro_ops_are_stored(program: &Program) -> bool {
    let stored = program.stored();
    let builder = Builder::new(&program.config, &program.image);
    let loads = program.insns.iter().filter(|insn| micro_op_reader(insn).is_some());
    let mut bytes = loads.flat_map(|insn| builder.access(&insn.op).dram_reads.iter().flatten().collect::<Vec<u64>>());
    bytes.any(|byte| stored[byte as usize])
}

/// The unit whose micro-ops a load brings.
fn micro_op_reader(insn: &Insn) -> Option<Unit> {
    match &insn.op {
        Op::Load(x) if x.mem == Mem::GemmUop => Some(Unit::Gemm),
        Op::Load(x) if x.mem == Mem::VectorUop => Some(Unit::Vector),
        _ => None,
    }
}

/// Where each token is pushed and popped: in their order, of each two units.
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

/// Loads of micro-ops and instructions of the unit that they are for, where one is ordered behind the other.
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
