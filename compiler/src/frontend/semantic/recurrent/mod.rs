//! Recurrent layers.
//!
//! The input products of all steps are one dense layer. Each step adds the product of the state, applies the cell's
//! functions ([`cell`]), and keeps the state of sequences that have ended. A few steps are unrolled, so that the
//! accelerator can compute all of them in one go; the nodes of all steps are the same, which the CPU back end compiles
//! once. Many steps are a loop of the graph.

mod activation;
mod cell;

use super::SemanticBuilder;
use super::flow::Step;
use super::movement::{beside, part, reversed};
use crate::frontend::reason::Reason;
use crate::graph::op::{BinaryKind, Dense, Gather, MOST_STEPS, Select, Transpose, UnaryKind};
use crate::graph::{DType, Tensor, ValueId};
pub use activation::{Activation, Function};
use cell::{Cell, State};

/// Maximum number of steps that are unrolled, both directions together.
const MOST_UNROLLED: usize = 256;

/// Number of results that are joined at once: an element's position is compared with the ends of that many.
const JOINED: usize = 8;

const DENSE: Dense = Dense { data_zero_point: 0, weight_zero_point: 0 };

/// Which cell a layer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecurrentKind {
    Rnn,
    Gru,
    Lstm,
}

impl RecurrentKind {
    /// Number of gates. Their order in the weights: the state's own; update, reset, hidden; input, output, forget,
    /// cell.
    pub fn gates(self) -> usize {
        match self {
            RecurrentKind::Rnn => 1,
            RecurrentKind::Gru => 3,
            RecurrentKind::Lstm => 4,
        }
    }

    /// Maximum number of nodes and constants that a step becomes.
    fn step_nodes(self) -> usize {
        match self {
            RecurrentKind::Rnn => 20,
            RecurrentKind::Gru => 40,
            RecurrentKind::Lstm => 56,
        }
    }

    /// The activation functions that a direction usually has.
    pub fn activations(self) -> &'static [Activation] {
        const SIGMOID: Activation = Activation::of(UnaryKind::Sigmoid);
        const TANH: Activation = Activation::of(UnaryKind::Tanh);
        match self {
            RecurrentKind::Rnn => &[TANH],
            RecurrentKind::Gru => &[SIGMOID, TANH],
            RecurrentKind::Lstm => &[SIGMOID, TANH, TANH],
        }
    }
}

/// Joins many tensors along dimension 0, as a tree.
fn joined(n: &mut SemanticBuilder, suffix: &str, mut parts: Vec<ValueId>) -> Result<ValueId, Reason> {
    let mut level = 0;
    while parts.len() > 1 {
        let mut next = Vec::with_capacity(parts.len().div_ceil(JOINED));
        for (i, group) in parts.chunks(JOINED).enumerate() {
            next.push(beside(n, &format!("{suffix}/{level}/{i}"), 0, group)?);
        }
        (parts, level) = (next, level + 1);
    }
    parts.first().copied().ok_or_else(|| "has nothing to join".into())
}

/// The sizes of a layer.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub steps: usize,
    pub batch: usize,
    pub input: usize,
    pub hidden: usize,
}

/// The lengths of the batch's sequences.
pub struct Lengths {
    /// `[batch, 1]`, i32.
    pub value: ValueId,
    /// Number of steps that all sequences have; 0 for lengths that are computed at run time.
    pub common: usize,
}

/// A recurrent layer: its operands and what its cells do.
pub struct Recurrence {
    pub kind: RecurrentKind,
    pub sizes: Sizes,
    /// For each direction, whether it runs from the last step to the first.
    pub reverse: Vec<bool>,
    /// True if results and final states have batches outside.
    pub batch_first: bool,
    /// `[steps, batch, input]`.
    pub x: ValueId,
    /// `[directions, gates * hidden, input]`.
    pub w: ValueId,
    /// `[directions, gates * hidden, hidden]`.
    pub r: ValueId,
    /// `[directions, 2 * gates * hidden]`: biases of the input's products, then of the state's.
    pub b: Option<ValueId>,
    /// `[directions, batch, hidden]`.
    pub h: ValueId,
    /// The initial cell state of an LSTM, in the same shape.
    pub c: Option<ValueId>,
    /// `[directions, 3 * hidden]`: factors of the cell state for input, output and forget gates.
    pub peepholes: Option<ValueId>,
    pub lengths: Option<Lengths>,
    pub activations: Vec<Activation>,
    pub clip: Option<f32>,
    pub linear_before_reset: bool,
    pub input_forget: bool,
}

