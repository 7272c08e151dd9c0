//! Convolutions and fully connected layers.

use super::bias::values;
use super::{Group, requantize};
use crate::graph::op::{Binary, BinaryKind, Conv2d, ConvTranspose2d, Dense};
use crate::graph::{Op, Tensor, ValueId};
use crate::passes::{Patch, Ref};

pub(super) fn rewrite(g: &Group) -> Option<Patch> {
    let graph = g.view.graph;
    let (data, from) = g.dequantized(g.core.inputs[0])?;
    let Weights { shape, less: mut w, scales, zero } = weights(g, g.core.inputs[1])?;
    let mut steps: Vec<f64> = scales.iter().map(|&s| f64::from(from.scale) * f64::from(s)).collect();
    let mut real = match g.core.inputs.get(2) {
        Some(&b) => values(g.view, b)?,
        None => vec![0.0; steps.len()],
    };
    if real.len() != steps.len() {
        return None;
    }
    if let Some(added) = &g.added {
        real.iter_mut().zip(added).for_each(|(b, a)| *b += a);
    }
    let per_channel = w.len().checked_div(steps.len())?;
    let (mut bias, mut most) = (Vec::with_capacity(steps.len()), Vec::with_capacity(steps.len()));
    for ((b, step), w) in real.iter().zip(&mut steps).zip(w.chunks_mut(per_channel.max(1))) {
        let (integer, sum) = fit(*b, step, w, f64::from(g.out.scale))?;
        bias.push(integer);
        most.push(sum);
    }
    // What lies beyond 8 bits without a zero point that all share is kept without any.
    let bytes = zero.map(|zero| w.iter().map(|&w| i8::try_from(w + zero).ok()).collect::<Option<Vec<i8>>>());
    let weight = match bytes {
        Some(bytes) => Tensor::new(&shape, bytes?)?,
        None => Tensor::new(&shape, w)?,
    };
    let zero = zero.unwrap_or(0);
    let (op, axis): (Op, usize) = match &g.core.op {
        Op::Conv2d(c) => {
            let op = Conv2d { data_zero_point: from.zero_point, weight_zero_point: zero, ..c.clone() };
            (op.into(), c.layout.channel_axis())
        }
        Op::ConvTranspose2d(c) => {
            let axis = c.layout.channel_axis();
            let op = ConvTranspose2d { data_zero_point: from.zero_point, weight_zero_point: zero, ..c.clone() };
            (op.into(), axis)
        }
        Op::Dense(_) => (Dense { data_zero_point: from.zero_point, weight_zero_point: zero }.into(), 1),
        _ => return None,
    };
    let factor = |(s, most): (&f64, f64)| (s / f64::from(g.out.scale), most);
    let factors: Vec<(f64, f64)> = steps.iter().zip(most).map(factor).collect();
    let mut p = Patch::new(if graph.ty(data).rank() == 2 { "dense" } else { "conv2d" });
    let weight = p.constant(&g.label("weight"), weight);
    let acc = p.node(&g.label(&g.core.name), op, &[data.into(), weight]);
    let v = match &g.slopes {
        None => requantize(g, &mut p, g.name(), (acc, axis), bias, &factors)?,
        Some(slopes) => leaky(g, &mut p, (acc, axis), bias, &factors, slopes)?,
    };
    g.finish(p, v)
}

/// A slope below 0: the greater of two requantizations of the same sums, or the lesser where slopes are above 1. Each is
/// rounded once, and of numbers in order so are their roundings.
fn leaky(
    g: &Group,
    p: &mut Patch,
    (acc, axis): (Ref, usize),
    bias: Vec<i32>,
    factors: &[(f64, f64)],
    slopes: &[f64],
) -> Option<Ref> {
    let slope = |i: usize| slopes[if slopes.len() > 1 { i } else { 0 }];
    let kind = match slopes {
        s if s.iter().all(|&s| (0.0..=1.0).contains(&s)) => BinaryKind::Max,
        s if s.iter().all(|&s| s >= 1.0) => BinaryKind::Min,
        _ => return None,
    };
    let below: Vec<_> = factors.iter().enumerate().map(|(i, &(f, most))| (f * slope(i), most)).collect();
    let above = requantize(g, p, &g.label("above"), (acc, axis), bias.clone(), factors)?;
    let below = requantize(g, p, &g.label("below"), (acc, axis), bias, &below)?;
    Some(p.node(g.name(), Binary { kind }, &[above, below]))
}

/// A channel's bias in steps of its accumulator, and the greatest magnitude that its sum with it may have.
///
/// A channel of all but dead weights has steps so small that its bias leaves no room for the sum. Its steps then become
/// coarser by a power of two, and its weights are rounded to them, where that is less than a quarter of a step of the
/// output. Weights are those less their zero point.
fn fit(real: f64, step: &mut f64, w: &mut [i32], out_scale: f64) -> Option<(i32, f64)> {
    let exact = *step;
    for k in 0..31 {
        let coarse = exact * f64::from(1u32 << k);
        let shifted = |w: i32| (f64::from(w) / f64::from(1u32 << k)).round();
        let bias = (real / coarse).round();
        let most: f64 = w.iter().map(|&w| shifted(w).abs() * 255.0).sum();
        if bias.abs() + most > f64::from(i32::MAX) {
            continue;
        }
        let lost: f64 = w.iter().map(|&w| (f64::from(w) * exact - shifted(w) * coarse).abs() * 255.0).sum();
        if lost + (bias * coarse - real).abs() > 0.25 * out_scale {
            return None;
        }
        if k > 0 {
            w.iter_mut().for_each(|w| *w = shifted(*w) as i32);
            *step = coarse;
        }
        return Some((bias as i32, bias.abs() + most));
    }
    None
}

/// Weights of an integer product.
struct Weights {
    shape: Vec<usize>,
    /// The weights less their zero points.
    less: Vec<i32>,
    /// A scale for each output channel.
    scales: Vec<f32>,
    /// What makes bytes of them again: 0 where they are bytes, else the zero point of all, where they have one.
    zero: Option<i32>,
}

fn weights(g: &Group, v: ValueId) -> Option<Weights> {
    let node = g.view.def(v)?;
    let Op::Dequantize(d) = &node.op else { return None };
    let t = g.view.graph.constant(node.inputs[0])?;
    let w = t.as_slice::<i8>().ok()?;
    let channels = *t.shape().first()?;
    let several = d.scale.len() > 1;
    if several && d.axis != 0 || d.zero_point.iter().any(|z| !(-128..=127).contains(z)) {
        return None;
    }
    let at = |i: usize| if several { i } else { 0 };
    let scales = (0..channels).map(|c| d.scale[at(c)]).collect();
    let per_channel = t.len().checked_div(channels)?;
    let less: Vec<i32> = (0..t.len()).map(|i| i32::from(w[i]) - d.zero_point[at(i / per_channel)]).collect();
    let first = *d.zero_point.first()?;
    let zero = if less.iter().all(|&w| i8::try_from(w).is_ok()) {
        Some(0)
    } else {
        d.zero_point.iter().all(|&z| z == first).then_some(first)
    };
    Some(Weights { shape: t.shape().to_vec(), less, scales, zero })
}
