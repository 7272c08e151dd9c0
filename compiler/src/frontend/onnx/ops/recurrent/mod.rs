//! RNN, GRU and LSTM.

mod activation;

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::recurrent::{Lengths, Recurrence, RecurrentKind, Results, Sizes};
use crate::graph::op::Transpose;
use crate::graph::{DType, Op, Tensor, TensorData, TensorType, ValueId};
use activation::activations;
use std::collections::BTreeSet;

pub(super) fn rnn(n: &mut NodeContext) -> Result<(), Reason> {
    recurrent(n, RecurrentKind::Rnn)
}

pub(super) fn gru(n: &mut NodeContext) -> Result<(), Reason> {
    recurrent(n, RecurrentKind::Gru)
}

pub(super) fn lstm(n: &mut NodeContext) -> Result<(), Reason> {
    recurrent(n, RecurrentKind::Lstm)
}

fn recurrent(n: &mut NodeContext, kind: RecurrentKind) -> Result<(), Reason> {
    let layer = read(n, kind)?;
    let Results { y, h, c } = layer.build(n)?;
    let results: Vec<ValueId> = [y, h].into_iter().chain(c).collect();
    n.outputs(&results)
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

/// The node's operands and attributes, with batches inside steps.
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
    let gates = kind.gates().checked_mul(hidden).ok_or("its hidden_size is too large")?;
    let w = operand(n, 1, "W", &[directions, gates, sizes.input], "directions, gates times hidden_size, X's columns")?;
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
    while let Some(node) = n.def(v) {
        let next = match &node.op {
            Op::Transpose(t) => t.perm.get(axis).copied(),
            // An element-wise operator has the steps of its data.
            Op::Quantize(_) | Op::Dequantize(_) => Some(axis),
            map if map.is_map() => Some(axis),
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
            left.extend(n.def(v).into_iter().flat_map(|node| node.inputs.iter().copied()));
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
