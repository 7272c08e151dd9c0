//! Computes what is known.

use super::{Pass, Patch, View};
use crate::graph::{NodeId, Op, Tensor};

/// The greatest number of elements of a folded constant.
const MOST_ELEMENTS: usize = 1 << 26;

/// Puts a constant in the place of a node whose operands are constants.
///
/// It runs after the quantized groups are integer, since those are recognised by the dequantized constants in them.
#[derive(Debug)]
pub struct FoldConstants;

impl Pass for FoldConstants {
    fn name(&self) -> &'static str {
        "fold_constants"
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        let node = view.graph.node(at);
        if matches!(node.op, Op::Constant(_)) || node.outputs.len() != 1 {
            return None;
        }
        // A larger result, from a small constant in a broken file or a great border, is better computed when it is needed.
        if view.graph.ty(node.output()).element_count()? > MOST_ELEMENTS {
            return None;
        }
        let operands: Option<Vec<&Tensor>> =
            node.inputs.iter().map(|&v| view.graph.constant(v).map(|c| c.as_ref())).collect();
        let value = node.op.eval(&operands?).ok()?.pop()?;
        let mut p = Patch::new("constant");
        let c = p.constant(&node.name, value);
        Some(p.replace(node.output(), c))
    }
}
