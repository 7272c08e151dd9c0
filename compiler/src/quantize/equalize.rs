//! Cross-layer equalization: scales each channel between two layers, by factors in the weights of the first layer and
//! their inverses in the second, until no channel needs more of the range than others. The float result does not
//! change.

use super::insert::floats;
use super::observe::Seen;
use super::plan::{Plan, Role};
use crate::graph::op::UnaryKind;
use crate::graph::{Graph, GraphBuilder, GraphError, NodeId, Op, Tensor, ValueId};
use std::collections::BTreeMap;

/// Maximum factor of a channel, so that no channel vanishes next to the others.
const MOST: f32 = 64.0;

/// Two layers with only operators between them that commute with scaling. A clip at a bound does not: its bound would
/// move.
struct Pair {
    first: NodeId,
    second: NodeId,
    /// The value that the second layer reads.
    data: ValueId,
}

/// Equalizes pairs of layers; returns the network and the number of pairs.
///
/// # Errors
/// If the resulting graph is invalid, which is a bug in the equalization.
pub(super) fn equalize(
    graph: &Graph,
    plan: &Plan,
    seen: &BTreeMap<ValueId, Seen>,
    per_channel: bool,
) -> Result<(Graph, usize), GraphError> {
    let mut constants: BTreeMap<ValueId, Tensor> = BTreeMap::new();
    let pairs = pairs(graph, plan);
    let mut changed = 0;
    for pair in &pairs {
        let Some(seen) = seen.get(&pair.data) else { continue };
        changed += usize::from(balance(graph, &mut constants, pair, seen, per_channel)?);
    }
    let mut b = GraphBuilder::new(graph.name());
    let mut map: Vec<ValueId> = graph.inputs().map(|(name, v)| b.input(name, graph.ty(v).clone())).collect();
    for (_, node) in graph.nodes() {
        if let Some(t) = constants.remove(&node.output()) {
            map.push(b.constant(&node.name, t));
            continue;
        }
        let inputs: Vec<_> = node.inputs.iter().map(|v| map[v.0]).collect();
        map.extend(b.node_outputs(&node.name, node.op.clone(), &inputs)?);
    }
    for (name, v) in graph.outputs() {
        b.output(name, map[v.0]);
    }
    Ok((b.finish()?, changed))
}

fn pairs(graph: &Graph, plan: &Plan) -> Vec<Pair> {
    let users = graph.users();
    let alone = |v: ValueId| users[v.0].len() == 1 && !graph.is_output(v);
    let is_layer = |id: NodeId| {
        let node = graph.node(id);
        // Weights with other users must not change.
        plan.roles[id.0] == Role::Product
            && matches!(node.op, Op::Conv2d(_) | Op::Dense(_))
            && node.inputs[1..].iter().all(|v| users[v.0].len() == 1)
    };
    let follow = |first: NodeId| {
        let mut v = graph.node(first).output();
        loop {
            let next = *users[v.0].first().filter(|_| alone(v))?;
            let node = graph.node(next);
            match &node.op {
                _ if is_layer(next) && node.inputs[0] == v => return Some(Pair { first, second: next, data: v }),
                Op::Relu(_) | Op::MaxPool2d(_) | Op::AvgPool2d(_) | Op::GlobalAvgPool(_) => {}
                Op::Pad(p) if p.value == 0.0 => {}
                Op::Unary(u) if u.kind == UnaryKind::LeakyRelu => {}
                Op::Clip(c) if c.lo == 0.0 && c.hi >= f32::MAX => {}
                _ => return None,
            }
            v = node.output();
        }
    };
    graph.nodes().filter(|(id, _)| is_layer(*id)).filter_map(|(id, _)| follow(id)).collect()
}

/// Scales the channels between two layers; returns false if nothing changes.
fn balance(
    graph: &Graph,
    constants: &mut BTreeMap<ValueId, Tensor>,
    pair: &Pair,
    seen: &Seen,
    per_channel: bool,
) -> Result<bool, GraphError> {
    let (first, second) = (graph.node(pair.first), graph.node(pair.second));
    let tensor = |constants: &BTreeMap<ValueId, Tensor>, v: ValueId| -> Option<Tensor> {
        constants.get(&v).cloned().or_else(|| graph.constant(v).map(|t| t.as_ref().clone()))
    };
    let (Some(w1), Some(w2)) = (tensor(constants, first.inputs[1]), tensor(constants, second.inputs[1])) else {
        return Ok(false);
    };
    let (a, b) = (floats(&w1)?, floats(&w2)?);
    let channels = w1.shape()[0];
    let (each, depth) = ((a.len() / channels.max(1)).max(1), w2.shape().last().copied().unwrap_or(1).max(1));
    let (each2, per_group) = match &second.op {
        Op::Conv2d(c) => (b.len() / w2.shape()[0].max(1), (w2.shape()[0] / c.groups.max(1)).max(1)),
        _ => (depth, w2.shape()[0].max(1)),
    };
    // The channel between the layers that an element of the second layer's weights multiplies.
    let channel = |i: usize| i / each2.max(1) / per_group * depth + i % depth;
    if seen.peaks.len() != channels || (0..b.len()).any(|i| channel(i) >= channels) {
        return Ok(false);
    }
    let mut after = vec![0f32; channels];
    b.iter().enumerate().for_each(|(i, x)| after[channel(i)] = after[channel(i)].max(x.abs()));
    // A channel's share of a common range: that of the activations if each channel has its own scale for weights, else
    // that of the weights.
    let before: Vec<f32> = match per_channel {
        true => seen.peaks.clone(),
        false => a.chunks(each).map(|w| w.iter().fold(0f32, |m, x| m.max(x.abs()))).collect(),
    };
    let used: Vec<usize> = (0..channels).filter(|&c| before[c] > 0.0 && after[c] > 0.0).collect();
    if used.len() < 2 {
        return Ok(false);
    }
    let mean = used.iter().map(|&c| (before[c] / after[c]).ln()).sum::<f32>() / used.len() as f32;
    let mut factors = vec![1f32; channels];
    for &c in &used {
        factors[c] = (((before[c] / after[c]).ln() - mean) / 2.0).exp().clamp(1.0 / MOST, MOST);
    }
    let scaled = Tensor::from_fn(w1.shape(), |i| a[i] / factors[i / each]);
    let raised = Tensor::from_fn(w2.shape(), |i| b[i] * factors[channel(i)]);
    if let Some(&v) = first.inputs.get(2) {
        let Some(bias) = tensor(constants, v) else { return Ok(false) };
        let x = floats(&bias)?;
        let bias = Tensor::from_fn(bias.shape(), |i| x[i] / factors[i]);
        constants.insert(v, bias);
    }
    constants.insert(first.inputs[1], scaled);
    constants.insert(second.inputs[1], raised);
    Ok(true)
}
