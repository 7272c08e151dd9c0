//! Makes quantized groups integer.
//!
//! A group is a `quantize` to int8 whose operand is computed, by one operator and perhaps a clip, from dequantized int8
//! values. The rewrite starts at the `quantize` and leaves the group's float nodes to whoever else uses them:
//!
//! | group | integer form |
//! |---|---|
//! | dequantize, quantize | nothing where the scales are the same, else `rescale` |
//! | clip or relu | `rescale` with the clamp |
//! | conv2d, dense | the same on int8, then `requantize`; with a leaky relu the greater of two |
//! | avg_pool2d, global_avg_pool | the same on int8 where the scales are the same, else `sum_pool2d`, `requantize`; `qavg_pool2d` where padding is not counted; float where many sums are ties |
//! | add, sub | `qadd` |
//! | mul | `qmul`; by one number `rescale` |
//! | matmul of two activations | `qmatmul`, `requantize` |
//! | conv_transpose2d | the same on int8, then `requantize` |
//! | concat | `concat` of parts that are rescaled where their scales differ |
//! | any function of one element, of whatever float operators | `lookup`, which is exact |
//! | softmax | `softmax` on int8 |
//!
//! Reshapes between the operator and the `quantize` are done on the integers, and a constant vector that is added to a
//! convolution's or dense layer's channels, before or behind them, is its bias.
//!
//! Each result is within one step of the float group's. Weights whose zero points are not 0 are shifted where they then
//! still fit int8, and where they have several they become i32; a group that cannot be made integer stays as it is.

mod add;
mod bias;
mod concat;
mod leaky;
mod lookup;
mod matmul;
mod pool;
mod product;

use super::{Pass, Patch, Ref, View};
use crate::graph::op::{Binary, BinaryKind, Quantize, Requantize, Rescale, Reshape, Softmax};
use crate::graph::{DType, Node, NodeId, Op, Tensor, ValueId};
use tilewright_hw::num::{Rounding, quantize_multiplier};

/// Makes quantized groups integer.
#[derive(Debug)]
pub struct LegalizeQdq;

impl Pass for LegalizeQdq {
    fn name(&self) -> &'static str {
        "legalize_qdq"
    }

    fn exact(&self) -> bool {
        false
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        let group = Group::find(view, view.graph.node(at))?;
        match &group.core.op {
            Op::Dequantize(_) => rescale(&group),
            Op::Conv2d(_) | Op::Dense(_) | Op::ConvTranspose2d(_) => product::rewrite(&group),
            Op::AvgPool2d(_) | Op::GlobalAvgPool(_) => pool::rewrite(&group),
            Op::Add(_) => add::rewrite(&group, false).or_else(|| lookup::rewrite(&group)),
            Op::Binary(Binary { kind: BinaryKind::Sub }) => {
                add::rewrite(&group, true).or_else(|| lookup::rewrite(&group))
            }
            Op::Binary(Binary { kind }) => {
                let other = || if *kind == BinaryKind::Mul { matmul::elements(&group) } else { None };
                scaled(&group).or_else(|| lookup::rewrite(&group)).or_else(other)
            }
            Op::Unary(_) => lookup::rewrite(&group),
            Op::MatMul(_) => matmul::matrices(&group),
            Op::Concat(c) => concat::rewrite(&group, c),
            Op::Softmax(s) => softmax(&group, s),
            _ => None,
        }
    }
}

/// Scale and zero point of an int8 tensor as a whole.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PerTensor {
    scale: f32,
    zero_point: i32,
}

/// What a `quantize` ends.
struct Group<'v> {
    view: &'v View<'v>,
    root: &'v Node,
    /// The operator before the clip.
    core: &'v Node,
    /// Reshapes between the operator and the root, the last one first.
    reshapes: Vec<&'v Reshape>,
    /// What is added to each channel of the operator's result.
    added: Option<Vec<f64>>,
    /// Factors of a product's results below 0, one or one for each channel.
    slopes: Option<Vec<f64>>,
    /// The name of the integer operator.
    name: String,
    out: PerTensor,
    /// Clamp of the integers.
    lo: i32,
    hi: i32,
}

