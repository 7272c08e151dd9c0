//! The amount of work in a node.

use crate::graph::{Graph, NodeId, Op, TensorData, ValueId};

/// Returns the multiply-accumulates of a node: one per output element and weight of its window, the usual measure for
/// comparing networks. Padding channels that hardware adds do not count. 0 for operators that are not sums of products
/// or have symbolic shapes. An `if` counts as its larger region, and a loop as the steps that are known, at least one.
pub fn macs(graph: &Graph, id: NodeId) -> u64 {
    let node = graph.node(id);
    let out = node.outputs.first().and_then(|value| graph.ty(*value).element_count()).unwrap_or(0) as u64;
    let operand = |index: usize| node.inputs.get(index).and_then(|value| graph.ty(*value).shape()).unwrap_or_default();
    let product = |axes: &[usize]| axes.iter().map(|axis| *axis as u64).product::<u64>();
    match node.op {
        // Weights are [O, KH, KW, I/groups] and [N, K].
        Op::Conv2d(_) | Op::Dense(_) | Op::HybridConv2d(_) | Op::HybridDense(_) => match operand(1).as_slice() {
            [_, window @ ..] => out * product(window),
            [] => 0,
        },
        // Each element of the data is multiplied with the whole window of each output channel of its group.
        Op::ConvTranspose2d(ref op) => {
            let (data, weights) = (product(&operand(0)), operand(1));
            let window: u64 = weights.get(1..3).map_or(0, product);
            data * window * weights.first().map_or(0, |o| *o as u64) / op.groups.max(1) as u64
        }
        Op::If(ref op) => within(&op.then).max(within(&op.otherwise)),
        Op::Loop(ref op) => within(&op.body).saturating_mul(steps(graph, &node.inputs, op.collects)),
        Op::MatMul(_) | Op::QMatMul(_) => out * operand(0).last().map_or(0, |k| *k as u64),
        _ => 0,
    }
}

/// The multiply-accumulates of a region.
fn within(region: &Graph) -> u64 {
    region.nodes().map(|(id, _)| macs(region, id)).fold(0, u64::saturating_add)
}

/// The steps of a loop, as far as they are known.
fn steps(graph: &Graph, operands: &[ValueId], collects: usize) -> u64 {
    let limit = operands.first().and_then(|limit| graph.constant(*limit));
    let known = limit.and_then(|limit| match limit.data() {
        TensorData::I64(v) => v.first().copied().filter(|limit| *limit < i64::MAX),
        _ => None,
    });
    known.and_then(|limit| u64::try_from(limit).ok()).unwrap_or(collects as u64).max(1)
}
