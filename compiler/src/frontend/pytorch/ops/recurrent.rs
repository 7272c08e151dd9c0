//! Recurrent layers.

use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::movement::{beside, part};
use crate::frontend::semantic::recurrent::{Activation, Function, Recurrence, RecurrentKind, Sizes};
use crate::graph::ValueId;
use crate::graph::op::Concat;

pub(super) fn lstm(n: &mut NodeContext) -> Result<Value, Reason> {
    recurrent(n, RecurrentKind::Lstm, RecurrentKind::Lstm.activations())
}

pub(super) fn gru(n: &mut NodeContext) -> Result<Value, Reason> {
    recurrent(n, RecurrentKind::Gru, RecurrentKind::Gru.activations())
}

pub(super) fn rnn_tanh(n: &mut NodeContext) -> Result<Value, Reason> {
    recurrent(n, RecurrentKind::Rnn, RecurrentKind::Rnn.activations())
}

pub(super) fn rnn_relu(n: &mut NodeContext) -> Result<Value, Reason> {
    let relu = Activation { function: Function::Relu, alpha: 0.0, beta: 0.0 };
    recurrent(n, RecurrentKind::Rnn, &[relu])
}

/// The order of the gates that the builder has, in PyTorch's order of gates.
fn gates(kind: RecurrentKind) -> &'static [usize] {
    match kind {
        RecurrentKind::Rnn => &[0],
        // Reset, update, hidden.
        RecurrentKind::Gru => &[1, 0, 2],
        // Input, forget, cell, output.
        RecurrentKind::Lstm => &[0, 3, 1, 2],
    }
}

/// Weights or biases `[gates * hidden, ...]` with the gates in the builder's order, and a dimension for the direction.
fn ordered(n: &mut NodeContext, v: ValueId, kind: RecurrentKind, hidden: usize) -> Result<ValueId, Reason> {
    if n.shape(v)?.first() != Some(&(kind.gates() * hidden)) {
        return Err(format!("its weights {} do not suit a state of {hidden}", n.ty(v)).into());
    }
    let parts =
        gates(kind).iter().map(|gate| part(n, "gate", v, 0, gate * hidden, hidden)).collect::<Result<Vec<_>, _>>()?;
    let v = beside(n, "gates", 0, &parts)?;
    let mut shape = n.shape(v)?;
    shape.insert(0, 1);
    n.reshape("direction", v, &shape)
}

fn recurrent(n: &mut NodeContext, kind: RecurrentKind, activations: &[Activation]) -> Result<Value, Reason> {
    let drops = n.number("dropout")?.unwrap_or(0.0) != 0.0;
    if n.flag("train", false)? && drops {
        return Err("it drops elements, as in training; export the module after `eval()`".into());
    }
    let mut x = n.tensor("input")?;
    let states = if kind == RecurrentKind::Lstm { n.tensors("hx")? } else { vec![n.tensor("hx")?] };
    let params = n.tensors("params")?;
    let (has_biases, layers) = (n.flag("has_biases", true)?, n.int("num_layers", 1)?);
    let directions = 1 + usize::from(n.flag("bidirectional", false)?);
    let batch_first = n.flag("batch_first", false)?;
    let layers =
        usize::try_from(layers).ok().filter(|l| *l > 0 && *l <= 64).ok_or("its layers must be from 1 to 64")?;
    let each = if has_biases { 4 } else { 2 };
    if params.len() != layers * directions * each {
        let why = "layers with projections are not supported";
        return Err(
            format!("it has {} weights, but {} are expected; {why}", params.len(), layers * directions * each).into()
        );
    }
    let state = n.shape(*states.first().ok_or("it has no state")?)?;
    // Sequences without a batch have states of two dimensions.
    let is_single = n.ty(x).rank() == 2;
    let hidden = *state.last().ok_or("its state has no dimensions")?;
    if is_single {
        let shape = n.shape(x)?;
        x = n.reshape("batch", x, &[shape[0], 1, shape[1]])?;
    } else if batch_first {
        x = n.transposed("steps_first", x, &[1, 0, 2])?;
    }
    let shape = n.shape(x)?;
    let &[steps, batch, _] = shape.as_slice() else {
        return Err(format!("its data must have 3 dimensions, found {}", n.ty(x)).into());
    };
    let mut initial = Vec::new();
    for &v in &states {
        initial.push(n.reshape("state", v, &[layers * directions, batch, hidden])?);
    }
    let (mut last_h, mut last_c) = (Vec::new(), Vec::new());
    for layer in 0..layers {
        let input = n.shape(x)?[2];
        let (mut w, mut r, mut b) = (Vec::new(), Vec::new(), Vec::new());
        for d in 0..directions {
            let own = &params[(layer * directions + d) * each..][..each];
            w.push(ordered(n, own[0], kind, hidden)?);
            r.push(ordered(n, own[1], kind, hidden)?);
            if has_biases {
                let both = [ordered(n, own[2], kind, hidden)?, ordered(n, own[3], kind, hidden)?];
                b.push(n.node("biases", Concat { axis: 1 }, &both)?);
            }
        }
        let first = layer * directions;
        let h = part(n, "h", initial[0], 0, first, directions)?;
        let c = match initial.get(1) {
            Some(&c) => Some(part(n, "c", c, 0, first, directions)?),
            None => None,
        };
        let of = Recurrence {
            kind,
            sizes: Sizes { steps, batch, input, hidden },
            reverse: (0..directions).map(|d| d == 1).collect(),
            batch_first: false,
            x,
            w: beside(n, "w", 0, &w)?,
            r: beside(n, "r", 0, &r)?,
            b: if has_biases { Some(beside(n, "b", 0, &b)?) } else { None },
            h,
            c,
            peepholes: None,
            lengths: None,
            activations: activations.iter().cycle().take(activations.len() * directions).cloned().collect(),
            clip: None,
            linear_before_reset: true,
            input_forget: false,
        };
        let made = of.build(n)?;
        // [steps, directions, batch, hidden] to [steps, batch, directions * hidden].
        let y = if directions == 1 { made.y } else { n.transposed("directions", made.y, &[0, 2, 1, 3])? };
        x = n.reshape("layer", y, &[steps, batch, directions * hidden])?;
        last_h.push(made.h);
        last_c.extend(made.c);
    }
    if is_single {
        let shape = n.shape(x)?;
        x = n.reshape("single", x, &[shape[0], shape[2]])?;
    } else if batch_first {
        x = n.transposed("batch_first", x, &[1, 0, 2])?;
    }
    let mut all = vec![x];
    for (name, parts) in [("h_n", last_h), ("c_n", last_c)] {
        if parts.is_empty() {
            continue;
        }
        let v = beside(n, name, 0, &parts)?;
        all.push(n.reshape(name, v, &state)?);
    }
    Ok(all.into())
}
