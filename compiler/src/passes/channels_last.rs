//! Images whose channels come before their rows get them last, as processors with vectors want them.
//!
//! A product or pooling of such images becomes one of images with their channels last, between two transposes; the one behind it
//! then moves down through operators that compute each element from the same element, until it meets the one before the next
//! product, and both go away ([`super::Canonicalize`]).

use super::{Pass, Patch, Ref, View};
use crate::graph::op::{Concat, Layout, Pad, Reduce, Reshape, Slice, Transpose};
use crate::graph::{Node, NodeId, Op, ValueId};

/// From channels first to channels last: dimension `i` of the result is this one of the data.
const TO_LAST: [usize; 4] = [0, 2, 3, 1];
/// And back.
const TO_FIRST: [usize; 4] = [0, 3, 1, 2];

/// Puts the channels of images last.
#[derive(Debug)]
pub struct ChannelsLast;

impl Pass for ChannelsLast {
    fn name(&self) -> &'static str {
        "channels_last"
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        let node = view.graph.node(at);
        match turned(&node.op) {
            Some(op) => turn(node, op),
            None => sink(view, node),
        }
    }
}

/// The same operator on images with their channels last, of one whose images have them first.
fn turned(op: &Op) -> Option<Op> {
    macro_rules! layouts {
        ($($name:ident)*) => {
            match op {
                $(Op::$name(op) if op.layout == Layout::Nchw => {
                    let mut op = op.clone();
                    op.layout = Layout::Nhwc;
                    Some(op.into())
                })*
                _ => None,
            }
        };
    }
    layouts!(Conv2d ConvTranspose2d MaxPool2d AvgPool2d SumPool2d QAvgPool2d GlobalAvgPool)
}

fn transpose(perm: [usize; 4]) -> Transpose {
    Transpose { perm: perm.to_vec() }
}

fn turn(node: &Node, op: Op) -> Option<Patch> {
    let mut p = Patch::new("channels last");
    let mut operands: Vec<Ref> = node.inputs.iter().map(|v| (*v).into()).collect();
    operands[0] = p.node(&format!("{}/last", node.name), transpose(TO_LAST), &operands[..1]);
    let made = p.node(&node.name, op, &operands);
    let back = p.node(&format!("{}/first", node.name), transpose(TO_FIRST), &[made]);
    Some(p.replace(node.output(), back))
}

/// What a value is before its channels are put first again.
fn last(view: &View, v: ValueId) -> Option<ValueId> {
    match view.def(v)? {
        Node { op: Op::Transpose(t), inputs, .. } if t.perm == TO_FIRST => Some(inputs[0]),
        _ => None,
    }
}

/// What stands for a dimension when the channels are last.
fn moved(axis: usize) -> Option<usize> {
    TO_LAST.iter().position(|&a| a == axis)
}

fn by_last<T: Clone>(list: &[T]) -> Option<Vec<T>> {
    (list.len() == 4).then(|| TO_LAST.iter().map(|&i| list[i].clone()).collect())
}

/// Moves a transpose from before an operator behind it.
fn sink(view: &View, node: &Node) -> Option<Patch> {
    let (op, images) = within(view, node)?;
    if !node.inputs[..images].iter().any(|v| last(view, *v).is_some()) || view.graph.ty(node.output()).rank() != 4 {
        return None;
    }
    let mut p = Patch::new("channels stay last");
    let mut operands = Vec::new();
    for (i, &v) in node.inputs.iter().enumerate() {
        let rank = view.graph.ty(v).rank();
        let turned = match last(view, v) {
            _ if i >= images || rank == 0 => v.into(),
            Some(source) => source.into(),
            None => {
                // Dimensions that are not there are sizes of 1 in front.
                let shape = view.graph.ty(v).shape()?;
                let mut whole = vec![1i64; 4usize.checked_sub(rank)?];
                whole.extend(shape.iter().map(|&n| n as i64));
                let name = format!("{}/operand{i}", node.name);
                let v = if rank == 4 { v.into() } else { p.node(&name, Reshape { shape: whole }, &[v.into()]) };
                p.node(&format!("{name}/last"), transpose(TO_LAST), &[v])
            }
        };
        operands.push(turned);
    }
    let made = p.node(&node.name, op, &operands);
    let back = p.node(&format!("{}/first", node.name), transpose(TO_FIRST), &[made]);
    Some(p.replace(node.output(), back))
}

/// The operator for images with their channels last, and how many of its first operands are such images.
fn within(view: &View, node: &Node) -> Option<(Op, usize)> {
    let op = node.op.clone();
    Some(match op {
        Op::Relu(_) | Op::Clip(_) | Op::Unary(_) | Op::Cast(_) | Op::Rescale(_) | Op::ShiftSign(_) => (op, 1),
        Op::Lookup(_) => (op, 1),
        Op::Add(_) | Op::Binary(_) | Op::QAdd(_) | Op::QMul(_) | Op::QSquaredDifference(_) => (op, 2),
        Op::Select(_) => (op, 3),
        Op::Requantize(mut r) => {
            r.axis = moved(r.axis)?;
            (r.into(), 1)
        }
        Op::Quantize(mut q) => {
            q.axis = if q.scale.len() == 1 { q.axis } else { moved(q.axis)? };
            (q.into(), 1)
        }
        Op::Dequantize(mut d) => {
            d.axis = if d.scale.len() == 1 { d.axis } else { moved(d.axis)? };
            (d.into(), 1)
        }
        Op::Concat(c) => (Concat { axis: moved(c.axis)? }.into(), node.inputs.len()),
        Op::Pad(p) => (Pad { before: by_last(&p.before)?, after: by_last(&p.after)?, ..p }.into(), 1),
        Op::Slice(s) => {
            let slice = Slice { starts: by_last(&s.starts)?, sizes: by_last(&s.sizes)?, steps: by_last(&s.steps)? };
            (slice.into(), 1)
        }
        Op::Reduce(r) => {
            let mut axes = r.axes.iter().map(|&a| moved(a)).collect::<Option<Vec<_>>>()?;
            axes.sort_unstable();
            if !r.keep_dims || view.graph.ty(node.inputs[0]).rank() != 4 {
                return None;
            }
            (Reduce { axes, ..r }.into(), 1)
        }
        _ => return None,
    })
}
