//! The work of one tile as a scheduled tensor expression, and the loop nest with which an instruction runs it.
//!
//! A [`Mapped`] expression says what the tile computes from data in the scratchpads. Its operands are read through the
//! accelerator's memory scopes, and its innermost loops become calls of an intrinsic that describes an instruction's
//! micro-op. Affine loops around one call remain: loops over the result become the instruction's loops, loops of a
//! reduction become its micro-ops.

use tilewright_driver::{Dim, Nest};

use crate::schedule::{Schedule, ScheduleError};
use crate::te::{Expr, Name, NameMap, Program};
use crate::tir::{
    Action, Affine, Block, Bounds, For, Function, Intrinsic, Scope, TirError, View, lower, parse, simplify,
};

/// Why a tile's work cannot be mapped to loops.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MapError {
    /// The expression is not well formed.
    #[error(transparent)]
    Tir(#[from] TirError),
    /// The schedule does not apply.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The scheduled program is not a loop nest that the accelerator can run.
    #[error("the tile's work does not map to {intrinsic}: {what}")]
    Shape {
        /// The intrinsic.
        intrinsic: Name,
        /// The problem.
        what: &'static str,
    },
}

/// What a tile computes, and how it maps to an instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapped {
    /// The expression.
    pub program: Program,
    /// The stage of the expression that becomes the instruction.
    pub stage: &'static str,
    /// Buffers that the stage reads, each with its memory scope.
    pub reads: Vec<(&'static str, Scope)>,
    /// Memory scope of the result.
    pub result: Scope,
    /// Loops of the instruction, loops over its micro-ops, and loops within a micro-op, each outermost first.
    pub loops: [Vec<&'static str>; 3],
    /// What a micro-op does.
    pub intrinsic: Intrinsic,
    /// Parameters of the intrinsic that each of a micro-op's three indices selects. Several parameters can share one
    /// entry.
    pub operands: [&'static [usize]; 3],
}

/// Parses the text of an intrinsic.
pub fn intrinsic(text: &str) -> Result<Intrinsic, TirError> {
    let mut isa = parse(&format!("function isa {{ {text} }}"))?;
    isa.intrinsics
        .pop()
        .ok_or_else(|| TirError::Malformed { function: isa.name, problems: vec!["it has no intrinsic".into()] })
}

impl Mapped {
    /// Returns the program with its loops in the accelerator's order and the intrinsic as the innermost statement.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn scheduled(&self) -> Result<Function, MapError> {
        Ok(self.schedule()?.into_function())
    }

    /// Returns the schedule whose result is [`Mapped::scheduled`].
    ///
    /// # Errors
    /// [`MapError`].
    pub fn schedule(&self) -> Result<Schedule, MapError> {
        let mut s = Schedule::with_intrinsics(lower(&self.program)?, std::slice::from_ref(&self.intrinsic));
        for (buffer, scope) in &self.reads {
            s.cache_read(self.stage, buffer, *scope)?;
        }
        s.cache_write(self.stage, self.result)?;
        let [around, sums, inside] =
            [0, 1, 2].map(|k| self.loops[k].iter().map(|l| format!("{}.{l}", self.stage)).collect::<Vec<_>>());
        let order: Vec<&String> = around.iter().chain(&sums).chain(&inside).collect();
        s.reorder(&order)?;
        if let Some(first) = sums.first() {
            s.decompose_reduction(self.stage, first)?;
        }
        s.tensorize(&inside[0], self.intrinsic.name.as_str())?;
        Ok(s)
    }

    /// Returns the loop nest that runs the work.
    ///
    /// [`Mapped::scheduled`] initializes a reduction with its neutral value. The first micro-op can overwrite the
    /// result instead of combining with that value.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn nest(&self) -> Result<Nest, MapError> {
        let f = self.scheduled()?;
        let wrong = |what| MapError::Shape { intrinsic: self.intrinsic.name.clone(), what };
        let mut found: Option<(Vec<For>, Block)> = None;
        f.body.visit_blocks(&mut |loops, b| {
            if let Action::Call { .. } = b.action {
                found = Some((loops.iter().map(|l| (*l).clone()).collect(), b.clone()));
            }
        });
        let (loops, block) = found.ok_or_else(|| wrong("there is no call"))?;
        let Action::Call { args, .. } = &block.action else { return Err(wrong("there is no call")) };
        let (sums, around): (Vec<For>, Vec<For>) = loops.into_iter().partition(|l| block.reduce.contains(&l.var));
        let mut bounds = Bounds::default();
        for l in around.iter().chain(&sums) {
            bounds.insert(l.var.clone(), (0, l.extent - 1));
        }
        let mut nest = Nest::default();
        for l in &around {
            nest.dims.push(Dim::new(l.extent as u32, [0; 3]));
        }
        let total: i64 = sums.iter().map(|l| l.extent).product();
        for k in 0..total {
            // The micro-op's position in the reduction's loops.
            let mut rest = k;
            let mut place: NameMap<i64> = NameMap::default();
            for l in sums.iter().rev() {
                place.insert(l.var.clone(), rest % l.extent);
                rest /= l.extent;
            }
            let mut op = [0; 3];
            for (slot, params) in self.operands.iter().enumerate() {
                let mut entries = params.iter().map(|&p| entry(&f, args.get(p)?, &place, &bounds));
                let Some(Some(at)) = entries.next() else { return Err(wrong("an index is not affine")) };
                if entries.any(|other| other.as_ref() != Some(&at)) {
                    return Err(wrong("parts of an operand are in different entries"));
                }
                op[slot] = u32::try_from(at.constant).map_err(|_| wrong("an index is negative"))?;
                for (l, d) in around.iter().zip(&mut nest.dims) {
                    let step = u32::try_from(at.coefficient(&l.var)).map_err(|_| wrong("a loop runs backwards"))?;
                    if k > 0 && d.steps[slot] != step {
                        return Err(wrong("a loop's step changes with the micro-op"));
                    }
                    d.steps[slot] = step;
                }
            }
            nest.body.push(op);
        }
        Ok(nest)
    }
}

/// Returns the index of the scratchpad entry at which a view begins, with the values of some variables filled in.
///
/// The view's last dimensions are the dimensions within an entry. `None` if the index is not affine or the view does
/// not cover whole entries.
fn entry(f: &Function, view: &View, known: &NameMap<i64>, bounds: &Bounds) -> Option<Affine> {
    let shape = &f.buffer(&view.buffer)?.shape;
    let outer = shape.len().checked_sub(view.dims.len())?;
    // Whole entries: the view's own dimensions come last, in order, starting at 0.
    let whole = view.indices[outer..].iter().zip(&view.dims).all(|(e, d)| *e == Expr::Var(d.clone()));
    if !whole {
        return None;
    }
    let mut at = Affine::default();
    for (e, &n) in view.indices[..outer].iter().zip(shape) {
        let e = simplify(&e.substitute(&|v| known.get(v).map(|&k| Expr::int(k))), bounds);
        at = at.times(n).plus(&Affine::of(&e)?, 1);
    }
    Some(at)
}
