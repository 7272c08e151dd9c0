//! The gemm and vector units: times that depend on the instruction and the one before it alone.

use super::slots::Time;
use super::states::Layers;
use tilewright_hw::HwConfig;
use tilewright_hw::isa::{Gemm, VecOp, Vector};
use tilewright_hw::regs::UnitState;

/// Layers of what a unit does, the first that holds.
pub(super) mod layer {
    pub const ISSUE: usize = 0;
    pub const WAIT: usize = 1;
    pub const COUNT: usize = 2;
}

/// Cycles from a gemm micro-op's issue to the write of its result, without those of the multiplier.
const GEMM_WRITE: Time = 5;
/// Cycles from an issue to its operands' read, where its indices are checked.
pub(super) const READ: Time = 2;
/// Cycles from the last issue of a vector instruction to the end of its drain.
const DRAIN: Time = 17;
/// Words of a lookup's table.
const TABLE_WORDS: Time = (tilewright_hw::isa::TABLE_BYTES / 8) as Time;

/// When what of an instruction happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    /// The cycle in which the constants' first entry is asked for, where it has any.
    pub(super) constants: Option<Time>,
    /// First issue, cycles from one row or micro-op to the next, and last issue.
    pub(super) first: Time,
    pub(super) step: Time,
    pub(super) last: Time,
    /// The write of the last result.
    pub(super) retire: Time,
}

/// A unit that issues one instruction after the other.
pub(super) struct Compute {
    free: Time,
    last_issue: Option<Time>,
    deep: bool,
    pub(super) states: Layers<{ layer::COUNT }>,
}

impl Compute {
    pub(super) fn new() -> Compute {
        Compute { free: 0, last_issue: None, deep: false, states: Layers::new() }
    }

    /// The first cycle in which the next instruction may start.
    pub(super) fn free(&self) -> Time {
        self.free
    }

    /// A gemm instruction starts.
    pub(super) fn gemm(&mut self, config: &HwConfig, x: &Gemm, at: Time) -> Times {
        let micro_ops = [x.uops, x.count0, x.count1, x.count2].map(Time::from).iter().product::<Time>();
        let last = at + micro_ops;
        self.issue(at + 1, last);
        Times {
            constants: None,
            first: at + 1,
            step: 1,
            last,
            retire: last + GEMM_WRITE + Time::from(config.mul_stages),
        }
    }

    /// A vector instruction starts.
    pub(super) fn vector(&mut self, config: &HwConfig, x: &Vector, at: Time) -> Times {
        let deep = x.op.is_deep();
        let lanes = if deep { config.requant_lanes } else { config.vector_lanes };
        let step = Time::from(config.row_elements() / lanes) * if x.op == VecOp::Qadd { 3 } else { 1 };
        let rows = [x.uops, x.count0, x.count1, x.count2].map(Time::from).iter().product::<Time>();
        let constants = x.op.needs_descriptor(x.b);
        let drained = (at + 1).max(self.last_issue.map_or(0, |last| last + DRAIN));
        let first = if constants {
            let entries = if x.op == VecOp::Lut { TABLE_WORDS } else { config.descriptor_entries().into() };
            drained + 2 + entries
        } else if deep || self.deep {
            drained + 1
        } else {
            at + 1
        };
        let last = first + rows * step - 1;
        let write = match (deep, x.op) {
            (false, _) => 4,
            (true, VecOp::Qadd) => 12,
            (true, _) => 9,
        };
        self.deep = deep;
        self.issue(first, last);
        Times { constants: constants.then_some(drained + 1), first, step, last, retire: last + write }
    }

    fn issue(&mut self, first: Time, last: Time) {
        self.states.add(layer::ISSUE, first, last + 1, UnitState::Busy);
        self.last_issue = Some(last);
        self.free = last;
    }
}
