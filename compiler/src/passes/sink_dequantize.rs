//! Operators that only move or compare values work on integers as well, before they are dequantized.

use super::{Pass, Patch, Ref, View};
use crate::graph::op::Pad;
use crate::graph::{DType, NodeId, Op};

/// Moves `dequantize` behind `reshape`, `transpose`, `max_pool2d` and `pad`, which changes no result.
#[derive(Debug)]
pub struct SinkDequantize;

impl Pass for SinkDequantize {
    fn name(&self) -> &'static str {
        "sink_dequantize"
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        let node = view.graph.node(at);
        let before = view.def(*node.inputs.first()?)?;
        let Op::Dequantize(d) = &before.op else { return None };
        let (&[scale], &[zero_point]) = (d.scale.as_slice(), d.zero_point.as_slice()) else { return None };
        if view.graph.ty(before.inputs[0]).dtype != DType::I8 {
            return None;
        }
        let op = match &node.op {
            Op::Reshape(_) | Op::Transpose(_) | Op::MaxPool2d(_) => node.op.clone(),
            Op::Pad(p) => {
                let q = (p.value / scale).round() + zero_point as f32;
                // Only where an integer stands for exactly this value.
                if (q - zero_point as f32) * scale != p.value || !(-128.0..=127.0).contains(&q) {
                    return None;
                }
                Op::from(Pad { value: q, ..p.clone() })
            }
            _ => return None,
        };
        let mut p = Patch::new("before dequantize");
        let moved = p.node(&node.name, op, &[Ref::Old(before.inputs[0])]);
        let n = p.node(&format!("{}/dequantize", node.name), before.op.clone(), &[moved]);
        Some(p.replace(node.output(), n))
    }
}
