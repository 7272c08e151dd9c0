//! The gemm and vector units. Their times depend only on the instruction and its predecessor.

use super::ports::{AccessPattern, Accesses, Collision, Indices, MicroOps, Ports, Use};
use super::slots::Time;
use super::states::Layers;
use crate::functional::loops::Affine;
use std::rc::Rc;
use tilewright_hw::HwConfig;
use tilewright_hw::config::Mem;
use tilewright_hw::isa::{Gemm, Unit, VecOp, Vector};
use tilewright_hw::regs::UnitState;

/// Layers of a unit's states. The first layer with a state wins.
pub(super) mod layer {
    pub const ISSUE: usize = 0;
    pub const WAIT: usize = 1;
    pub const COUNT: usize = 2;
}

/// Cycles from a gemm micro-op's issue to the read of the sum that it adds to, excluding the multiplier's stages.
const GEMM_READ: Time = 3;
/// Cycles from an element's issue in the serial vector unit to the second read of operand b.
const SECOND_READ: Time = 5;
/// Cycles from an issue to the read of its operands, when its indices are checked.
pub(super) const READ: Time = 2;
/// Cycles from the last issue of a vector instruction to the end of its drain.
const DRAIN: Time = 17;
/// Words of a lookup table.
const TABLE_WORDS: Time = (tilewright_hw::isa::TABLE_BYTES / 8) as Time;

/// The cycles of an instruction's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    /// The cycle in which the first entry of the constants is requested, if it has constants.
    pub(super) constants: Option<Time>,
    /// First issue, cycles between two rows or micro-ops, and last issue.
    pub(super) first: Time,
    pub(super) step: Time,
    pub(super) last: Time,
    /// The cycle of the last result's write.
    pub(super) retire: Time,
}

/// The part of an instruction that accesses memories.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Number of micro-ops, from the first.
    pub(super) micro_ops: u64,
    /// The cycle at which accesses stop counting.
    pub(super) end: Time,
}

impl Extent {
    /// Covers the whole instruction.
    pub(super) fn whole(micro_ops: u64) -> Extent {
        Extent { micro_ops, end: Time::MAX }
    }
}

/// Returns the cycles from a gemm micro-op's issue to the write of its result.
fn gemm_write(config: &HwConfig) -> Time {
    Time::from(5 + config.mul_stages - u32::from(config.lean))
}

/// Adds a gemm instruction's accesses to the ports that units share. Returns the first collision.
pub(super) fn gemm_ports(
    config: &HwConfig,
    ports: &mut Ports,
    x: &Gemm,
    uops: &Rc<MicroOps>,
    (t, extent): (Times, Extent),
    ordinal: u32,
) -> Option<Collision> {
    let mul = Time::from(config.mul_stages);
    let loops = Affine::from(x);
    let mut add = |mem, write, delay: Time, operand| {
        let indices = Indices { micro_ops: Rc::clone(uops), loops, operand };
        let pattern = AccessPattern::Rows { indices, every: 1, accesses: Accesses::EACH };
        let from = t.first + delay;
        let to = (from + extent.micro_ops).min(extent.end);
        let used = Use { unit: Unit::Gemm, ordinal, from, to, pattern };
        ports.add(mem, write, used)
    };
    let inp = add(Mem::Inp, false, READ, 1);
    let read = x.accumulate.then(|| add(Mem::Acc, false, GEMM_READ + mul, 0)).flatten();
    let write = add(Mem::Acc, true, gemm_write(config), 0);
    [inp, read, write].into_iter().flatten().min()
}

