//! Schedules: transformations of loop programs that change how a result is computed, never the result.
//!
//! A [`Schedule`] holds a function and the trace of [`Step`]s applied to it. Each primitive is in its own file, checks
//! its preconditions and fails with a reason; the function is verified after each step. A trace can be serialized, and
//! replayed on the original function. Loops are named by their variables. Primitives name new loops by fixed rules:
//! `split` of `i` creates `i.0`, `i.1`, …; `fuse` of `i` and `j` creates `i_j`.

mod access;
mod annotate;
mod bind;
mod cache;
mod compact;
mod compute_at;
mod compute_inline;
mod decompose_padding;
mod decompose_reduction;
mod digits;
mod error;
pub mod file;
mod fuse;
mod hoist;
mod keep;
mod linear;
mod merge;
mod omit;
mod overlay;
mod reorder;
mod slots;
mod split;
mod split_sum;
mod stage;
mod tensorize;
#[cfg(test)]
mod tests;
pub mod text;
mod tree;

pub(crate) use access::{accesses_in, injective, private};
pub use error::ScheduleError;
pub use hoist::{Hoisted, Part, Source, hoist};
pub use tree::bounds;
pub(crate) use tree::chain;

use error::Reason;
use serde::{Deserialize, Serialize};

use crate::te::Name;
use crate::tir::{Block, Function, Intrinsic, LoopKind, Scope, verify};

/// One application of a primitive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "primitive", rename_all = "snake_case")]
pub enum Step {
    /// Splits a loop into an outer loop and one loop per factor, outermost first.
    Split {
        /// The loop.
        target: String,
        /// Extents of the inner loops.
        factors: Vec<i64>,
    },
    /// Joins two loops. The inner loop must be the whole body of the outer one.
    Fuse {
        /// The outer loop.
        outer: String,
        /// The inner loop.
        inner: String,
    },
    /// Runs the body of a loop at the end of each iteration of an earlier one of the same extent.
    Merge {
        /// The earlier loop, whose name stays.
        first: String,
        /// The later loop.
        second: String,
    },
    /// Reorders loops of one nest.
    Reorder {
        /// The loops, outermost first.
        order: Vec<String>,
    },
    /// Moves the computation of a block to the start of a loop's body, reduced to the elements that are read there.
    ComputeAt {
        /// The block.
        block: String,
        /// The loop.
        target: String,
    },
    /// Computes a block's value where it is read.
    ComputeInline {
        /// The block.
        block: String,
    },
    /// Makes a block read a buffer through a copy in another scope.
    CacheRead {
        /// The reading block.
        block: String,
        /// The buffer.
        buffer: String,
        /// Scope of the copy.
        scope: String,
    },
    /// Makes a block write a buffer in another scope first, which is then copied to the original.
    CacheWrite {
        /// The writing block.
        block: String,
        /// Scope of the new buffer.
        scope: String,
    },
    /// Copies what a block copies to a tensor also to a buffer in another scope, which holds the whole tensor.
    Keep {
        /// The block.
        block: String,
        /// The loop around the copy of one part of the tensor.
        target: String,
        /// Scope of the new buffer.
        scope: String,
    },
    /// Sets the scope of a local buffer.
    SetScope {
        /// The buffer.
        buffer: String,
        /// The new scope.
        scope: String,
    },
    /// Shrinks a local buffer to what one iteration of the loops around all its uses needs.
    Compact {
        /// The buffer.
        buffer: String,
    },
    /// Sets how many iterations of a pipeline can have their part of a buffer in a scratchpad at the same time.
    Slots {
        /// The buffer.
        buffer: String,
        /// The number.
        count: i64,
    },
    /// Gives a buffer the entries of another one, whose elements are needed no more when it is written.
    Overlay {
        /// The buffer.
        buffer: String,
        /// The other one.
        other: String,
    },
    /// Sets in which stage of a software pipeline a block runs.
    Stage {
        /// The block.
        block: String,
        /// The stage, from 0.
        number: i64,
    },
    /// Changes how a loop's iterations are executed.
    Annotate {
        /// The loop.
        target: String,
        /// The kind's keyword in the text form.
        kind: String,
    },
    /// Maps a loop's iterations to the blocks or the threads of a GPU.
    Bind {
        /// The loop.
        target: String,
        /// A keyword of the text form, `block_x` to `thread_z`.
        place: String,
    },
    /// Leaves out elements of a block that stores `select(CONDITION, VALUE, CONSTANT)`, if no output depends on them.
    Omit {
        /// The block.
        block: String,
    },
    /// Moves the padding that a block stores into separate blocks before a loop.
    DecomposePadding {
        /// The block.
        block: String,
        /// The loop.
        target: String,
    },
    /// Moves a reduction's initial value into a separate block before a loop.
    DecomposeReduction {
        /// The block.
        block: String,
        /// The loop.
        target: String,
    },
    /// Adds the second of two terms of a sum in a block of its own, in a copy of a loop behind it.
    SplitSum {
        /// The block.
        block: String,
        /// The loop.
        target: String,
    },
    /// Replaces a loop and its body by a call of a tensor intrinsic.
    Tensorize {
        /// The loop.
        target: String,
        /// The intrinsic.
        intrinsic: String,
    },
}

