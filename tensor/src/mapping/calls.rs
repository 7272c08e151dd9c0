//! Calls of instructions, as gemm and vector instructions with loops and micro-ops.

use tilewright_driver::{Dim, Nest};
use tilewright_hw::isa::{PARAM_ROWS, TAP_STRIDE, VecDst, VecOp, VecSrc, Vector};

use super::conditions::{NestLoop, Ranges, ranges};
use super::error::LowerError;
use super::intrinsics::{Instruction, VectorCall};
use super::lists::{Pick, only_sums};
use super::lower::Lower;
use super::params::Taps;
use super::periods::periods;
use crate::te::{Expr, Name};
use crate::tir::{Action, Affine, Block, For, Scope, View};

/// Most iterations of a reduction that become micro-ops of one kernel.
const MOST_UOPS: i64 = 4096;

/// What an iteration of a reduction adds to the indices, to the row of param, to the conditions, and to the indices of
/// lists.
struct SumStep {
    count: i64,
    indices: [i64; 3],
    row: i64,
    terms: Vec<i64>,
    picks: Vec<i64>,
}

impl SumStep {
    fn of(var: &Name, count: i64, at: &[Affine; 3], tap: &Affine, terms: &[Affine], picks: &[Pick]) -> SumStep {
        let of_terms = terms.iter().map(|g| g.coefficient(var)).collect();
        let indices = at.each_ref().map(|at| at.coefficient(var));
        let picks = picks.iter().map(|pick| pick.index.coefficient(var)).collect();
        SumStep { count, indices, row: tap.coefficient(var), terms: of_terms, picks }
    }
}

/// Returns the micro-ops of all iterations of the reductions, the innermost first in `steps`, for which no condition is
/// below 0; `None` if an index is negative or too large.
fn micro_ops(
    total: i64,
    at: &[Affine; 3],
    tap: &Affine,
    terms: &[Affine],
    picks: &[Pick],
    steps: &[SumStep],
) -> Option<Vec<[u32; 3]>> {
    let mut body = Vec::with_capacity(total.unsigned_abs() as usize);
    let (mut counts, mut chosen) = (vec![0; terms.len()], vec![0; picks.len()]);
    let rows = i64::from(PARAM_ROWS);
    for k in 0..total {
        let (mut rest, mut op, mut row) = (k, at.each_ref().map(|at| at.constant), tap.constant);
        counts.iter_mut().zip(terms).for_each(|(c, g)| *c = g.constant);
        chosen.iter_mut().zip(picks).for_each(|(c, pick)| *c = pick.index.constant);
        for step in steps {
            let i = rest % step.count;
            rest /= step.count;
            op.iter_mut().zip(step.indices).for_each(|(index, by)| *index += by * i);
            row += step.row * i;
            counts.iter_mut().zip(&step.terms).for_each(|(c, by)| *c += by * i);
            chosen.iter_mut().zip(&step.picks).for_each(|(c, by)| *c += by * i);
        }
        for (pick, index) in picks.iter().zip(&chosen) {
            let number = pick.at(*index);
            op.iter_mut().zip(at).for_each(|(index, at)| *index += at.coefficient(&pick.var) * number);
            counts.iter_mut().zip(terms).for_each(|(c, g)| *c += g.coefficient(&pick.var) * number);
        }
        if counts.iter().any(|&c| c < 0) {
            continue;
        }
        op[2] += row / rows * i64::from(TAP_STRIDE) + row % rows;
        let [a, b, c] = op.map(u32::try_from);
        body.push([a.ok()?, b.ok()?, c.ok()?]);
    }
    Some(body)
}

