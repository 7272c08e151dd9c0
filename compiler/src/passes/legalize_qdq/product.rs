//! Convolutions and fully connected layers.

use super::{Group, requantize};
use crate::graph::op::{Conv2d, Dense};
use crate::graph::{DType, Op, Tensor, ValueId};
use crate::passes::Patch;

pub(super) fn rewrite(g: &Group) -> Option<Patch> {
    let graph = g.view.graph;
    let (data, from) = g.dequantized(g.core.inputs[0])?;
    let (weight, scales) = weights(g, g.core.inputs[1])?;
    let channels = weight.shape()[0];
    let steps: Vec<f64> = scales.iter().map(|&s| f64::from(from.scale) * f64::from(s)).collect();
    let bias = match g.core.inputs.get(2) {
        Some(&b) => bias(g, b, &steps)?,
        None => vec![0; channels],
    };
    let (op, axis): (Op, usize) = match &g.core.op {
        Op::Conv2d(c) => (Conv2d { data_zero_point: from.zero_point, ..c.clone() }.into(), c.layout.channel_axis()),
        Op::Dense(_) => (Dense { data_zero_point: from.zero_point }.into(), 1),
        _ => return None,
    };
    let factors: Vec<f64> = steps.iter().map(|s| s / f64::from(g.out.scale)).collect();
    let mut p = Patch::new(if axis == 1 && graph.ty(data).rank() == 2 { "dense" } else { "conv2d" });
    let weight = p.constant(&g.label("weight"), weight);
    let acc = p.node(&g.label(&g.core.name), op, &[data.into(), weight]);
    let v = requantize(g, &mut p, acc, axis, bias, &factors)?;
    g.finish(p, v)
}

/// Weights without zero point, and a scale for each output channel.
fn weights(g: &Group, v: ValueId) -> Option<(Tensor, Vec<f32>)> {
    let node = g.view.def(v)?;
    let Op::Dequantize(d) = &node.op else { return None };
    let t = g.view.graph.constant(node.inputs[0])?;
    let w = t.as_slice::<i8>().ok()?;
    let channels = *t.shape().first()?;
    let several = d.scale.len() > 1;
    if several && d.axis != 0 {
        return None;
    }
    let at = |i: usize| if several { i } else { 0 };
    let scales = (0..channels).map(|c| d.scale[at(c)]).collect();
    let per_channel = t.len().checked_div(channels)?;
    let shifted = (0..t.len()).map(|i| i8::try_from(i32::from(w[i]) - d.zero_point[at(i / per_channel)]).ok());
    Some((Tensor::new(t.shape(), shifted.collect::<Option<Vec<i8>>>()?)?, scales))
}

/// A bias in steps of the accumulator.
fn bias(g: &Group, v: ValueId, steps: &[f64]) -> Option<Vec<i32>> {
    let node = g.view.def(v)?;
    let real: Vec<f64> = match &node.op {
        Op::Constant(c) => c.value.as_slice::<f32>().ok()?.iter().map(|&b| f64::from(b)).collect(),
        Op::Dequantize(d) => {
            let t = g.view.graph.constant(node.inputs[0])?;
            if t.dtype() != DType::I32 {
                return None;
            }
            let at = |i: usize| if d.scale.len() > 1 { i } else { 0 };
            let step = |i: usize| f64::from(d.scale[at(i)]);
            let real = |(i, &b): (usize, &i32)| (f64::from(b) - f64::from(d.zero_point[at(i)])) * step(i);
            t.as_slice::<i32>().ok()?.iter().enumerate().map(real).collect()
        }
        _ => return None,
    };
    let quantize = |(b, s): (&f64, &f64)| {
        let q = (b / s).round();
        (q.abs() < f64::from(i32::MAX / 2)).then_some(q as i32)
    };
    (real.len() == steps.len()).then(|| real.iter().zip(steps).map(quantize).collect())?
}
