//! Converts images to channels last, which vector processors prefer.
//!
//! A product or pooling of channels-first images becomes one of channels-last images, between two transposes. The
//! transpose after it then moves down through element-wise operators until it meets the transpose in front of the next
//! product, and both cancel ([`super::Canonicalize`]).

use super::{Pass, Patch, Ref, View};
use crate::graph::op::{Concat, Layout, Pad, Reduce, Reshape, Slice, Transpose};
use crate::graph::{Node, NodeId, Op, ValueId};

/// Permutation from channels first to channels last.
const TO_LAST: [usize; 4] = [0, 2, 3, 1];
/// Permutation back to channels first.
const TO_FIRST: [usize; 4] = [0, 3, 1, 2];

/// Converts images to channels last.
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

/// The channels-last form of an operator on channels-first images; `None` for other operators.
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

/// The channels-last operand of a transpose back to channels first; `None` if the value has no such transpose.
fn last(view: &View, v: ValueId) -> Option<ValueId> {
    match view.def(v)? {
        Node { op: Op::Transpose(t), inputs, .. } if t.perm == TO_FIRST => Some(inputs[0]),
        _ => None,
    }
}

/// Index of a dimension once the channels are last.
fn moved(axis: usize) -> Option<usize> {
    TO_LAST.iter().position(|&a| a == axis)
}

fn by_last<T: Clone>(list: &[T]) -> Option<Vec<T>> {
    (list.len() == 4).then(|| TO_LAST.iter().map(|&i| list[i].clone()).collect())
}

/// Moves a transpose from the operands of an operator to its result.
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
                // Missing dimensions are leading sizes of 1.
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

/// The operator for channels-last images, and the number of its leading operands that are such images.
fn within(view: &View, node: &Node) -> Option<(Op, usize)> {
    let op = node.op.clone();
    Some(match op {
        Op::Rescale(_) | Op::ShiftSign(_) => (op, 1),
        _ if op.is_map() => (op, 1),
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