/// A function and the steps applied to it.
#[derive(Debug, Clone)]
pub struct Schedule {
    function: Function,
    trace: Vec<Step>,
    /// Whether the function is verified after each step.
    verifies: bool,
}

impl Schedule {
    /// Creates an empty schedule of a verified function.
    pub fn new(function: Function) -> Schedule {
        Schedule { function, trace: Vec::new(), verifies: true }
    }

    /// Returns the schedule, which is no longer verified after each step: steps that are known to apply are then much
    /// faster. After an error the function can be in any state.
    pub fn without_checks(self) -> Schedule {
        Schedule { verifies: false, ..self }
    }

    /// Verifies the function, and from now on after each step.
    pub fn with_checks(self) -> Option<Schedule> {
        verify(&self.function).ok()?;
        Some(Schedule { verifies: true, ..self })
    }

    /// Creates an empty schedule of a function that can be tensorized with these intrinsics.
    pub fn with_intrinsics(mut function: Function, intrinsics: &[Intrinsic]) -> Schedule {
        function.intrinsics.extend(intrinsics.iter().cloned());
        Schedule::new(function)
    }

    /// Adds an intrinsic that later steps can use. It must have a name of its own.
    pub fn declare(&mut self, intrinsic: Intrinsic) {
        self.function.intrinsics.push(intrinsic);
    }

    /// Replaces the block of that name by one that computes the same.
    pub(crate) fn replace(&mut self, block: &Block) {
        self.function.body.each_block_mut(&mut |b| {
            if b.name == block.name {
                *b = block.clone();
            }
        });
    }

    /// Returns the current function.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Returns the function, with only those intrinsics that it calls.
    pub fn into_function(self) -> Function {
        let mut f = self.function;
        let mut used = Vec::new();
        f.body.visit_blocks(&mut |_, b| {
            if let crate::tir::Action::Call { intrinsic, .. } = &b.action {
                used.push(intrinsic.clone());
            }
        });
        f.intrinsics.retain(|i| used.contains(&i.name));
        f
    }

    /// Returns the steps applied so far.
    pub fn trace(&self) -> &[Step] {
        &self.trace
    }

    /// Applies steps in order.
    ///
    /// # Errors
    /// The error of the first step that fails. The steps before it stay applied.
    pub fn replay(&mut self, steps: &[Step]) -> Result<(), ScheduleError> {
        steps.iter().try_for_each(|s| self.apply(s.clone()).map(|_| ()))
    }

    /// Applies a step. Returns the names of the loops, blocks or buffers that it creates.
    ///
    /// # Errors
    /// [`ScheduleError`] with the step and why it cannot be applied. The function is then unchanged.
    pub fn apply(&mut self, step: Step) -> Result<Vec<Name>, ScheduleError> {
        if !self.verifies {
            let made = dispatch(&mut self.function, &step)
                .map_err(|reason| ScheduleError { step: step.clone(), reason: reason.0 })?;
            self.trace.push(step);
            return Ok(made);
        }
        let mut f = self.function.clone();
        let made = dispatch(&mut f, &step)
            .and_then(|made| match verify(&f) {
                Ok(()) => Ok(made),
                Err(e) => Err(Reason(format!("the result is invalid: {e}"))),
            })
            .map_err(|reason| ScheduleError { step: step.clone(), reason: reason.0 })?;
        self.function = f;
        self.trace.push(step);
        Ok(made)
    }

    /// Splits a loop. Returns the new loops, outermost first. See [`Step::Split`].
    ///
    /// # Errors
    /// The same as [`Schedule::apply`]. This also holds for the methods below.
    pub fn split(&mut self, target: &str, factors: &[i64]) -> Result<Vec<Name>, ScheduleError> {
        self.apply(Step::Split { target: target.into(), factors: factors.to_vec() })
    }

    /// Joins two loops. See [`Step::Fuse`].
    #[allow(clippy::missing_errors_doc)]
    pub fn fuse(&mut self, outer: &str, inner: &str) -> Result<Name, ScheduleError> {
        Ok(self.apply(Step::Fuse { outer: outer.into(), inner: inner.into() })?.remove(0))
    }