/// Adds a vector instruction's accesses to the ports that units share. Returns the first collision.
pub(super) fn vector_ports(
    config: &HwConfig,
    ports: &mut Ports,
    x: &Vector,
    uops: &Rc<MicroOps>,
    (t, extent): (Times, Extent),
    ordinal: u32,
) -> Option<Collision> {
    let serial = config.vector_serial();
    let apart = match x.op.is_deep() {
        _ if serial => config.serial_element_cycles(x.op).into(),
        true => config.pass_cycles().into(),
        false => 1,
    };
    let reads =
        if x.op == VecOp::Qadd { Accesses { count: 2, apart, of: 3 } } else { Accesses { count: 1, apart, of: 1 } };
    let loops = Affine::from(x);
    let mut add = |mem: Option<Mem>, write, from, to: Time, operand, accesses| {
        let indices = Indices { micro_ops: Rc::clone(uops), loops, operand };
        let pattern = AccessPattern::Rows { indices, every: t.step, accesses };
        let to = to.min(extent.end);
        ports.add(mem.filter(|m| Ports::shares(*m))?, write, Use { unit: Unit::Vector, ordinal, from, to, pattern })
    };
    // The cycle after the last row's issue.
    let issued = t.first + extent.micro_ops * t.step;
    let (from, to) = (t.first + READ, issued + READ);
    let a = add(x.a.mem(), false, from, to, 1, reads);
    let b = add(x.b.mem(), false, from, to, 2, reads);
    let again = match serial {
        true => add(x.b.mem(), false, t.first + SECOND_READ, issued + SECOND_READ, 2, reads),
        false => None,
    };
    let old = if x.op.reads_dst() { add(Some(x.dst.mem()), false, from, to, 0, reads) } else { None };
    let write = t.retire - t.last;
    let dst = add(
        Some(x.dst.mem()),
        true,
        t.first + t.step - 1 + write,
        issued + write,
        0,
        Accesses { count: 1, apart: 1, of: t.step },
    );
    [a, b, again, old, dst].into_iter().flatten().min()
}

/// A unit that issues one instruction at a time.
pub(super) struct Compute {
    free: Time,
    /// The last cycle in which the fields of the last started instruction are needed.
    held: Time,
    last_issue: Option<Time>,
    deep: bool,
    pub(super) states: Layers<{ layer::COUNT }>,
}

impl Compute {
    pub(super) fn new() -> Compute {
        Compute { free: 0, held: 0, last_issue: None, deep: false, states: Layers::new() }
    }

    /// Returns the first cycle in which the next instruction can start.
    pub(super) fn free(&self) -> Time {
        self.free
    }

    /// Returns the first cycle in which a lean queue may overwrite the fields of the last instruction at its head.
    pub(super) fn released(&self) -> Time {
        self.held + 1
    }

    /// Starts a gemm instruction.
    pub(super) fn gemm(&mut self, config: &HwConfig, x: &Gemm, at: Time) -> Times {
        let last = at + x.micro_ops();
        self.issue(at + 1, last);
        let retire = last + gemm_write(config);
        self.held = retire;
        Times { constants: None, first: at + 1, step: 1, last, retire }
    }

    /// Starts a vector instruction.
    pub(super) fn vector(&mut self, config: &HwConfig, x: &Vector, at: Time) -> Times {
        if config.vector_serial() {
            let first = at + 2;
            let step = Time::from(config.row_elements() * config.serial_element_cycles(x.op));
            let last = first + x.micro_ops() * step - 1;
            self.issue(first, last);
            self.held = last;
            return Times { constants: x.op.needs_descriptor(x.b).then_some(at + 1), first, step, last, retire: last };
        }
        let deep = x.op.is_deep();
        let step = Time::from(if deep {
            config.deep_row_cycles(if x.op == VecOp::Qadd { 3 } else { 1 })
        } else {
            config.row_elements() / config.vector_lanes
        });
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
        let last = first + x.micro_ops() * step - 1;
        // Simple operations use only the first of the stages.
        let write = Time::from(if deep { config.vector_stages } else { config.vector_stages.min(1) })
            + match (deep, x.op) {
                (false, _) => 4,
                // A serial pass lasts so long that most of the pipeline is done by its last cycle.
                (true, _) if config.requant_serial => 5,
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
