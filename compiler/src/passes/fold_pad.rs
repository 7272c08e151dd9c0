//! Folds explicit padding into the convolution after it.

use super::{Pass, Patch, Ref, View};
use crate::graph::op::Conv2d;
use crate::graph::{NodeId, Op};

/// Folds a `pad` of height and width into the convolution after it, if its value is the one that the convolution pads
/// with.
#[derive(Debug)]
pub struct FoldPad;

impl Pass for FoldPad {
    fn name(&self) -> &'static str {
        "fold_pad"
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        let node = view.graph.node(at);
        let Op::Conv2d(c) = &node.op else { return None };
        let border = view.def(node.inputs[0])?;
        let Op::Pad(pad) = &border.op else { return None };
        let axes = c.layout.spatial_axes();
        let elsewhere = (0..4).filter(|i| !axes.contains(i)).any(|i| pad.before[i] + pad.after[i] > 0);
        if elsewhere || pad.value != c.data_zero_point as f32 {
            return None;
        }
        let mut pads = c.pads;
        for (i, &a) in axes.iter().enumerate() {
            pads[i] += pad.before[a];
            pads[i + 2] += pad.after[a];
        }
        let mut p = Patch::new("pad into conv2d");
        let mut inputs: Vec<Ref> = node.inputs.iter().map(|&v| v.into()).collect();
        inputs[0] = border.inputs[0].into();
        let n = p.node(&node.name, Conv2d { pads, ..c.clone() }, &inputs);
        Some(p.replace(node.output(), n))
    }
}