    /// Merges two loops. See [`Step::Merge`].
    #[allow(clippy::missing_errors_doc)]
    pub fn merge(&mut self, first: &str, second: &str) -> Result<(), ScheduleError> {
        self.apply(Step::Merge { first: first.into(), second: second.into() }).map(|_| ())
    }

    /// Reorders loops of one nest. See [`Step::Reorder`].
    #[allow(clippy::missing_errors_doc)]
    pub fn reorder<S: AsRef<str>>(&mut self, order: &[S]) -> Result<(), ScheduleError> {
        let order = order.iter().map(|s| s.as_ref().to_string()).collect();
        self.apply(Step::Reorder { order }).map(|_| ())
    }

    /// Splits two adjacent loops and moves both inner parts inside. Returns `[y.0, x.0, y.1, x.1]`.
    #[allow(clippy::missing_errors_doc)]
    pub fn tile(&mut self, y: &str, x: &str, factors: [i64; 2]) -> Result<Vec<Name>, ScheduleError> {
        let ys = self.split(y, &factors[..1])?;
        let xs = self.split(x, &factors[1..])?;
        let order = vec![ys[0].clone(), xs[0].clone(), ys[1].clone(), xs[1].clone()];
        self.reorder(&order.iter().map(Name::as_str).collect::<Vec<_>>())?;
        Ok(order)
    }

    /// Moves a block into a loop. See [`Step::ComputeAt`].
    #[allow(clippy::missing_errors_doc)]
    pub fn compute_at(&mut self, block: &str, target: &str) -> Result<(), ScheduleError> {
        self.apply(Step::ComputeAt { block: block.into(), target: target.into() }).map(|_| ())
    }

    /// Computes a block's value where it is read. See [`Step::ComputeInline`].
    #[allow(clippy::missing_errors_doc)]
    pub fn compute_inline(&mut self, block: &str) -> Result<(), ScheduleError> {
        self.apply(Step::ComputeInline { block: block.into() }).map(|_| ())
    }

    /// Makes a block read a copy. Returns the name of the copy's buffer and block. See [`Step::CacheRead`].
    #[allow(clippy::missing_errors_doc)]
    pub fn cache_read(&mut self, block: &str, buffer: &str, scope: Scope) -> Result<Name, ScheduleError> {
        let scope = scope.name().into();
        Ok(self.apply(Step::CacheRead { block: block.into(), buffer: buffer.into(), scope })?.remove(0))
    }

    /// Makes a block write another buffer first. Returns that buffer and the copying block. See [`Step::CacheWrite`].
    #[allow(clippy::missing_errors_doc)]
    pub fn cache_write(&mut self, block: &str, scope: Scope) -> Result<[Name; 2], ScheduleError> {
        let made = self.apply(Step::CacheWrite { block: block.into(), scope: scope.name().into() })?;
        Ok([made[0].clone(), made[1].clone()])
    }

    /// Sets the scope of a local buffer. See [`Step::SetScope`].
    #[allow(clippy::missing_errors_doc)]
    pub fn set_scope(&mut self, buffer: &str, scope: Scope) -> Result<(), ScheduleError> {
        self.apply(Step::SetScope { buffer: buffer.into(), scope: scope.name().into() }).map(|_| ())
    }

    /// Shrinks a local buffer. See [`Step::Compact`].
    #[allow(clippy::missing_errors_doc)]
    pub fn compact(&mut self, buffer: &str) -> Result<(), ScheduleError> {
        self.apply(Step::Compact { buffer: buffer.into() }).map(|_| ())
    }

    /// Sets the number of slots of a buffer. See [`Step::Slots`].
    #[allow(clippy::missing_errors_doc)]
    pub fn slots(&mut self, buffer: &str, count: i64) -> Result<(), ScheduleError> {
        self.apply(Step::Slots { buffer: buffer.into(), count }).map(|_| ())
    }

    /// Gives a buffer the entries of another one. See [`Step::Overlay`].
    #[allow(clippy::missing_errors_doc)]
    pub fn overlay(&mut self, buffer: &str, other: &str) -> Result<(), ScheduleError> {
        self.apply(Step::Overlay { buffer: buffer.into(), other: other.into() }).map(|_| ())
    }

    /// Sets the stage of a block. See [`Step::Stage`].
    #[allow(clippy::missing_errors_doc)]
    pub fn stage(&mut self, block: &str, number: i64) -> Result<(), ScheduleError> {
        self.apply(Step::Stage { block: block.into(), number }).map(|_| ())
    }

    /// Changes a loop's kind: vectorize, unroll, parallel, pipeline. See [`Step::Annotate`].
    #[allow(clippy::missing_errors_doc)]
    pub fn annotate(&mut self, target: &str, kind: LoopKind) -> Result<(), ScheduleError> {
        self.apply(Step::Annotate { target: target.into(), kind: kind.name().into() }).map(|_| ())
    }