/// What a recurrent layer gives.
pub struct Results {
    /// The output of each step, `[steps, directions, batch, hidden]`.
    pub y: ValueId,
    /// The last output, `[directions, batch, hidden]`.
    pub h: ValueId,
    /// The last cell state of an LSTM, in the same shape.
    pub c: Option<ValueId>,
}

impl Recurrence {
    /// Builds the layer. With `batch_first`, the results have batches outside steps and directions.
    pub fn build(&self, n: &mut SemanticBuilder) -> Result<Results, Reason> {
        self.check(n)?;
        let (mut all, mut last_h, mut last_c) = (Vec::new(), Vec::new(), Vec::new());
        for d in 0..self.reverse.len() {
            let (y, state) = self.direction(n, d)?;
            let Sizes { steps, batch, hidden, .. } = self.sizes;
            all.push(n.reshape(&format!("{d}/y"), y, &[steps, 1, batch, hidden])?);
            last_h.push(n.reshape(&format!("{d}/y_h"), state.h, &[1, batch, hidden])?);
            if let Some(c) = state.c {
                last_c.push(n.reshape(&format!("{d}/y_c"), c, &[1, batch, hidden])?);
            }
        }
        let y = beside(n, "y", 1, &all)?;
        let h = beside(n, "y_h", 0, &last_h)?;
        let (y, h) = (self.turned(n, "y", y, [2, 0, 1, 3])?, self.turned(n, "y_h", h, [1, 0, 2])?);
        let c = match last_c.is_empty() {
            true => None,
            false => {
                let c = beside(n, "y_c", 0, &last_c)?;
                Some(self.turned(n, "y_c", c, [1, 0, 2])?)
            }
        };
        Ok(Results { y, h, c })
    }

    /// Fails if there is nothing to do, or too much.
    fn check(&self, n: &mut SemanticBuilder) -> Result<(), Reason> {
        let Sizes { steps, batch, input, hidden } = self.sizes;
        if [steps, batch, input, hidden].contains(&0) {
            return Err("its sequence length, batch, input and hidden sizes must be positive".into());
        }
        if steps as u64 > MOST_STEPS {
            let remedy =
                "set a shorter sequence with --bind or --shape, and export Y_h and initial_h to run it in parts";
            return Err(format!("its {steps} steps are not supported; the maximum is {MOST_STEPS}: {remedy}").into());
        }
        let built = if self.is_unrolled() { steps } else { 1 };
        n.reserve_nodes(built * self.reverse.len() * self.kind.step_nodes())
    }

    /// Whether each step has nodes of its own.
    fn is_unrolled(&self) -> bool {
        self.sizes.steps.saturating_mul(self.reverse.len()) <= MOST_UNROLLED
    }

    /// The results of all steps, `[steps * batch, hidden]`, and the final state of a direction.
    fn direction(&self, n: &mut SemanticBuilder, d: usize) -> Result<(ValueId, State), Reason> {
        let Sizes { steps, batch, input, hidden } = self.sizes;
        let label = if self.reverse[d] { "reverse" } else { "forward" };
        let cell = Cell::of(self, n, label, d)?;
        let rows = n.reshape(&format!("{label}/rows"), self.x, &[steps * batch, input])?;
        let w = self.own(n, &format!("{label}/w"), self.w, d)?;
        let mut operands = vec![rows, w];
        operands.extend(cell.input_bias);
        let products = n.node(&format!("{label}/input"), DENSE, &operands)?;
        let products = n.reshape(&format!("{label}/steps"), products, &[steps, batch, self.kind.gates() * hidden])?;
        let h = self.own(n, &format!("{label}/h"), self.h, d)?;
        let c = self.c.map(|c| self.own(n, &format!("{label}/c"), c, d)).transpose()?;
        if !self.is_unrolled() {
            return self.repeated(n, (d, label), products, State { h, c });
        }
        let mut state = State { h, c };
        let mut results = vec![None; steps];
        for i in 0..steps {
            let t = if self.reverse[d] { steps - 1 - i } else { i };
            let at = format!("{label}/{t}");
            let place = n.made(&format!("{at}/place"), Tensor::scalar(t as i32));
            let x = n.node(&format!("{at}/x"), Gather { axis: 0 }, &[products, place])?;
            let next = cell.step(n, &at, x, state)?;
            let (y, next) = match self.lengths.as_ref().is_some_and(|lengths| t >= lengths.common) {
                true => {
                    let place = n.made(&format!("{at}/step"), Tensor::scalar(t as i32));
                    self.alive(n, &at, place, next, state)?
                }
                false => (next.h, next),
            };
            (results[t], state) = (Some(y), next);
        }
        let y = joined(n, &format!("{label}/y"), results.into_iter().flatten().collect())?;
        Ok((y, state))
    }

