//! Brings equivalent operators into one canonical form.
//!
//! `relu` becomes `clip`. Chains of clips, of reshapes and of transposes become a single node. Nodes without an effect
//! are removed. A transpose that only moves dimensions of size 1 becomes a reshape.

use super::{Pass, Patch, Ref, View};
use crate::graph::op::{Clip, Reshape, Transpose};
use crate::graph::{Node, NodeId, Op, TensorType, ValueId};
use tilewright_hw::num::{self, Requant};

/// Brings equivalent operators into one canonical form.
#[derive(Debug)]
pub struct Canonicalize;

impl Pass for Canonicalize {
    fn name(&self) -> &'static str {
        "canonicalize"
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        let node = view.graph.node(at);
        let data = *node.inputs.first()?;
        let (from, to) = (view.graph.ty(data), view.graph.ty(node.output()));
        match &node.op {
            Op::Relu(_) => replace(node, "relu to clip", Clip { lo: 0.0, hi: f32::INFINITY }, data),
            Op::Clip(c) => clip(view, node, c, data),
            Op::Reshape(_) if from == to => identity(node, data),
            Op::Reshape(r) => {
                if let Some(Node { op: Op::Reshape(_), inputs, .. }) = view.def(data) {
                    return replace(node, "reshape of reshape", known(to)?, inputs[0]);
                }
                // Known sizes describe the result without a look at the operand.
                known(to).filter(|k| k != r).and_then(|k| replace(node, "shape in numbers", k, data))
            }
            Op::Transpose(t) if t.perm.iter().copied().eq(0..t.perm.len()) => identity(node, data),
            Op::Transpose(t) => {
                if let Some(Node { op: Op::Transpose(u), inputs, .. }) = view.def(data) {
                    let perm = t.perm.iter().map(|&p| u.perm[p]).collect();
                    return replace(node, "transpose of transpose", Transpose { perm }, inputs[0]);
                }
                let wide = |&&p: &&usize| from.dims[p].known() != Some(1);
                let moved: Vec<usize> = t.perm.iter().filter(wide).copied().collect();
                if moved.is_sorted() { replace(node, "transpose to reshape", known(to)?, data) } else { None }
            }
            Op::ShiftSign(_) => match view.def(data) {
                Some(Node { op: Op::ShiftSign(_), inputs, .. }) => identity(node, inputs[0]),
                _ => None,
            },
            Op::Cast(_) | Op::Bitcast(_) if from == to => identity(node, data),
            Op::Expand(_) if from == to => identity(node, data),
            Op::Pad(p) if p.before.iter().chain(&p.after).all(|&n| n == 0) => identity(node, data),
            Op::Rescale(r) if (-128..128).all(|x| num::requantize(x, &r.requant()) == x) => identity(node, data),
            Op::Rescale(r) => {
                // A rescale that only clamps is a clip.
                let open = Requant { lo: -128, hi: 127, ..r.requant() };
                let clamps = (-128..128).all(|x| num::requantize(x, &open) == x);
                let clip = Clip { lo: r.lo as f32, hi: r.hi as f32 };
                if clamps { replace(node, "rescale to clip", clip, data) } else { None }
            }
            _ => None,
        }
    }
}

/// A reshape to these sizes, if all are known.
fn known(ty: &TensorType) -> Option<Reshape> {
    let shape = ty.shape()?.into_iter().map(i64::try_from).collect::<Result<Vec<_>, _>>().ok()?;
    // 0 would copy the operand's size.
    (!shape.contains(&0)).then_some(Reshape { shape })
}

fn identity(node: &Node, data: ValueId) -> Option<Patch> {
    Some(Patch::new("no effect").replace(node.output(), data))
}

fn replace(node: &Node, what: &'static str, op: impl Into<Op>, data: ValueId) -> Option<Patch> {
    let mut p = Patch::new(what);
    let n = p.node(&node.name, op, &[Ref::Old(data)]);
    Some(p.replace(node.output(), n))
}

fn clip(view: &View, node: &Node, c: &Clip, data: ValueId) -> Option<Patch> {
    let all = match view.graph.ty(data).dtype {
        crate::graph::DType::I8 => (-128.0, 127.0),
        _ => (f32::NEG_INFINITY, f32::INFINITY),
    };
    if c.lo <= all.0 && c.hi >= all.1 {
        return identity(node, data);
    }
    let Some(Node { op: Op::Clip(inner), inputs, .. }) = view.def(data) else { return None };
    // Bounds that exclude each other cannot be one clip.
    let (lo, hi) = (c.lo.max(inner.lo), c.hi.min(inner.hi));
    if lo > hi { None } else { replace(node, "clip of clip", Clip { lo, hi }, inputs[0]) }
}