impl<'l> Lower<'l> {
    /// Adds the instructions of a nest of calls. Returns `false` if its outermost loop must run on its own.
    ///
    /// # Errors
    /// An operand is not an entry of a scratchpad, or the driver refuses the instruction.
    pub fn calls(&mut self, loops: &[&'l For], block: &'l Block) -> Result<bool, LowerError> {
        let Action::Call { intrinsic, args } = &block.action else { return Ok(false) };
        let instruction = self.instruction(block)?;
        let Some(desc) = self.f.intrinsic(intrinsic) else { return Ok(false) };
        let params = match &instruction {
            Instruction::Gemm { .. } => [Some(2), Some(0), Some(1)],
            Instruction::Vector(v) => v.params,
        };
        let mut at: [Affine; 3] = Default::default();
        // The tap within its block of channels, which counts rows of param.
        let (mut tap, mut picks) = (Affine::default(), Vec::new());
        for (slot, param) in at.iter_mut().zip(params) {
            let Some(param) = param else { continue };
            if let Some(taps) = self.taps.iter().find(|t| t.buffer == args[param].buffer) {
                match self.tap(taps, block, &args[param])? {
                    Some((first, of_block)) => (*slot, tap) = (first, of_block),
                    None => return Ok(false),
                }
                continue;
            }
            match self.entry_of_lists(block, &args[param], &desc.params[param].shape, &mut picks)? {
                Some(entry) => *slot = entry,
                None => return Ok(false),
            }
        }
        if let Instruction::Vector(v) = &instruction
            && v.is_fill()
        {
            // The bounds are equal, so any operand does.
            let Some(entry) = self.acc_entry else {
                return Err(self.refuse(block, "clip reads any entry of acc, and nothing before it writes one"));
            };
            at[1] = Affine { constant: entry.into(), ..Affine::default() };
        }
        // Biases, multipliers and shifts are parts of one entry.
        if let Instruction::Vector(VectorCall { b: VecSrc::Param, op: VecOp::Requant, .. }) = &instruction {
            for (view, param) in args.iter().zip(&desc.params) {
                if param.scope == Scope::Param && self.entry(block, view, &param.shape)?.as_ref() != Some(&at[2]) {
                    let reason = format!(
                        "{} is read at another entry than {}; biases, multipliers and shifts are parts of one entry",
                        view.buffer, args[1].buffer
                    );
                    return Err(self.refuse(block, reason));
                }
            }
        }
        let Some(guards) = self.sums_of_lists(&block.guards, &mut picks) else { return Ok(false) };
        if !only_sums(&picks, block, loops) {
            return Ok(false);
        }
        let summed = |l: &For| block.reduce.contains(&l.var);
        let of_sums =
            |g: &Affine, wanted: bool| loops.iter().any(|l| summed(l) == wanted && g.coefficient(&l.var) != 0);
        let of_lists = |g: &Affine| picks.iter().any(|pick| g.coefficient(&pick.var) != 0);
        let (terms, guards): (Vec<Affine>, Vec<Affine>) =
            guards.into_iter().partition(|g| of_sums(g, true) || of_lists(g));
        // Whether a term counts must not depend on the element.
        if terms.iter().any(|g| of_sums(g, false)) {
            return Ok(false);
        }
        let mut ranges = match ranges(&NestLoop::of(loops), &guards) {
            Ranges::Never => return Ok(true),
            Ranges::Of(ranges) => ranges,
            Ranges::Several => return Ok(false),
        };
        for (l, range) in loops.iter().zip(&mut ranges) {
            let (first, last) = self.running(l);
            *range = (range.0.max(first), range.1.min(last + 1));
        }
        if ranges.iter().any(|range| range.1 <= range.0) {
            return Ok(true);
        }
        for (l, range) in loops.iter().zip(&ranges) {
            at.iter_mut().for_each(|a| a.constant += a.coefficient(&l.var) * range.0);
            picks.iter_mut().for_each(|p| p.index.constant += p.index.coefficient(&l.var) * range.0);
        }
        let extents: Vec<i64> = ranges.iter().map(|r| r.1 - r.0).collect();
        let mut nest = Nest::default();
        let (mut sums, mut total): (Vec<(&Name, i64)>, i64) = (Vec::new(), 1);
        for (l, &n) in loops.iter().zip(&extents) {
            if summed(l) {
                sums.push((&l.var, n));
                total = total.saturating_mul(n);
                continue;
            }
            let mut steps = [0; 3];
            for (step, at) in steps.iter_mut().zip(&at) {
                let Ok(s) = u32::try_from(at.coefficient(&l.var)) else { return Ok(false) };
                *step = s;
            }
            nest.dims.push(Dim::new(n as u32, steps));
        }
        if total > MOST_UOPS {
            return Ok(false);
        }
        let step = |&(var, n): &(&Name, i64)| SumStep::of(var, n, &at, &tap, &terms, &picks);
        let steps: Vec<SumStep> = sums.iter().rev().map(step).collect();
        match micro_ops(total, &at, &tap, &terms, &picks, &steps) {
            Some(body) => nest.body = body,
            None => return Ok(false),
        }
        if nest.body.is_empty() {
            return Ok(true);
        }
        // Micro-ops count from the smallest indices, so that equal kernels are shared.
        for slot in 0..3 {
            let least = nest.body.iter().map(|op| op[slot]).min().unwrap_or(0);
            nest.at[slot] = least;
            nest.body.iter_mut().for_each(|op| op[slot] -= least);
        }
        if instruction.writes_acc() {
            self.acc_entry = Some(nest.at[0]);
        }
        match instruction {
            Instruction::Gemm { zero_point } => self.gemm(block, &args[2].buffer, zero_point, &nest)?,
            Instruction::Vector(v) => {
                self.vector(block, args, &v, &nest)?;
                // While sums are added up in acc, they are not done yet.
                let sums = [v.a, v.b].iter().position(|&source| source == VecSrc::Acc);
                if let Some(slot) = sums.filter(|_| v.dst != VecDst::Acc) {
                    self.has_summed(nest.at[1 + slot])?;
                }
            }
        }
        Ok(true)
    }

    /// Returns the row of param at which the taps of a block of channels begin, and which of them an argument is; `None`
    /// if they are not affine.
    ///
    /// # Errors
    /// The argument is not the lanes of a tap, or taps are not counted by a reduction.
    fn tap(&self, taps: &Taps, block: &Block, view: &View) -> Result<Option<(Affine, Affine)>, LowerError> {
        let (Some(place), [blocks @ .., tap, lane]) = (self.places.get(&view.buffer), &view.indices[..]) else {
            return Err(self.refuse(block, format!("{} has no taps", view.buffer)));
        };
        if view.dims.first().is_none_or(|dim| *lane != Expr::Var(dim.clone())) {
            return Err(self.refuse(block, format!("a tap of {} is not a row of its last dimension", view.buffer)));
        }
        let shape = self.f.buffer(&view.buffer).map_or(&[][..], |b| &b.shape);
        let (mut first, Some(tap)) = (Affine::default(), self.affine(tap)) else { return Ok(None) };
        for (index, &n) in blocks.iter().zip(shape) {
            let Some(index) = self.affine(index) else { return Ok(None) };
            first = first.times(n).plus(&index, 1);
        }
        if let Some(l) = tap.terms.keys().find(|v| !block.reduce.contains(v)) {
            return Err(self.refuse(block, format!("loop {l} chooses a tap, but it is no reduction")));
        }
        let mut first = first.times(taps.entries() * i64::from(TAP_STRIDE));
        first.constant += i64::from(self.slot(place) * TAP_STRIDE);
        Ok(Some((first, tap)))
    }

    fn gemm(&mut self, block: &Block, acc: &Name, less: i8, nest: &Nest) -> Result<(), LowerError> {
        if !self.overwrites(block, acc, 0)? {
            return Ok(self.b.gemm_nest_less(true, less, nest)?);
        }
        self.b.gemm_nest_less(false, less, &Nest { body: nest.body[..1].to_vec(), ..nest.clone() })?;
        if nest.body.len() > 1 {
            self.b.gemm_nest_less(true, less, &Nest { body: nest.body[1..].to_vec(), ..nest.clone() })?;
        }
        Ok(())
    }

    /// Notes an entry of acc with sums.
    fn has_summed(&mut self, acc: u32) -> Result<(), LowerError> {
        self.summed = self.summed.max(Some(acc));
        match self.once_summed.take() {
            Some(add) => Ok(add(self.b, acc)?),
            None => Ok(()),
        }
    }

    fn vector(&mut self, block: &Block, args: &[View], v: &VectorCall, nest: &Nest) -> Result<(), LowerError> {
        let descriptor = match v.table.and_then(|t| args.get(t)).and_then(|view| self.places.get(&view.buffer)) {
            Some(place) => self.slot(place),
            None => self.descriptor(v),
        };
        let Some(dst) = v.params[0].and_then(|dst| args.get(dst)).map(|view| &view.buffer) else {
            return Err(self.refuse(block, "it has no destination"));
        };
        let insn = Vector { op: v.op, mode: v.mode, dst: v.dst, a: v.a, b: v.b, descriptor, ..Vector::default() };
        let Some(other) = v.combines else {
            return Ok(self.b.vector_nest(insn, nest)?);
        };
        let (least, greatest) = match v.dst {
            VecDst::Acc => (i32::MIN.into(), i32::MAX.into()),
            VecDst::Out | VecDst::Inp => (i8::MIN.into(), i8::MAX.into()),
        };
        let identity: i64 = match v.op {
            VecOp::Max => least,
            VecOp::Min => greatest,
            VecOp::Add => 0,
            op => return Err(self.refuse(block, format!("a reduction by {} is not possible", op.name()))),
        };
        if other == VecSrc::Scalar {
            return Err(self.refuse(block, "it adds a constant again and again; multiply instead"));
        }
        if !self.overwrites(block, dst, identity)? {
            return Ok(self.b.vector_nest(insn, nest)?);
        }
        // The first operand of a reduction is moved.
        let slot = if v.params[1] == v.params[0] { 2 } else { 1 };
        let first = [nest.body[0][0], nest.body[0][slot], 0];
        let at = [nest.at[0], nest.at[slot], 0];
        let steps = |d: &Dim| Dim::new(d.count, [d.steps[0], d.steps[slot], 0]);
        let dims = nest.dims.iter().map(steps).collect();
        let moved = Vector { op: VecOp::Move, a: other, b: VecSrc::None, descriptor: 0, ..insn };
        self.b.vector_nest(moved, &Nest { at, body: vec![first], dims })?;
        for part in periods(nest, self.config.loops as usize) {
            self.b.vector_nest(insn, &part)?;
        }
        Ok(())
    }
}
