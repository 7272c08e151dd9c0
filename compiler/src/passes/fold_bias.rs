//! Additions of a constant vector after a matrix product or a convolution become its bias.

use super::{Pass, Patch, Ref, View};
use crate::graph::{Dim, NodeId, Op, Tensor};

/// Makes an added constant the bias of the `dense` or `conv2d` before it.
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
            _ => return None,
        };
        let ty = view.graph.ty(sum);
        let channels = ty.dims.get(axis).and_then(Dim::known)?;
        if product.inputs.len() != 2 || !view.single_use(sum) || view.graph.ty(node.output()) != ty {
            return None;
        }
        // All sizes of the constant are 1 but that of the channels, counted from the end.
        let from_end = ty.rank() - axis;
        let shape = vector.shape();
        let place = shape.len().checked_sub(from_end);
        let elsewhere = shape.iter().enumerate().filter(|(i, _)| Some(*i) != place).any(|(_, &n)| n != 1);
        if elsewhere || vector.len() != 1 && place.is_none() {
            return None;
        }
        let x = vector.as_slice::<f32>().ok()?;
        let bias = Tensor::from_fn(&[channels], |i| x[i % x.len()]);
        let mut p = Patch::new("bias");
        let bias = p.constant(&format!("{}/bias", node.name), bias);
        let n =
            p.node(&product.name, product.op.clone(), &[product.inputs[0].into(), Ref::Old(product.inputs[1]), bias]);
        Some(p.replace(node.output(), n))
    }
}
