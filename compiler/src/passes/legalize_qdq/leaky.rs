//! Slopes below 0 between a product and its quantization.

use super::bias;
use crate::graph::op::{Binary, BinaryKind, Unary, UnaryKind};
use crate::graph::{Dim, Node, Op, ValueId};
use crate::passes::View;

/// A function that is its operand from 0 on, and its operand times a factor below.
pub(super) struct Leaky<'v> {
    /// What makes the operand.
    pub before: &'v Node,
    /// The factors: one, or one for each channel of the product.
    pub slopes: Vec<f64>,
}

/// Such a function on the results of a convolution or dense layer, a bias and reshapes in between.
pub(super) fn behind_product<'v>(view: &'v View<'v>, node: &'v Node) -> Option<Leaky<'v>> {
    let (data, slopes) = match &node.op {
        Op::Unary(Unary { kind: UnaryKind::LeakyRelu, alpha, .. }) => (node.inputs[0], vec![f64::from(*alpha)]),
        Op::Binary(Binary { kind: BinaryKind::Max }) => {
            scaled(view, node.inputs[0], node.inputs[1]).or_else(|| scaled(view, node.inputs[1], node.inputs[0]))?
        }
        _ => return None,
    };
    let before = view.def(data)?;
    let axis = channel_axis(view, before)?;
    let dims = &view.graph.ty(data).dims;
    if slopes.len() > 1 && dims.get(axis).and_then(Dim::known) != Some(slopes.len()) {
        return None;
    }
    Some(Leaky { before, slopes })
}

/// The dimension of a product's channels in a value that is the product, or the product with a bias.
fn channel_axis<'v>(view: &'v View<'v>, node: &'v Node) -> Option<usize> {
    match &node.op {
        Op::Conv2d(c) => Some(c.layout.channel_axis()),
        Op::ConvTranspose2d(c) => Some(c.layout.channel_axis()),
        Op::Dense(_) => Some(1),
        Op::Add(_) => {
            let sum = bias::added(view, node)?;
            if sum.reshapes.is_empty() { channel_axis(view, sum.product) } else { None }
        }
        _ => None,
    }
}

/// `x` and the factors, where `y` is `x` times factors of which none is above 1; several stand along one dimension, which
/// must be that of the channels.
fn scaled<'v>(view: &'v View<'v>, x: ValueId, y: ValueId) -> Option<(ValueId, Vec<f64>)> {
    let node = view.def(y)?;
    let Op::Binary(Binary { kind: BinaryKind::Mul }) = node.op else { return None };
    let factor = match node.inputs[..] {
        [a, b] if a == x => b,
        [a, b] if b == x => a,
        _ => return None,
    };
    let slopes = bias::values(view, factor).filter(|s| s.iter().all(|s| *s <= 1.0))?;
    if slopes.len() > 1 {
        let (ty, of) = (view.graph.ty(factor), view.graph.ty(x));
        let place = ty.dims.iter().position(|d| d.known() == Some(slopes.len()))?;
        let axis = channel_axis(view, view.def(x)?)?;
        if of.rank().checked_sub(ty.rank() - place) != Some(axis) {
            return None;
        }
    }
    Some((x, slopes))
}
