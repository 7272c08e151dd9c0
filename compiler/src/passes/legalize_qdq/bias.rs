//! Biases: operands of layers, and vectors added to their results.

use crate::graph::op::Reshape;
use crate::graph::{Dim, Node, Op, ValueId};
use crate::passes::View;

/// A layer and a vector that is added to the channels of its result.
pub(super) struct Sum<'v> {
    pub product: &'v Node,
    /// Reshapes between the two, the last one first.
    pub reshapes: Vec<&'v Reshape>,
    /// A value for each channel.
    pub vector: Vec<f64>,
}

/// What an addition adds to a convolution's or dense layer's channels, none where it is anything else.
pub(super) fn added<'v>(view: &'v View<'v>, add: &'v Node) -> Option<Sum<'v>> {
    let known = |v: ValueId| match view.op(v) {
        Some(Op::Dequantize(_)) => view.def(v).is_some_and(|n| view.graph.constant(n.inputs[0]).is_some()),
        op => matches!(op, Some(Op::Constant(_))),
    };
    let (a, b) = (add.inputs[0], add.inputs[1]);
    let (sum, vector) = if known(b) { (a, b) } else { (b, a) };
    if !known(vector) || view.graph.ty(sum) != view.graph.ty(add.output()) {
        return None;
    }
    let mut reshapes = Vec::new();
    let mut product = view.def(sum)?;
    while let Op::Reshape(r) = &product.op {
        reshapes.push(r);
        product = view.def(product.inputs[0])?;
    }
    let axis = match &product.op {
        Op::Dense(_) => 1,
        Op::Conv2d(c) => c.layout.channel_axis(),
        Op::ConvTranspose2d(c) => c.layout.channel_axis(),
        _ => return None,
    };
    let sizes = |dims: &[Dim]| dims.iter().map(Dim::known).collect::<Option<Vec<usize>>>();
    let inner = sizes(&view.graph.ty(product.output()).dims[axis..])?;
    let (&channels, inner) = inner.split_first()?;
    let real = values(view, vector)?;
    if let &[x] = real.as_slice() {
        return Some(Sum { product, reshapes, vector: vec![x; channels] });
    }
    // The vector's one dimension is the channels' where as many of them, and as many elements behind each, are there.
    let shape = sizes(&view.graph.ty(vector).dims)?;
    let place = shape.iter().position(|&n| n != 1)?;
    let behind = shape.len() - place;
    let dims = &view.graph.ty(sum).dims;
    let tail = sizes(&dims[dims.len().checked_sub(behind)?..])?;
    let same = tail[0] == channels && tail[1..].iter().product::<usize>() == inner.iter().product::<usize>();
    (same && real.len() == channels && shape[place] == channels).then_some(Sum { product, reshapes, vector: real })
}

/// The real values of a constant of floats, or of dequantized integers with one scale or one for each element in order.
pub(super) fn values(view: &View, v: ValueId) -> Option<Vec<f64>> {
    let node = view.def(v)?;
    let t = match &node.op {
        Op::Constant(c) => c.value.as_ref().clone(),
        Op::Dequantize(d) => {
            let t = view.graph.constant(node.inputs[0])?;
            if d.scale.len() > 1 && d.scale.len() != t.len() {
                return None;
            }
            let step = |i: usize| f64::from(d.scale[if d.scale.len() > 1 { i } else { 0 }]);
            let zero = |i: usize| f64::from(d.zero_point[if d.zero_point.len() > 1 { i } else { 0 }]);
            let real = |(i, x): (usize, f64)| (x - zero(i)) * step(i);
            let integers: Vec<f64> = match (t.as_slice::<i32>(), t.as_slice::<i8>()) {
                (Ok(t), _) => t.iter().map(|&x| f64::from(x)).collect(),
                (_, Ok(t)) => t.iter().map(|&x| f64::from(x)).collect(),
                _ => return None,
            };
            return Some(integers.into_iter().enumerate().map(real).collect());
        }
        _ => return None,
    };
    Some(t.as_slice::<f32>().ok()?.iter().map(|&x| f64::from(x)).collect())
}
