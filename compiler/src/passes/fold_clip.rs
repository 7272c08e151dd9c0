//! Folds a clip of int8 values into the clamp of the operator in front of it.

use super::{Pass, Patch, Ref, View};
use crate::graph::{DType, NodeId, Op};

/// Folds an int8 `clip` into the clamp of the requantization, addition, rescale or average before it.
#[derive(Debug)]
pub struct FoldClip;

impl Pass for FoldClip {
    fn name(&self) -> &'static str {
        "fold_clip"
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        let node = view.graph.node(at);
        let Op::Clip(c) = &node.op else { return None };
        let data = node.inputs[0];
        if view.graph.ty(data).dtype != DType::I8 || !view.single_use(data) {
            return None;
        }
        let before = view.def(data)?;
        let mut op = before.op.clone();
        let (lo, hi) = match &mut op {
            Op::Requantize(r) => (&mut r.lo, &mut r.hi),
            Op::QAdd(q) => (&mut q.params.lo, &mut q.params.hi),
            Op::Rescale(r) => (&mut r.lo, &mut r.hi),
            Op::AvgPool2d(p) => (&mut p.lo, &mut p.hi),
            Op::GlobalAvgPool(p) => (&mut p.lo, &mut p.hi),
            _ => return None,
        };
        // One clamp after the other, correct even if the two ranges do not overlap.
        let (a, b) = (c.lo as i32, c.hi as i32);
        (*lo, *hi) = ((*lo).clamp(a, b), (*hi).clamp(a, b));
        let mut p = Patch::new("clip into clamp");
        let inputs: Vec<Ref> = before.inputs.iter().map(|&v| v.into()).collect();
        let n = p.node(&node.name, op, &inputs);
        Some(p.replace(node.output(), n))
    }
}
