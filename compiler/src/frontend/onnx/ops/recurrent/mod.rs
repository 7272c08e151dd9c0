//! RNN, GRU and LSTM, unrolled over their steps.
//!
//! The input products of all steps are one dense layer. Each step adds the product of the state, applies the cell's
//! functions ([`cell`]), and keeps the state of sequences that have ended. The steps of both directions consist of the
//! same few nodes, which the CPU back end compiles once.

mod activation;
mod cell;

use super::movement::part;
use crate::frontend::onnx::node::{NodeContext, Reason};
use crate::graph::op::{BinaryKind, Concat, Dense, Gather, Select, Transpose};
use crate::graph::{DType, Op, Tensor, TensorData, TensorType, ValueId};
use activation::{Activation, activations};
use cell::{Cell, State};
use std::collections::BTreeSet;

/// Maximum number of steps of a node, both directions together.
const MOST_STEPS: usize = 2048;

/// Number of results that are joined at once: an element's position is compared with the ends of that many.
const JOINED: usize = 8;

const DENSE: Dense = Dense { data_zero_point: 0, weight_zero_point: 0 };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecurrentKind {
    Rnn,
    Gru,
    Lstm,
}

impl RecurrentKind {
    /// Number of gates. Their order in the weights: the state's own; update, reset, hidden; input, output, forget,
    /// cell.
    fn gates(self) -> usize {
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

    /// Default activation functions of a direction.
    fn activations(self) -> &'static [&'static str] {
        match self {
            RecurrentKind::Rnn => &["Tanh"],
            RecurrentKind::Gru => &["Sigmoid", "Tanh"],
            RecurrentKind::Lstm => &["Sigmoid", "Tanh", "Tanh"],
        }
    }
}

pub(super) fn rnn(n: &mut NodeContext) -> Result<(), Reason> {
    unrolled(n, RecurrentKind::Rnn)
}

pub(super) fn gru(n: &mut NodeContext) -> Result<(), Reason> {
    unrolled(n, RecurrentKind::Gru)
}

pub(super) fn lstm(n: &mut NodeContext) -> Result<(), Reason> {
    unrolled(n, RecurrentKind::Lstm)
}

fn unrolled(n: &mut NodeContext, kind: RecurrentKind) -> Result<(), Reason> {
    let net = Recurrence::read(n, kind)?;
    let (mut all, mut last_h, mut last_c) = (Vec::new(), Vec::new(), Vec::new());
    for d in 0..net.reverse.len() {
        let (y, state) = net.direction(n, d)?;
        let Sizes { steps, batch, hidden, .. } = net.sizes;
        all.push(n.reshape(&format!("{d}/y"), y, &[steps, 1, batch, hidden])?);
        last_h.push(n.reshape(&format!("{d}/y_h"), state.h, &[1, batch, hidden])?);
        if let Some(c) = state.c {
            last_c.push(n.reshape(&format!("{d}/y_c"), c, &[1, batch, hidden])?);
        }
    }
    let y = beside(n, "y", 1, &all)?;
    let y_h = beside(n, "y_h", 0, &last_h)?;
    let mut results = vec![net.turned(n, "y", y, [2, 0, 1, 3])?, net.turned(n, "y_h", y_h, [1, 0, 2])?];
    if !last_c.is_empty() {
        let y_c = beside(n, "y_c", 0, &last_c)?;
        results.push(net.turned(n, "y_c", y_c, [1, 0, 2])?);
    }
    n.outputs(&results)
}

/// Joins the results of the directions.
fn beside(n: &mut NodeContext, suffix: &str, axis: usize, parts: &[ValueId]) -> Result<ValueId, Reason> {
    match parts {
        [one] => Ok(*one),
        _ => n.node(suffix, Concat { axis }, parts),
    }
}

