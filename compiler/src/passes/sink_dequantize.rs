//! Runs operators that only move or compare values on integers, before they are dequantized.

use super::{Pass, Patch, Ref, View};
use crate::graph::op::{Pad, ReduceKind};
use crate::graph::{DType, NodeId, Op};

/// Moves `dequantize` after `reshape`, `transpose`, `slice`, `gather`, `expand`, `concat`, minima, maxima and `pad`,
/// which changes no result.
#[derive(Debug)]
pub struct SinkDequantize;

impl Pass for SinkDequantize {
    fn name(&self) -> &'static str {
        "sink_dequantize"
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        let node = view.graph.node(at);
        if let Op::Concat(_) = node.op {
            return concat(view, at);
        }
        let before = view.def(*node.inputs.first()?)?;
        let Op::Dequantize(d) = &before.op else { return None };
        let (&[scale], &[zero_point]) = (d.scale.as_slice(), d.zero_point.as_slice()) else { return None };
        if view.graph.ty(before.inputs[0]).dtype != DType::I8 {
            return None;
        }
        let op = match &node.op {
            Op::Reshape(_) | Op::Transpose(_) | Op::MaxPool2d(_) => node.op.clone(),
            Op::Slice(_) | Op::Expand(_) => node.op.clone(),
            Op::Gather(_) | Op::GatherElements(_) => node.op.clone(),
            Op::Reduce(r) if matches!(r.kind, ReduceKind::Max | ReduceKind::Min) => node.op.clone(),
            Op::Pad(p) => {
                let q = (p.value / scale).round() + zero_point as f32;
                // Only if an integer represents exactly this value.
                if (q - zero_point as f32) * scale != p.value || !(-128.0..=127.0).contains(&q) {
                    return None;
                }
                Op::from(Pad { value: q, ..p.clone() })
            }
            _ => return None,
        };
        let mut p = Patch::new("before dequantize");
        let mut operands = vec![Ref::Old(before.inputs[0])];
        operands.extend(node.inputs[1..].iter().map(|&v| Ref::Old(v)));
        let moved = p.node(&node.name, op, &operands);
        let n = p.node(&format!("{}/dequantize", node.name), before.op.clone(), &[moved]);
        Some(p.replace(node.output(), n))
    }
}

/// Moves `dequantize` after a concatenation whose parts have the same scale and zero point.
fn concat(view: &View, at: NodeId) -> Option<Patch> {
    let node = view.graph.node(at);
    let mut shared = None;
    let mut parts = Vec::new();
    for &v in &node.inputs {
        let before = view.def(v)?;
        let Op::Dequantize(d) = &before.op else { return None };
        let data = before.inputs[0];
        if d.scale.len() != 1 || view.graph.ty(data).dtype != DType::I8 || *shared.get_or_insert(d) != d {
            return None;
        }
        parts.push(Ref::Old(data));
    }
    let d = shared?.clone();
    let mut p = Patch::new("before dequantize");
    let moved = p.node(&node.name, node.op.clone(), &parts);
    let n = p.node(&format!("{}/dequantize", node.name), d, &[moved]);
    Some(p.replace(node.output(), n))
}
