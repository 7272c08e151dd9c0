//! Folds the addition of a constant vector into the bias of the product in front of it.

use super::{Pass, Patch, Ref, View};
use crate::graph::{Dim, NodeId, Op, Tensor};

/// Folds an added constant into the bias of the `dense`, `conv2d` or `conv_transpose2d` before it.
#[derive(Debug)]
pub struct FoldBias;

impl Pass for FoldBias {
    fn name(&self) -> &'static str {
        "fold_bias"
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        let node = view.graph.node(at);
        let Op::Add(_) = node.op else { return None };
        let (a, b) = (node.inputs[0], node.inputs[1]);
        let (sum, vector) = if view.graph.constant(b).is_some() { (a, b) } else { (b, a) };
        let vector = view.graph.constant(vector)?;
        let product = view.def(sum)?;
        let axis = match &product.op {
            Op::Dense(_) => 1,
            Op::Conv2d(c) => c.layout.channel_axis(),
            Op::ConvTranspose2d(c) => c.layout.channel_axis(),
            _ => return None,
        };
        let ty = view.graph.ty(sum);
        let channels = ty.dims.get(axis).and_then(Dim::known)?;
        if !view.single_use(sum) || view.graph.ty(node.output()) != ty {
            return None;
        }
        let x = channel_vector(vector, ty.rank() - axis, channels)?;
        let before = match product.inputs.get(2) {
            Some(&b) => Some(view.graph.constant(b)?.as_slice::<f32>().ok()?),
            None => None,
        };
        let bias = Tensor::from_fn(&[channels], |i| x[i] + before.map_or(0.0, |b| b[i]));
        let mut p = Patch::new("bias");
        let bias = p.constant(&format!("{}/bias", node.name), bias);
        let n =
            p.node(&product.name, product.op.clone(), &[product.inputs[0].into(), Ref::Old(product.inputs[1]), bias]);
        Some(p.replace(node.output(), n))
    }
}

/// One value per channel from a constant whose sizes are all 1, except possibly that of the channels, which are the
/// `from_end`-th dimension from the end.
pub(super) fn channel_vector(vector: &Tensor, from_end: usize, channels: usize) -> Option<Vec<f32>> {
    let shape = vector.shape();
    let place = shape.len().checked_sub(from_end);
    let elsewhere = shape.iter().enumerate().filter(|(i, _)| Some(*i) != place).any(|(_, &n)| n != 1);
    let x = vector.as_slice::<f32>().ok()?;
    if elsewhere || x.is_empty() || x.len() != 1 && place.is_none() {
        return None;
    }
    Some((0..channels).map(|i| x[i % x.len()]).collect())
}