/// Joins many tensors along dimension 0, as a tree.
fn joined(n: &mut NodeContext, suffix: &str, mut parts: Vec<ValueId>) -> Result<ValueId, Reason> {
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

#[derive(Debug, Clone, Copy)]
struct Sizes {
    steps: usize,
    batch: usize,
    input: usize,
    hidden: usize,
}

/// The lengths of the batch's sequences.
struct Lengths {
    /// `[batch, 1]`, i32.
    value: ValueId,
    /// Number of steps that all sequences have; 0 for lengths that are computed at run time.
    common: usize,
}

/// A node's operands and attributes, with batches inside steps.
struct Recurrence {
    kind: RecurrentKind,
    sizes: Sizes,
    /// For each direction, whether it runs from the last step to the first.
    reverse: Vec<bool>,
    /// True if the node's tensors have batches outside.
    batch_first: bool,
    /// `[steps, batch, input]`.
    x: ValueId,
    /// `[directions, gates * hidden, input]`.
    w: ValueId,
    /// `[directions, gates * hidden, hidden]`.
    r: ValueId,
    /// `[directions, 2 * gates * hidden]`: biases of the input's products, then of the state's.
    b: Option<ValueId>,
    /// `[directions, batch, hidden]`.
    h: ValueId,
    /// The initial cell state of an LSTM, in the same shape.
    c: Option<ValueId>,
    /// `[directions, 3 * hidden]`: factors of the cell state for input, output and forget gates.
    peepholes: Option<ValueId>,
    lengths: Option<Lengths>,
    activations: Vec<Activation>,
    clip: Option<f32>,
    linear_before_reset: bool,
    input_forget: bool,
}

/// An operand that must be f32 with this shape, which `what` describes in words.
fn operand(n: &mut NodeContext, i: usize, name: &str, shape: &[usize], what: &str) -> Result<ValueId, Reason> {
    let v = n.plain(i)?;
    let wanted = TensorType::new(DType::F32, shape);
    if n.ty(v) != &wanted {
        return Err(format!("its {name} must be {wanted} ({what}), found {}", n.ty(v)).into());
    }
    Ok(v)
}

fn flag(n: &NodeContext, name: &str) -> Result<bool, Reason> {
    match n.int(name).unwrap_or(0) {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(format!("its {name} must be 0 or 1, found {other}").into()),
    }
}

impl Recurrence {
    fn read(n: &mut NodeContext, kind: RecurrentKind) -> Result<Recurrence, Reason> {
        let reverse = match n.word("direction").as_deref() {
            None | Some("forward") => vec![false],
            Some("reverse") => vec![true],
            Some("bidirectional") => vec![false, true],
            Some(other) => {
                let known = "use forward, reverse or bidirectional";
                return Err(format!("unknown direction `{other}`; {known}").into());
            }
        };
        let directions = reverse.len();
        let batch_first = flag(n, "layout")?;
        let x = n.plain(0)?;
        if n.ty(x).rank() != 3 || n.ty(x).dtype != DType::F32 {
            return Err(format!("its X must be f32 with 3 dimensions, found {}", n.ty(x)).into());
        }
        check_length(n, x, usize::from(batch_first))?;
        let outer = |first: &str, second: &str| {
            if batch_first { format!("{second}, {first}") } else { format!("{first}, {second}") }
        };
        let x = if batch_first { n.node("x", Transpose { perm: vec![1, 0, 2] }, &[x])? } else { x };
        let shape = n.shape(x)?;
        let hidden = hidden_size(n)?;
        let sizes = Sizes { steps: shape[0], batch: shape[1], input: shape[2], hidden };
        check_sizes(n, kind, sizes, directions)?;
        let gates = kind.gates().checked_mul(hidden).ok_or("its hidden_size is too large")?;
        let w =
            operand(n, 1, "W", &[directions, gates, sizes.input], "directions, gates times hidden_size, X's columns")?;
        let r = operand(n, 2, "R", &[directions, gates, hidden], "directions, gates times hidden_size, hidden_size")?;
        let b = match n.has_input(3) {
            true => Some(operand(n, 3, "B", &[directions, 2 * gates], "directions, twice gates times hidden_size")?),
            false => None,
        };
        let lengths = if n.has_input(4) { lengths(n, sizes)? } else { None };
        let what = outer("directions", "batch") + ", hidden_size";
        let h = state(n, 5, "initial_h", directions, sizes, batch_first, &what)?;
        let (mut c, mut peepholes) = (None, None);
        if kind == RecurrentKind::Lstm {
            c = Some(state(n, 6, "initial_c", directions, sizes, batch_first, &what)?);
            if n.has_input(7) {
                peepholes = Some(operand(n, 7, "P", &[directions, 3 * hidden], "directions, three times hidden_size")?);
            }
        }
        let clip = n.float("clip");
        if let Some(clip) = clip.filter(|c| c.is_nan() || *c < 0.0) {
            return Err(format!("its clip {clip} must not be negative").into());
        }
        Ok(Recurrence {
            activations: activations(n, directions, kind.activations())?,
            linear_before_reset: flag(n, "linear_before_reset")?,
            input_forget: flag(n, "input_forget")?,
            kind,
            sizes,
            reverse,
            batch_first,
            x,
            w,
            r,
            b,
            h,
            c,
            peepholes,
            lengths,
            clip,
        })
    }

    /// The results of all steps, `[steps * batch, hidden]`, and the final state of a direction.
    fn direction(&self, n: &mut NodeContext, d: usize) -> Result<(ValueId, State), Reason> {
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
        let mut state = State { h, c };
        let mut results = vec![None; steps];
        for i in 0..steps {
            let t = if self.reverse[d] { steps - 1 - i } else { i };
            let at = format!("{label}/{t}");
            let place = n.made(&format!("{at}/place"), Tensor::scalar(t as i32));
            let x = n.node(&format!("{at}/x"), Gather { axis: 0 }, &[products, place])?;
            let next = cell.step(n, &at, x, state)?;
            let (y, next) = self.alive(n, &at, t, next, state)?;
            (results[t], state) = (Some(y), next);
        }
        let y = joined(n, &format!("{label}/y"), results.into_iter().flatten().collect())?;
        Ok((y, state))
    }

    /// A step's result and state; for sequences that have ended, 0 and the state before.
    fn alive(
        &self,
        n: &mut NodeContext,
        at: &str,
        t: usize,
        next: State,
        last: State,
    ) -> Result<(ValueId, State), Reason> {
        let Some(lengths) = self.lengths.as_ref().filter(|l| t >= l.common) else { return Ok((next.h, next)) };
        let place = n.made(&format!("{at}/step"), Tensor::scalar(t as i32));
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
    fn own(&self, n: &mut NodeContext, suffix: &str, v: ValueId, d: usize) -> Result<ValueId, Reason> {
        let shape = n.shape(v)?;
        let v = if shape[0] == 1 { v } else { part(n, &format!("{suffix}/direction"), v, 0, d, 1)? };
        n.reshape(suffix, v, &shape[1..])
    }

    /// Converts a result to the node's layout.
    fn turned<const N: usize>(
        &self,
        n: &mut NodeContext,
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

/// Fails if the sequence length is an open size that was not given: the outermost size of an input is its batch size
/// and is assumed to be 1. Beyond operators that are not followed, a length of 1 can come from any of their operands.
fn check_length(n: &NodeContext, x: ValueId, mut axis: usize) -> Result<(), Reason> {
    let open = |v: ValueId| n.cx.assumed.get(&v);
    let refuse = |s: &str| {
        let remedy = format!("give it with --bind {s}=SIZE");
        Err(format!("the length of its sequence can depend on the size `{s}`, which the model leaves open; {remedy}")
            .into())
    };
    if n.shape(x)?[axis] != 1 {
        return Ok(());
    }
    let mut v = x;
    while let Some(node) = n.cx.builder.def(v) {
        let next = match &node.op {
            Op::Transpose(t) => t.perm.get(axis).copied(),
            // An element-wise operator has the steps of its data.
            Op::Unary(_) | Op::Cast(_) | Op::Relu(_) | Op::Clip(_) | Op::Quantize(_) | Op::Dequantize(_) => Some(axis),
            _ => None,
        };
        let (Some(&data), Some(next)) = (node.inputs.first(), next) else {
            return ancestors(n, v).into_iter().find_map(open).map_or(Ok(()), |s| refuse(s));
        };
        (v, axis) = (data, next);
    }
    open(v).filter(|_| axis == 0).map_or(Ok(()), |s| refuse(s))
}

/// A value and all values that it is computed from.
fn ancestors(n: &NodeContext, v: ValueId) -> BTreeSet<ValueId> {
    let (mut found, mut left) = (BTreeSet::new(), vec![v]);
    while let Some(v) = left.pop() {
        if found.insert(v) {
            left.extend(n.cx.builder.def(v).into_iter().flat_map(|node| node.inputs.iter().copied()));
        }
    }
    found
}

/// The size of the state, which follows from the weights; the attribute can repeat it.
fn hidden_size(n: &mut NodeContext) -> Result<usize, Reason> {
    let r = n.plain(2)?;
    let hidden = match n.shape(r)?.as_slice() {
        &[_, _, hidden] => hidden,
        _ => return Err(format!("its R must have 3 dimensions, found {}", n.ty(r)).into()),
    };
    match n.int("hidden_size") {
        Some(given) if usize::try_from(given) != Ok(hidden) => {
            Err(format!("its hidden_size {given} does not match its R, {}", n.ty(r)).into())
        }
        _ => Ok(hidden),
    }
}

fn check_sizes(n: &mut NodeContext, kind: RecurrentKind, sizes: Sizes, directions: usize) -> Result<(), Reason> {
    let Sizes { steps, batch, input, hidden } = sizes;
    if [steps, batch, input, hidden].contains(&0) {
        return Err("its sequence length, batch, input and hidden sizes must be positive".into());
    }
    let all = steps.saturating_mul(directions);
    if all > MOST_STEPS {
        let remedy = "set a shorter sequence with --bind or --shape, and export Y_h and initial_h to run it in parts";
        return Err(format!("its {all} steps are not supported; the maximum is {MOST_STEPS}: {remedy}").into());
    }
    n.room_for_nodes(all * kind.step_nodes())
}

/// The initial state of each direction, `[directions, batch, hidden]`; zeros if the node has none.
fn state(
    n: &mut NodeContext,
    i: usize,
    name: &str,
    directions: usize,
    sizes: Sizes,
    batch_first: bool,
    what: &str,
) -> Result<ValueId, Reason> {
    let Sizes { batch, hidden, .. } = sizes;
    if !n.has_input(i) {
        return n.table(name, &[directions, batch, hidden], |_| 0f32);
    }
    if !batch_first {
        return operand(n, i, name, &[directions, batch, hidden], what);
    }
    let v = operand(n, i, name, &[batch, directions, hidden], what)?;
    n.node(name, Transpose { perm: vec![1, 0, 2] }, &[v])
}

/// Lengths of the sequences; `None` if all have every step.
fn lengths(n: &mut NodeContext, sizes: Sizes) -> Result<Option<Lengths>, Reason> {
    let v = n.plain(4)?;
    let wanted = TensorType::new(DType::I32, &[sizes.batch]);
    if n.ty(v) != &wanted {
        return Err(format!("its sequence_lens must be {wanted}, one per sequence, found {}", n.ty(v)).into());
    }
    let mut common = 0;
    if let Some(TensorData::I32(known)) = n.known(4).as_ref().map(Tensor::data) {
        let within = |&l: &i32| usize::try_from(l).is_ok_and(|l| (1..=sizes.steps).contains(&l));
        if let Some(other) = known.iter().find(|l| !within(l)) {
            return Err(format!("its sequence_lens has {other}; lengths must be from 1 to {}", sizes.steps).into());
        }
        common = known.iter().filter_map(|&l| usize::try_from(l).ok()).min().unwrap_or(0);
        if common == sizes.steps {
            return Ok(None);
        }
    }
    let value = n.reshape("lengths", v, &[sizes.batch, 1])?;
    Ok(Some(Lengths { value, common }))
}
