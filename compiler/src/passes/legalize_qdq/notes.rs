//! Why products of quantized data stay float.

use super::{End, behind, behind_product};
use crate::graph::{Graph, Node, Op};
use crate::passes::View;

/// The most operators behind a product that are looked at.
const MOST_NODES: usize = 64;

/// Products of dequantized data and weights, by their names, each with the reason why it is no integer product.
pub(super) fn notes(graph: &Graph) -> Vec<(String, String)> {
    let view = View::new(graph);
    let dequantized = |node: &Node, i: usize| matches!(view.op(node.inputs[i]), Some(Op::Dequantize(_)));
    let product =
        |node: &Node| behind::channel_axis(&view, node).is_some() && dequantized(node, 0) && dequantized(node, 1);
    let products = graph.nodes().map(|(_, node)| node).filter(|node| product(node));
    products.map(|node| (node.name.clone(), format!("it stays float: {}", why(&view, node)))).collect()
}

/// What a product's results meet on their way to the first `quantize`.
fn why(view: &View, product: &Node) -> String {
    let mut node = product;
    for _ in 0..MOST_NODES {
        let v = node.output();
        let users = || view.users(v).iter().map(|id| view.graph.node(*id));
        let end = users().find_map(End::of);
        if let Some(end) = end {
            return match behind_product(view, end) {
                Err(behind::Obstacle(why)) => why,
                Ok(_) => "other operators read its results as floats".into(),
            };
        }
        match users().next() {
            Some(user) if matches!(user.op, Op::Quantize(_)) => {
                return format!("`{}` does not quantize its results to 8 bits with one scale", user.name);
            }
            Some(user) if user.outputs.len() == 1 => node = user,
            _ => break,
        }
    }
    format!("its results are not quantized up to `{}` ({})", node.name, node.op.name())
}
