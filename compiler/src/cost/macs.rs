//! The amount of work in a node.

use crate::graph::{Graph, NodeId, Op};

/// Returns the multiply-accumulates of a node: one per output element and weight of its window, the usual measure for
/// comparing networks. Padding channels that hardware adds do not count. 0 for operators that are not sums of products
/// or have symbolic shapes.
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
        Op::MatMul(_) | Op::QMatMul(_) => out * operand(0).last().map_or(0, |k| *k as u64),
        _ => 0,
    }
}
