//! Makes a failing program smaller while it stays correct and fails.

use super::{Program, rebuild};
use tilewright_hw::isa::{Gemm, Load, Op, Store, Vector};

/// Returns the smallest program that still `fails`, found by removing operations and work. Programs with a planted
/// fault are not correct, so they are returned unchanged.
pub fn shrink(program: &Program, mut fails: impl FnMut(&Program) -> bool) -> Program {
    let mut best = program.clone();
    let mut ops: Vec<Op> = program.insns.iter().map(|i| i.op).collect();
    let mut attempt = |ops: &[Op], spare_tokens: usize, best: &mut Program| {
        let like = Program { spare_tokens, ..best.clone() };
        match rebuild(&like, ops) {
            Ok(smaller) if fails(&smaller) => {
                *best = smaller;
                true
            }
            _ => false,
        }
    };
    // First try without spare tokens. If that does not fail, keep them.
    let spare = if attempt(&ops, 0, &mut best) { 0 } else { best.spare_tokens };
    let mut changed = true;
    while changed {
        changed = false;
        let mut chunk = ops.len() / 2;
        while chunk > 0 {
            let mut at = ops.len();
            // Start from the end, so that consumers are removed before producers.
            while at > 0 {
                let from = at.saturating_sub(chunk);
                let mut fewer = ops.clone();
                fewer.drain(from..at);
                if attempt(&fewer, spare, &mut best) {
                    ops = fewer;
                    changed = true;
                }
                at = from;
            }
            chunk /= 2;
        }
        for at in 0..ops.len() {
            for less in simpler(ops[at]) {
                let mut other = ops.clone();
                other[at] = less;
                if less != ops[at] && attempt(&other, spare, &mut best) {
                    ops = other;
                    changed = true;
                }
            }
        }
    }
    best
}

/// Returns versions of an operation with less work.
fn simpler(op: Op) -> Vec<Op> {
    match op {
        Op::Load(x) => vec![
            Load { planes: 1, z_before: 0, z_after: 0, ..x }.into(),
            Load { rows: 1, y_before: 0, y_after: 0, ..x }.into(),
            Load { x_before: 0, x_after: 0, ..x }.into(),
            Load { row_bytes: 1, ..x }.into(),
        ],
        Op::Store(x) => {
            vec![Store { planes: 1, ..x }.into(), Store { rows: 1, ..x }.into(), Store { row_bytes: 1, ..x }.into()]
        }
        Op::Gemm(x) => vec![
            Gemm { count0: 1, ..x }.into(),
            Gemm { count1: 1, ..x }.into(),
            Gemm { count2: 1, ..x }.into(),
            Gemm { uops: 1, ..x }.into(),
        ],
        Op::Vector(x) => vec![
            Vector { count0: 1, ..x }.into(),
            Vector { count1: 1, ..x }.into(),
            Vector { count2: 1, ..x }.into(),
            Vector { uops: 1, ..x }.into(),
        ],
    }
}
