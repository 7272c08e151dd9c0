//! Notes on why products of quantized data stay float.

use super::{QuantizeEnd, behind, behind_product};
use crate::graph::{Graph, Node, Op};
use crate::passes::View;

/// Maximum number of operators after a product to look at.
const MOST_NODES: usize = 64;

/// The products of dequantized data and weights, by name, each with the reason why it does not become integer.
pub(super) fn notes(graph: &Graph) -> Vec<(String, String)> {
    let view = View::new(graph);
    let dequantized = |node: &Node, i: usize| matches!(view.op(node.inputs[i]), Some(Op::Dequantize(_)));
    let product =
        |node: &Node| behind::channel_axis(&view, node).is_some() && dequantized(node, 0) && dequantized(node, 1);
    let products = graph.nodes().map(|(_, node)| node).filter(|node| product(node));
    products.map(|node| (node.name.clone(), format!("it stays float: {}", why(&view, node)))).collect()
}

/// The reason why a product stays float, found on the way from its results to the first `quantize`.
fn why(view: &View, product: &Node) -> String {
    let mut node = product;
    for _ in 0..MOST_NODES {
        let v = node.output();
        let users = || view.users(v).iter().map(|id| view.graph.node(*id));
        let end = users().find_map(QuantizeEnd::of);
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
    format!("no operator up to `{}` ({}) quantizes its results", node.name, node.op.name())
}
