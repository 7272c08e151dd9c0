//! Bias correction: subtracts from a layer's bias what rounding the weights adds to its mean result.

use super::QuantizeError;
use super::insert::{WeightForm, Weights, floats};
use super::observe::Seen;
use super::plan::{Plan, Role};
use super::range::Params;
use crate::graph::{Graph, Node, NodeId, Op, ValueId};
use std::collections::BTreeMap;

/// For each convolution and dense layer, the values to add to its bias: the mean over samples of the float weights'
/// result minus the rounded weights' result.
pub(super) fn corrections(
    graph: &Graph,
    plan: &Plan,
    params: &BTreeMap<ValueId, Params>,
    seen: &BTreeMap<ValueId, Seen>,
    form: WeightForm,
) -> Result<BTreeMap<NodeId, Vec<f32>>, QuantizeError> {
    let mut found = BTreeMap::new();
    for (id, node) in graph.nodes().filter(|(id, _)| plan.roles[id.0] == Role::Product) {
        let data = node.inputs[0];
        let (Some(p), Some(seen), Some(weight)) = (params.get(&data), seen.get(&data), graph.constant(node.inputs[1]))
        else {
            continue;
        };
        let Some(shares) = shares(graph, node) else { continue };
        let bias = match node.inputs.get(2).and_then(|&b| graph.constant(b)) {
            Some(b) => Some(floats(b)?),
            None => None,
        };
        let rounded = Weights::new(weight, bias, p.scale, form.of(&node.op))?;
        let w = floats(weight)?;
        let channels = weight.shape()[0];
        let each = w.len().checked_div(channels).unwrap_or(0).max(1);
        let depth = weight.shape().last().copied().unwrap_or(1).max(1);
        let per_group = match &node.op {
            Op::Conv2d(c) => (channels / c.groups.max(1)).max(1),
            _ => channels.max(1),
        };
        let lost = |i: usize| {
            let (o, tap, k) = (i / each, i % each / depth, i % depth);
            let difference = f64::from(w[i]) - f64::from(rounded.integers[i]) * f64::from(rounded.scale(o));
            difference * seen.means.get(o / per_group * depth + k).copied().unwrap_or(0.0) * shares[tap]
        };
        let mut more = vec![0f64; channels];
        (0..w.len()).for_each(|i| more[i / each] += lost(i));
        found.insert(id, more.into_iter().map(|x| x as f32).collect());
    }
    Ok(found)
}

/// For each tap of the window, the fraction of results for which it is inside the image; `None` for other operators.
fn shares(graph: &Graph, node: &Node) -> Option<Vec<f64>> {
    let c = match &node.op {
        Op::Dense(_) => return Some(vec![1.0]),
        Op::Conv2d(c) => c,
        _ => return None,
    };
    let (data, out) = (graph.ty(node.inputs[0]).shape()?, graph.ty(node.output()).shape()?);
    let kernel = graph.ty(node.inputs[1]).shape()?;
    let along = |d: usize, k: usize| {
        let a = c.layout.spatial_axes()[d];
        let inside = |o: &usize| {
            let at = o * c.strides[d] + k * c.dilations[d];
            at >= c.pads[d] && at - c.pads[d] < data[a]
        };
        (0..out[a]).filter(inside).count() as f64 / out[a].max(1) as f64
    };
    let taps = (0..kernel[1]).flat_map(|h| (0..kernel[2]).map(move |w| (h, w)));
    Some(taps.map(|(h, w)| along(0, h) * along(1, w)).collect())
}
