//! Makes one operator of a layer normalization that is spelled out.

use super::{Pass, Patch, Ref, View};
use crate::graph::op::{Binary, BinaryKind, LayerNorm, Reduce, ReduceKind, Unary, UnaryKind};
use crate::graph::{DType, Node, NodeId, Op, Tensor, ValueId};

/// Replaces these operators with `layer_norm`, if nothing else reads their results:
///
/// ```text
/// less = x - mean(x)
/// less * (1 / sqrt(mean(less * less) + epsilon)), or less / sqrt(mean(less * less) + epsilon)
/// ```
///
/// The means are over all dimensions from one on. A product with a constant of the size of these dimensions, and then
/// a sum with one, become scale and bias.
#[derive(Debug)]
pub struct FuseLayerNorm;

impl Pass for FuseLayerNorm {
    fn name(&self) -> &'static str {
        "fuse_layer_norm"
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        let node = view.graph.node(at);
        if view.graph.ty(node.output()).dtype != DType::F32 {
            return None;
        }
        standard(view, node).or_else(|| scaled(view, node)).or_else(|| shifted(view, node))
    }
}

/// The normalization without scale and bias.
fn standard(view: &View, node: &Node) -> Option<Patch> {
    let (less, root) = match &node.op {
        Op::Binary(Binary { kind: BinaryKind::Div }) => (node.inputs[0], node.inputs[1]),
        Op::Binary(Binary { kind: BinaryKind::Mul }) => {
            let factor = |v: ValueId| unary(view, v, UnaryKind::Reciprocal);
            let [a, b] = [node.inputs[0], node.inputs[1]];
            factor(b).map(|root| (a, root)).or_else(|| factor(a).map(|root| (b, root)))?
        }
        _ => return None,
    };
    let sum = unary(view, root, UnaryKind::Sqrt)?;
    let Op::Add(_) = only(view, sum)?.op else { return None };
    let (variance, epsilon) = with_constant(view, sum)?;
    let epsilon = match (epsilon.len(), epsilon.as_slice::<f32>()) {
        (1, Ok([epsilon])) if epsilon.is_finite() && *epsilon >= 0.0 => *epsilon,
        _ => return None,
    };
    let (square, axes) = mean(view, variance)?;
    let Op::Binary(Binary { kind }) = only(view, square)?.op else { return None };
    let squared = view.def(square)?.inputs.clone();
    let is_square = match kind {
        BinaryKind::Mul => squared == [less, less],
        BinaryKind::Pow => squared[0] == less && number(view, squared[1]) == Some(2.0),
        _ => false,
    };
    let Op::Binary(Binary { kind: BinaryKind::Sub }) = view.op(less)? else { return None };
    let [x, middle] = view.def(less)?.inputs[..] else { return None };
    let readers = squared.iter().filter(|v| **v == less).count() + 1;
    if !is_square || view.graph.is_output(less) || view.users(less).len() != readers {
        return None;
    }
    let (of, same) = mean(view, middle)?;
    let rank = view.graph.ty(x).rank();
    let axis = *axes.first()?;
    let trailing = axes.iter().copied().eq(axis..rank);
    if of != x || same != axes || !trailing || view.graph.ty(x) != view.graph.ty(node.output()) {
        return None;
    }
    let mut p = Patch::new("layer normalization");
    let n = p.node(&node.name, LayerNorm { axis, epsilon }, &[x.into()]);
    Some(p.replace(node.output(), n))
}

/// A normalization without parameters, times a constant.
fn scaled(view: &View, node: &Node) -> Option<Patch> {
    let Op::Binary(Binary { kind: BinaryKind::Mul }) = node.op else { return None };
    let (before, op, scale) = parameter(view, node)?;
    let [x] = before.inputs[..] else { return None };
    let mut p = Patch::new("scale of a normalization");
    let scale = p.constant(&format!("{}/scale", node.name), scale);
    let n = p.node(&node.name, op, &[x.into(), scale]);
    Some(p.replace(node.output(), n))
}

/// A normalization without bias, plus a constant.
fn shifted(view: &View, node: &Node) -> Option<Patch> {
    let Op::Add(_) = node.op else { return None };
    let (before, op, bias) = parameter(view, node)?;
    let mut p = Patch::new("bias of a normalization");
    let scale: Ref = match before.inputs[..] {
        [_] => p.constant(&format!("{}/scale", node.name), Tensor::from_fn(bias.shape(), |_| 1f32)),
        [_, scale] => scale.into(),
        _ => return None,
    };
    let x = before.inputs[0];
    let bias = p.constant(&format!("{}/bias", node.name), bias);
    let n = p.node(&node.name, op, &[x.into(), scale, bias]);
    Some(p.replace(node.output(), n))
}

/// The normalization that only this node reads, and the node's constant with the sizes of the normalized dimensions.
fn parameter<'g>(view: &View<'g>, node: &Node) -> Option<(&'g Node, LayerNorm, Tensor)> {
    let (normalized, constant) = with_constant(view, node.output())?;
    let before = only(view, normalized)?;
    let Op::LayerNorm(op) = &before.op else { return None };
    let ty = view.graph.ty(normalized);
    let sizes = ty.shape()?.split_off(op.axis);
    // A constant can broadcast, and have further dimensions of size 1.
    let extra = constant.shape().len().saturating_sub(sizes.len());
    if constant.shape()[..extra].iter().any(|n| *n != 1) || view.graph.ty(node.output()) != ty {
        return None;
    }
    let flat = constant.reshaped(&constant.shape()[extra..])?;
    let whole = Op::from(crate::graph::op::Expand { shape: sizes }).eval(&[&flat]).ok()?;
    Some((before, op.clone(), whole.into_iter().next()?))
}

/// The node that computes a value, if exactly one operand reads it.
fn only<'g>(view: &View<'g>, v: ValueId) -> Option<&'g Node> {
    view.def(v).filter(|_| view.single_use(v))
}

/// The operand of a function whose result only one operand reads.
fn unary(view: &View, v: ValueId, kind: UnaryKind) -> Option<ValueId> {
    let node = only(view, v)?;
    matches!(&node.op, Op::Unary(Unary { kind: found, .. }) if *found == kind).then(|| node.inputs[0])
}

/// The operand of a mean that keeps its dimensions, and these.
fn mean<'g>(view: &View<'g>, v: ValueId) -> Option<(ValueId, &'g [usize])> {
    let node = only(view, v)?;
    match &node.op {
        Op::Reduce(Reduce { kind: ReduceKind::Mean, axes, keep_dims: true }) => Some((node.inputs[0], axes)),
        _ => None,
    }
}

/// Of a node with two operands, the one that is no constant, and the other.
fn with_constant<'g>(view: &View<'g>, v: ValueId) -> Option<(ValueId, &'g Tensor)> {
    let [a, b] = view.def(v)?.inputs[..] else { return None };
    let constant = |v: ValueId| view.graph.constant(v).map(|c| c.as_ref());
    match (constant(a), constant(b)) {
        (None, Some(c)) => Some((a, c)),
        (Some(c), None) => Some((b, c)),
        _ => None,
    }
}

fn number(view: &View, v: ValueId) -> Option<f32> {
    match view.graph.constant(v)?.as_slice::<f32>() {
        Ok([x]) => Some(*x),
        _ => None,
    }
}
