//! Evaluates nodes whose operands are constants.

use super::{Pass, Patch, View};
use crate::graph::{NodeId, Op, Tensor};

/// Maximum number of elements of a folded constant.
const MOST_ELEMENTS: usize = 1 << 26;

/// Maximum number of terms of a tensor expression that is folded.
const MOST_TERMS: u64 = 1 << 20;

/// Replaces a node whose operands are constants with its value.
///
/// It must run after the quantized groups become integer, because they are recognized by their dequantized constants.
#[derive(Debug)]
pub struct FoldConstants;

impl Pass for FoldConstants {
    fn name(&self) -> &'static str {
        "fold_constants"
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        let node = view.graph.node(at);
        if matches!(node.op, Op::Constant(_)) || node.op.is_own_step() || node.outputs.len() != 1 {
            return None;
        }
        // Larger results, from a small constant in a broken file or a large border, are better computed when they are
        // needed.
        if view.graph.ty(node.output()).element_count()? > MOST_ELEMENTS {
            return None;
        }
        // The definition of a tensor expression is interpreted, which takes a hundred times as long as its code.
        if matches!(&node.op, Op::Compute(op) if op.expression.terms() > MOST_TERMS) {
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
