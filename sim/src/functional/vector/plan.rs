//! Proves before a vector instruction runs that none of its micro-ops breaks a rule.

use super::super::loops::{Affine, Loops};
use std::ops::{Range, RangeInclusive};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{PARAM_ROWS, TAP_STRIDE, VecOp, Vector};

/// The micro-ops of an instruction that never trap or break a rule; indices in the order dst, a, b.
pub(super) struct Plan<'a> {
    pub(super) loops: Loops<'a>,
    spans: [RangeInclusive<u64>; 3],
}

impl<'a> Plan<'a> {
    /// Returns `None` if the rows must be checked one by one.
    pub(super) fn new(config: &HwConfig, x: &Vector, uops: &'a [[u32; 3]]) -> Option<Plan<'a>> {
        let loops = Loops::new(uops, &Affine::from(x));
        if loops.uops.len() < x.uops as usize {
            return None;
        }
        let spans = [0, 1, 2].map(|i| loops.span(i));
        let mems = [Some(x.dst.mem()), x.a.mem(), x.b.mem()];
        let plan = Plan { loops, spans };
        let inside = (0..3).all(|i| match mems[i] {
            // Indices without a memory are unused, but the loops still add them up.
            None => *plan.spans[i].end() <= u64::from(u32::MAX),
            Some(Mem::Param) if x.op == VecOp::Mac => plan.taps_are_inside(config),
            Some(Mem::Param) => *plan.spans[i].end() < u64::from(config.param_depth),
            Some(mem) => *plan.spans[i].end() < u64::from(config.entries(mem)),
        });
        let known = inside && plan.operands_are_apart(config, mems) && (!x.op.is_deep() || plan.reads_are_old(mems));
        known.then_some(plan)
    }

    /// Returns whether index b always names one of the taps of an entry.
    fn taps_are_inside(&self, config: &HwConfig) -> bool {
        let stride = u64::from(TAP_STRIDE);
        let in_place = (0..3).all(|l| self.loops.counts[l] == 1 || self.loops.steps[l][2].is_multiple_of(TAP_STRIDE));
        let rows = self.loops.uops.iter().map(|u| (u64::from(u[2]) + u64::from(self.loops.base[2])) % stride);
        *self.spans[2].end() / stride < u64::from(config.param_depth)
            && in_place
            && rows.into_iter().all(|row| row < u64::from(PARAM_ROWS))
    }

    /// Returns whether the two operands never share a bank. Their indices must be in bounds.
    fn operands_are_apart(&self, config: &HwConfig, [_, a, b]: [Option<Mem>; 3]) -> bool {
        let Some(mem) = a.filter(|a| Some(*a) == b) else { return true };
        let banks = [1, 2].map(|i| {
            let span = &self.spans[i];
            config.bank_of(mem, *span.start() as u32)..=config.bank_of(mem, *span.end() as u32)
        });
        banks[0].end() < banks[1].start() || banks[1].end() < banks[0].start()
    }

    /// Returns whether the instruction never reads a row that it wrote earlier.
    fn reads_are_old(&self, mems: [Option<Mem>; 3]) -> bool {
        let [dst, ..] = &self.spans;
        [1, 2].into_iter().filter(|i| mems[*i] == mems[0]).all(|i| {
            let read = &self.spans[i];
            let apart = read.end() < dst.start() || dst.end() < read.start();
            let same = |of: [u32; 3]| of[0] == of[i];
            let in_place = same(self.loops.base)
                && self.loops.uops.iter().all(|u| same(*u))
                && (0..3).all(|l| self.loops.counts[l] == 1 || same(self.loops.steps[l]));
            apart || in_place && self.loops.is_injective(0)
        })
    }

    /// Returns the entries of `wanted` from the operand's first to its last, if `wanted` is its memory.
    pub(super) fn entries(&self, operand: Option<Mem>, wanted: Mem) -> Option<Range<usize>> {
        // Only dst writes to inp, and only b reads param.
        let span = &self.spans[if wanted == Mem::Param { 2 } else { 0 }];
        (operand == Some(wanted)).then(|| *span.start() as usize..*span.end() as usize + 1)
    }
}