impl<'v> Group<'v> {
    fn find(view: &'v View<'v>, root: &'v Node) -> Option<Group<'v>> {
        let Op::Quantize(q) = &root.op else { return None };
        let (&[scale], &[zero_point], DType::I8) = (q.scale.as_slice(), q.zero_point.as_slice(), q.dtype) else {
            return None;
        };
        let (mut lo, mut hi) = (-128, 127);
        let mut core = view.def(root.inputs[0])?;
        let (mut reshapes, mut added, mut slopes) = (Vec::new(), None, None);
        loop {
            if slopes.is_none()
                && let Some(found) = leaky::behind_product(view, core)
            {
                (core, slopes) = (found.before, Some(found.slopes));
                continue;
            }
            let (a, b) = match &core.op {
                // A clip before the slope holds other values than one behind it.
                Op::Clip(_) | Op::Relu(_) if slopes.is_some() => return None,
                Op::Clip(c) => (bound(q, scale, zero_point, c.lo), bound(q, scale, zero_point, c.hi)),
                Op::Relu(_) => (bound(q, scale, zero_point, 0.0), 127),
                Op::Reshape(r) => {
                    reshapes.push(r);
                    core = view.def(core.inputs[0])?;
                    continue;
                }
                Op::Add(_) => {
                    let Some(sum) = bias::added(view, core) else { break };
                    reshapes.extend(sum.reshapes);
                    (core, added) = (sum.product, Some(sum.vector));
                    break;
                }
                _ => break,
            };
            // The clamp nearer to the root is applied last.
            (lo, hi) = (a.clamp(lo, hi), b.clamp(lo, hi));
            core = view.def(core.inputs[0])?;
        }
        // The result keeps the root's name.
        let name = if reshapes.is_empty() { root.name.clone() } else { format!("{}/flat", root.name) };
        Some(Group { view, root, core, reshapes, added, slopes, name, out: PerTensor { scale, zero_point }, lo, hi })
    }

    /// The int8 value under a `dequantize` as a whole.
    fn dequantized(&self, v: ValueId) -> Option<(ValueId, PerTensor)> {
        let node = self.view.def(v)?;
        let Op::Dequantize(d) = &node.op else { return None };
        let (&[scale], &[zero_point]) = (d.scale.as_slice(), d.zero_point.as_slice()) else { return None };
        let data = node.inputs[0];
        (self.view.graph.ty(data).dtype == DType::I8).then_some((data, PerTensor { scale, zero_point }))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn label(&self, suffix: &str) -> String {
        format!("{}/{suffix}", self.root.name)
    }

    /// Puts a value of the operator's shape in the place of the root.
    fn finish(&self, mut p: Patch, v: Ref) -> Option<Patch> {
        let mut v = v;
        for (i, r) in self.reshapes.iter().enumerate().rev() {
            let name = if i == 0 { self.root.name.clone() } else { self.label(&format!("shape{i}")) };
            v = p.node(&name, (*r).clone(), &[v]);
        }
        Some(p.replace(self.root.output(), v))
    }
}

/// The integer of a clip's bound.
fn bound(q: &Quantize, scale: f32, zero_point: i32, x: f32) -> i32 {
    (q.rounding.round(x / scale) as i32).saturating_add(zero_point).clamp(-128, 127)
}

/// The least factor of which 31 bits behind the point leave nothing to be seen in 8-bit results.
const LEAST_WHOLE: f64 = 1.0 / 4096.0;

/// From this factor on every integer but 0 leaves the range of bytes, wherever the zero point lies.
const MOST: f64 = 512.0;

/// Real factors, each with the greatest magnitude of what it scales, as multipliers and shifts: one rounding where all of
/// them are below 1, else two. None where 32 bits do not hold what is shifted before it is multiplied.
fn scaling(factors: &[(f64, f64)]) -> Option<(Vec<i32>, Vec<i32>, Rounding)> {
    if factors.iter().any(|(f, _)| f.is_nan() || *f < 0.0) {
        return None;
    }
    // Past the greatest all results are held at the bounds; the factor itself would take too many bits.
    let (factors, magnitudes): (Vec<f64>, Vec<f64>) = factors.iter().map(|&(f, most)| (f.min(MOST), most)).unzip();
    let (multiplier, shift): (Vec<i32>, Vec<i32>) =
        factors.iter().map(|&f| quantize_multiplier(f)).map(|(m, s)| (m, i32::from(s))).unzip();
    if shift.iter().all(|&s| s <= 0) {
        return Some((multiplier, shift.iter().map(|s| -s).collect(), Rounding::Single));
    }
    if shift.iter().zip(magnitudes).any(|(&s, most)| s > 0 && most * f64::from(1u32 << s) > f64::from(i32::MAX)) {
        return None;
    }
    // A factor below 1 in full, without a shift, is rounded once here as well: by the multiplication.
    let whole = |(f, (m, s)): (&f64, (i32, i32))| match s {
        ..=0 if *f >= LEAST_WHOLE => ((f * f64::from(1u32 << 31)).round().min(f64::from(i32::MAX)) as i32, 0),
        _ => (m, s),
    };
    let (multiplier, shift) = factors.iter().zip(multiplier.into_iter().zip(shift)).map(whole).unzip();
    Some((multiplier, shift, Rounding::Double))
}

/// Adds a `requantize` of sums with channels along an axis to the group's output; factors as for [`scaling`].
fn requantize(
    g: &Group,
    p: &mut Patch,
    name: &str,
    (acc, axis): (Ref, usize),
    bias: Vec<i32>,
    factors: &[(f64, f64)],
) -> Option<Ref> {
    let (multiplier, shift, mode) = scaling(factors)?;
    let bias = p.constant(&format!("{name}/bias"), Tensor::vector(bias));
    let multiplier = p.constant(&format!("{name}/multiplier"), Tensor::vector(multiplier));
    let shift = p.constant(&format!("{name}/shift"), Tensor::vector(shift));
    let op = Requantize { axis, zero_point: g.out.zero_point, lo: g.lo, hi: g.hi, mode };
    Some(p.node(name, op, &[acc, bias, multiplier, shift]))
}

fn rescale(g: &Group) -> Option<Patch> {
    let (data, from) = g.dequantized(g.core.output())?;
    if from == g.out && (g.lo, g.hi) == (-128, 127) {
        return g.finish(Patch::new("same scale"), data.into());
    }
    let mut p = Patch::new("rescale");
    let v = p.node(g.name(), rescaled(g, from, 1.0)?, &[data.into()]);
    g.finish(p, v)
}

/// From one scale, times a factor, to the group's.
fn rescaled(g: &Group, from: PerTensor, factor: f64) -> Option<Rescale> {
    let (multiplier, shift, mode) = scaling(&[(f64::from(from.scale) * factor / f64::from(g.out.scale), 255.0)])?;
    Some(Rescale {
        data_zero_point: from.zero_point,
        multiplier: multiplier[0],
        shift: i8::try_from(shift[0]).ok()?,
        zero_point: g.out.zero_point,
        lo: g.lo,
        hi: g.hi,
        mode,
    })
}

/// A product or quotient with one positive number.
fn scaled(g: &Group) -> Option<Patch> {
    let (value, factor) = lookup::factor(g)?;
    let (data, from) = g.dequantized(value)?;
    let mut p = Patch::new("rescale");
    let v = p.node(g.name(), rescaled(g, from, factor)?, &[data.into()]);
    g.finish(p, v)
}

fn softmax(g: &Group, s: &Softmax) -> Option<Patch> {
    let (data, from) = g.dequantized(g.core.inputs[0])?;
    if (g.lo, g.hi) != (-128, 127) {
        return None;
    }
    let op = Softmax {
        input_scale: from.scale,
        output_scale: g.out.scale,
        output_zero_point: g.out.zero_point,
        ..s.clone()
    };
    let mut p = Patch::new("softmax");
    let v = p.node(g.name(), op, &[data.into()]);
    g.finish(p, v)
}