    /// Maps a loop to blocks or threads of a GPU. See [`Step::Bind`].
    #[allow(clippy::missing_errors_doc)]
    pub fn bind(&mut self, target: &str, place: LoopKind) -> Result<(), ScheduleError> {
        self.apply(Step::Bind { target: target.into(), place: place.name().into() }).map(|_| ())
    }

    /// Leaves out elements that no output depends on. See [`Step::Omit`].
    #[allow(clippy::missing_errors_doc)]
    pub fn omit(&mut self, block: &str) -> Result<(), ScheduleError> {
        self.apply(Step::Omit { block: block.into() }).map(|_| ())
    }

    /// Moves padding before a loop. Returns the new blocks. See [`Step::DecomposePadding`].
    #[allow(clippy::missing_errors_doc)]
    pub fn decompose_padding(&mut self, block: &str, target: &str) -> Result<Vec<Name>, ScheduleError> {
        self.apply(Step::DecomposePadding { block: block.into(), target: target.into() })
    }

    /// Moves a reduction's initial value before a loop. Returns the new block. See [`Step::DecomposeReduction`].
    #[allow(clippy::missing_errors_doc)]
    pub fn decompose_reduction(&mut self, block: &str, target: &str) -> Result<Name, ScheduleError> {
        Ok(self.apply(Step::DecomposeReduction { block: block.into(), target: target.into() })?.remove(0))
    }

    /// Adds the second of two terms of a sum in a block of its own. Returns it and its loops. See [`Step::SplitSum`].
    #[allow(clippy::missing_errors_doc)]
    pub fn split_sum(&mut self, block: &str, target: &str) -> Result<Vec<Name>, ScheduleError> {
        self.apply(Step::SplitSum { block: block.into(), target: target.into() })
    }

    /// Replaces a loop by a call of an intrinsic. See [`Step::Tensorize`].
    #[allow(clippy::missing_errors_doc)]
    pub fn tensorize(&mut self, target: &str, intrinsic: &str) -> Result<(), ScheduleError> {
        self.apply(Step::Tensorize { target: target.into(), intrinsic: intrinsic.into() }).map(|_| ())
    }
}

fn scope_of(name: &str) -> Result<Scope, Reason> {
    let found = Scope::NAMES.iter().find(|s| s.1 == name);
    let names = || Scope::NAMES.iter().map(|s| s.1).collect::<Vec<_>>().join(", ");
    found.map(|s| s.0).ok_or_else(|| Reason(format!("there is no memory scope {name}; the scopes are {}", names())))
}

fn dispatch(f: &mut Function, step: &Step) -> Result<Vec<Name>, Reason> {
    match step {
        Step::Split { target, factors } => split::split(f, &target.into(), factors),
        Step::Fuse { outer, inner } => fuse::fuse(f, &outer.into(), &inner.into()),
        Step::Merge { first, second } => merge::merge(f, &first.into(), &second.into()),
        Step::Reorder { order } => reorder::reorder(f, &order.iter().map(Name::from).collect::<Vec<_>>()),
        Step::ComputeAt { block, target } => compute_at::compute_at(f, &block.into(), &target.into()),
        Step::ComputeInline { block } => compute_inline::compute_inline(f, &block.into()),
        Step::CacheRead { block, buffer, scope } => {
            cache::cache_read(f, &block.into(), &buffer.into(), scope_of(scope)?)
        }
        Step::CacheWrite { block, scope } => cache::cache_write(f, &block.into(), scope_of(scope)?),
        Step::Keep { block, target, scope } => keep::keep(f, &block.into(), &target.into(), scope_of(scope)?),
        Step::SetScope { buffer, scope } => cache::set_scope(f, &buffer.into(), scope_of(scope)?),
        Step::Compact { buffer } => compact::compact(f, &buffer.into()),
        Step::Slots { buffer, count } => slots::slots(f, &buffer.into(), *count),
        Step::Overlay { buffer, other } => overlay::overlay(f, &buffer.into(), &other.into()),
        Step::Stage { block, number } => stage::stage(f, &block.into(), *number),
        Step::Annotate { target, kind } => annotate::annotate(f, &target.into(), kind),
        Step::Bind { target, place } => bind::bind(f, &target.into(), place),
        Step::Omit { block } => omit::omit(f, &block.into()),
        Step::DecomposePadding { block, target } => {
            decompose_padding::decompose_padding(f, &block.into(), &target.into())
        }
        Step::DecomposeReduction { block, target } => {
            decompose_reduction::decompose_reduction(f, &block.into(), &target.into())
        }
        Step::SplitSum { block, target } => split_sum::split_sum(f, &block.into(), &target.into()),
        Step::Tensorize { target, intrinsic } => tensorize::tensorize(f, &target.into(), &intrinsic.into()),
    }
}
