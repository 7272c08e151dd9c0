//! Folds products with a constant vector into the weights of the convolution or matrix product in front of them, such
//! as the factor of a batch normalization.

use super::fold_bias::channel_vector;
use super::{Pass, Patch, Ref, View};
use crate::graph::op::{Binary, BinaryKind};
use crate::graph::{Dim, NodeId, Op, Tensor};

/// Folds a product with constants into the weights and bias of the `dense`, `conv2d` or `conv_transpose2d` before it.
#[derive(Debug)]
pub struct FoldScale;

impl Pass for FoldScale {
    fn name(&self) -> &'static str {
        "fold_scale"
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        let node = view.graph.node(at);
        let Op::Binary(Binary { kind: BinaryKind::Mul }) = node.op else { return None };
        let (a, b) = (node.inputs[0], node.inputs[1]);
        let (sum, vector) = if view.graph.constant(b).is_some() { (a, b) } else { (b, a) };
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
        let factors = channel_vector(view.graph.constant(vector)?, ty.rank() - axis, channels)?;
        let weight = view.graph.constant(product.inputs[1])?;
        let w = weight.as_slice::<f32>().ok()?;
        let each = weight.len().checked_div(channels).filter(|&n| n > 0)?;
        let mut p = Patch::new("scale");
        let scaled: Vec<f32> = w.iter().enumerate().map(|(i, w)| w * factors[i / each]).collect();
        // An infinite weight times data of 0 is NaN, but an infinite factor times their sum need not be.
        if !scaled.iter().chain(&factors).all(|w| w.is_finite()) {
            return None;
        }
        let scaled = Tensor::new(weight.shape(), scaled)?;
        let mut operands = vec![Ref::Old(product.inputs[0]), p.constant(&format!("{}/weight", product.name), scaled)];
        if let Some(&b) = product.inputs.get(2) {
            let bias = view.graph.constant(b)?.as_slice::<f32>().ok()?;
            let scaled = Tensor::from_fn(&[channels], |i| bias[i] * factors[i]);
            operands.push(p.constant(&format!("{}/bias", product.name), scaled));
        }
        let n = p.node(&product.name, product.op.clone(), &operands);
        Some(p.replace(node.output(), n))
    }
}