    /// The same as a loop; `products` are those of the input, `[steps, batch, gates * hidden]`.
    fn repeated(
        &self,
        n: &mut SemanticBuilder,
        (d, label): (usize, &str),
        products: ValueId,
        first: State,
    ) -> Result<(ValueId, State), Reason> {
        let Sizes { steps, batch, hidden, .. } = self.sizes;
        let lengths = self.lengths.as_ref().map(|lengths| lengths.value);
        let optional = [self.b, self.peepholes, lengths];
        let captured: Vec<ValueId> = [products, self.r].into_iter().chain(optional.into_iter().flatten()).collect();
        let carried: Vec<ValueId> = [first.h].into_iter().chain(first.c).collect();
        let reverse = self.reverse[d];
        let results = n.looped(steps, &carried, &captured, |n, step, carried, captured| {
            let mut further = captured[2..].iter().copied();
            let mut own = |v: Option<ValueId>| v.and_then(|_| further.next());
            let inside = Recurrence {
                r: captured[1],
                b: own(self.b),
                peepholes: own(self.peepholes),
                lengths: own(lengths).map(|value| Lengths { value, common: 0 }),
                activations: self.activations.clone(),
                reverse: self.reverse.clone(),
                ..*self
            };
            let cell = Cell::of(&inside, n, label, d)?;
            let mut place = step;
            if reverse {
                let last = n.made(&format!("{label}/last"), Tensor::scalar(steps as i64 - 1));
                place = n.binary(&format!("{label}/place"), BinaryKind::Sub, last, step)?;
            }
            let x = n.node(&format!("{label}/x"), Gather { axis: 0 }, &[captured[0], place])?;
            let last = State { h: carried[0], c: carried.get(1).copied() };
            let next = cell.step(n, label, x, last)?;
            let (y, next) = match inside.lengths {
                Some(_) => {
                    let place = n.cast(&format!("{label}/step"), place, DType::I32)?;
                    inside.alive(n, label, place, next, last)?
                }
                None => (next.h, next),
            };
            Ok(Step { carried: [next.h].into_iter().chain(next.c).collect(), collected: vec![y] })
        })?;
        let (y, state) = match *results.as_slice() {
            [h, c, y] => (y, State { h, c: Some(c) }),
            [h, y] => (y, State { h, c: None }),
            _ => return Err("its steps have other results".into()),
        };
        let y = if reverse { reversed(n, y, &[0])? } else { y };
        Ok((n.reshape(&format!("{label}/y"), y, &[steps * batch, hidden])?, state))
    }

    /// A step's result and state; for sequences that have ended before `place` (one i32), 0 and the state before.
    fn alive(
        &self,
        n: &mut SemanticBuilder,
        at: &str,
        place: ValueId,
        next: State,
        last: State,
    ) -> Result<(ValueId, State), Reason> {
        let Some(lengths) = &self.lengths else { return Ok((next.h, next)) };
        let alive = n.binary(&format!("{at}/alive"), BinaryKind::Less, place, lengths.value)?;
        let zero = n.scalar(&format!("{at}/zero"), 0.0);
        let y = n.node(&format!("{at}/y"), Select {}, &[alive, next.h, zero])?;
        let h = n.node(&format!("{at}/kept_h"), Select {}, &[alive, next.h, last.h])?;
        let c = match next.c.zip(last.c) {
            Some((next, last)) => Some(n.node(&format!("{at}/kept_c"), Select {}, &[alive, next, last])?),
            None => None,
        };
        Ok((y, State { h, c }))
    }

    /// A direction's part of an operand, without the dimension of directions.
    fn own(&self, n: &mut SemanticBuilder, suffix: &str, v: ValueId, d: usize) -> Result<ValueId, Reason> {
        let shape = n.shape(v)?;
        let v = if shape[0] == 1 { v } else { part(n, &format!("{suffix}/direction"), v, 0, d, 1)? };
        n.reshape(suffix, v, &shape[1..])
    }

    /// Converts a result to the node's layout.
    fn turned<const N: usize>(
        &self,
        n: &mut SemanticBuilder,
        suffix: &str,
        v: ValueId,
        perm: [usize; N],
    ) -> Result<ValueId, Reason> {
        if !self.batch_first {
            return Ok(v);
        }
        n.node(&format!("{suffix}/batch_first"), Transpose { perm: perm.to_vec() }, &[v])
    }
}
