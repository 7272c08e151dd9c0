//! Converts quantized groups to integer operators.
//!
//! A group is a `quantize` to int8 together with the operator, and possibly a clip, that computes its operand from
//! dequantized int8 values. The rewrite starts at the `quantize` and leaves the group's float nodes to their other
//! users:
//!
//! | group | integer form |
//! |---|---|
//! | dequantize, quantize | nothing if the scales are equal, else `rescale` |
//! | clip or relu | `rescale` with the clamp |
//! | conv2d, conv_transpose2d, dense | the same on int8, then `requantize` |
//! | matmul of two activations | `qmatmul`, `requantize` |
//! | avg_pool2d, global_avg_pool | the same on int8 if the scales are equal, else `sum_pool2d`, `requantize` |
//! | avg_pool2d whose padding is not counted | `qavg_pool2d` |
//! | avg_pool2d, global_avg_pool with many sums that are ties | stays float |
//! | add, sub | `qadd` |
//! | mul | `qmul`; by one number `rescale` |
//! | concat | `concat` of parts that are rescaled if their scales differ, or quantized if they are computed |
//! | any function of one element, made of any float operators | `lookup`, which is exact |
//! | softmax | `softmax` on int8 |
//!
//! Operators between the core operator and the `quantize` that move or compare elements run on the integers. More
//! operators can follow a product (`behind.rs`): a linear function per channel becomes part of its requantization, the
//! maximum or minimum of two linear functions becomes two requantizations of the same sums, and bounds of a channel
//! become clamps.
//!
//! Each result is within one step of the float group's. Weights with zero points other than 0 are stored less their
//! zero points if they still fit int8. If not, they keep the zero point that all channels share, or become i32 if the
//! channels have different ones. A group that cannot become integer stays as it is, and a product in it gets a note
//! with the reason.

mod add;
mod behind;
mod concat;
mod constants;
mod forms;
mod lookup;
mod mul;
mod notes;
mod pieces;
mod pool;
mod product;

use super::{Pass, Patch, Ref, View};
use crate::graph::op::{Binary, BinaryKind, Pad, Quantize, Requantize, Rescale, Softmax};
use crate::graph::{DType, Graph, Node, NodeId, Op, Tensor, ValueId};
use behind::{Obstacle, ProductSearch};
use forms::Forms;
use tilewright_hw::num::{MOST_BYTE_FACTOR, Rounding, quantize_multiplier};

/// Converts quantized groups to integer operators.
#[derive(Debug)]
pub struct LegalizeQdq;

impl Pass for LegalizeQdq {
    fn name(&self) -> &'static str {
        "legalize_qdq"
    }

    fn exact(&self) -> bool {
        false
    }

    fn notes(&self, graph: &Graph) -> Vec<(String, String)> {
        notes::notes(graph)
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        let end = QuantizeEnd::of(view.graph.node(at))?;
        if let Ok(patch) = behind_product(view, end) {
            return Some(patch);
        }
        let group = Group::find(view, end)?;
        match &group.core.op {
            Op::Dequantize(_) => rescale(&group),
            Op::AvgPool2d(_) | Op::GlobalAvgPool(_) => pool::rewrite(&group),
            Op::Add(_) => add::rewrite(&group, false).or_else(|| lookup::rewrite(&group)),
            Op::Binary(Binary { kind: BinaryKind::Sub }) => {
                add::rewrite(&group, true).or_else(|| lookup::rewrite(&group))
            }
            Op::Binary(Binary { kind }) => {
                let other = || if *kind == BinaryKind::Mul { mul::rewrite(&group) } else { None };
                scaled(&group).or_else(|| lookup::rewrite(&group)).or_else(other)
            }
            Op::Unary(_) => lookup::rewrite(&group),
            Op::Concat(c) => concat::rewrite(&group, c),
            Op::Softmax(s) => softmax(&group, s),
            _ => None,
        }
    }
}

/// Converts a product, and all operators between it and a quantization, to integer operators.
///
/// # Errors
/// The reason if that is not possible.
fn behind_product(view: &View, end: QuantizeEnd) -> Result<Patch, Obstacle> {
    let mut search = ProductSearch::new(view);
    let (behind, negative) = search.ordered(end.root.inputs[0])?;
    let end = if negative { end.mirrored() } else { end };
    let forms = search.taken(&behind, |behind| Forms::of(behind, &end))?;
    let (lo, hi) = (product::shared(&forms.lo).unwrap_or(-128), product::shared(&forms.hi).unwrap_or(127));
    let group = Group::new(view, end, behind.product, behind.moves, (lo, hi));
    product::rewrite(&group, &forms).map_err(|why| Obstacle::at(behind.product, &why))
}

/// Scale and zero point of an int8 tensor that has one of each.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PerTensor {
    scale: f32,
    zero_point: i32,
}

/// A `quantize` to int8 with one scale and zero point.
#[derive(Clone, Copy)]
struct QuantizeEnd<'v> {
    root: &'v Node,
    quantize: &'v Quantize,
    out: PerTensor,
    /// True if the integers are those of the negated values; the root's integers are then `-1 - x`.
    negative: bool,
}

impl<'v> QuantizeEnd<'v> {
    fn of(root: &'v Node) -> Option<QuantizeEnd<'v>> {
        let Op::Quantize(quantize) = &root.op else { return None };
        match (quantize.scale.as_slice(), quantize.zero_point.as_slice(), quantize.dtype) {
            (&[scale], &[zero_point], DType::I8) => {
                Some(QuantizeEnd { root, quantize, out: PerTensor { scale, zero_point }, negative: false })
            }
            _ => None,
        }
    }

    /// The quantization of the negated values. Rounding is symmetric about 0, and the range of bytes about -1/2.
    fn mirrored(self) -> QuantizeEnd<'v> {
        let out = PerTensor { zero_point: -1 - self.out.zero_point, ..self.out };
        QuantizeEnd { out, negative: true, ..self }
    }

    /// The integer that a real value is quantized to.
    fn integer(&self, x: f32) -> i32 {
        let steps = self.quantize.rounding.round(x / self.out.scale) as i32;
        steps.saturating_add(self.out.zero_point).clamp(-128, 127)
    }

    /// The range of real values of a byte, extended by one step at both ends.
    fn range(&self) -> (f64, f64) {
        let real = |x: i32| f64::from(x - self.out.zero_point) * f64::from(self.out.scale);
        (real(-129), real(128))
    }
}

/// The operators that a `quantize` ends.
struct Group<'v> {
    view: &'v View<'v>,
    end: QuantizeEnd<'v>,
    /// The operator in front of the clip.
    core: &'v Node,
    /// Operators between `core` and the root that move or compare elements, in order.
    moves: Vec<&'v Node>,
    /// The name of the integer operator.
    name: String,
    out: PerTensor,
    /// Clamp of the integers.
    lo: i32,
    hi: i32,
}

impl<'v> Group<'v> {
    fn new(
        view: &'v View<'v>,
        end: QuantizeEnd<'v>,
        core: &'v Node,
        moves: Vec<&'v Node>,
        (lo, hi): (i32, i32),
    ) -> Group<'v> {
        // The result keeps the root's name.
        let name = if moves.is_empty() { end.root.name.clone() } else { format!("{}/flat", end.root.name) };
        Group { view, end, core, moves, name, out: end.out, lo, hi }
    }

    fn find(view: &'v View<'v>, end: QuantizeEnd<'v>) -> Option<Group<'v>> {
        let (mut lo, mut hi) = (-128, 127);
        let mut core = view.def(end.root.inputs[0])?;
        let mut moves = Vec::new();
        loop {
            let (a, b) = match &core.op {
                Op::Clip(c) => (end.integer(c.lo), end.integer(c.hi)),
                Op::Relu(_) => (end.integer(0.0), 127),
                op if behind::moves(op, (lo, hi) == (-128, 127)) => {
                    moves.push(core);
                    (-128, 127)
                }
                _ => break,
            };
            // The clamp closer to the root is applied last.
            (lo, hi) = (a.clamp(lo, hi), b.clamp(lo, hi));
            core = view.def(core.inputs[0])?;
        }
        moves.reverse();
        Some(Group::new(view, end, core, moves, (lo, hi)))
    }

    /// The int8 operand of a `dequantize` with one scale and zero point, and those.
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
        format!("{}/{suffix}", self.end.root.name)
    }

    /// Replaces the root with a value of the core operator's shape; adds the operators that move elements.
    fn finish(&self, mut p: Patch, v: Ref) -> Patch {
        let mut v = v;
        let steps = self.moves.len() + usize::from(self.end.negative);
        let name = |i: usize| match steps - 1 - i {
            0 => self.end.root.name.clone(),
            behind => self.label(&format!("shape{behind}")),
        };
        for (i, node) in self.moves.iter().enumerate() {
            let op = match &node.op {
                Op::Pad(pad) => {
                    let value = if self.end.negative { -pad.value } else { pad.value };
                    Pad { value: self.end.integer(value) as f32, ..pad.clone() }.into()
                }
                op => op.clone(),
            };
            let others = node.inputs[1..].iter().map(|&v| Ref::Old(v));
            let operands: Vec<Ref> = std::iter::once(v).chain(others).collect();
            v = p.node(&name(i), op, &operands);
        }
        if self.end.negative {
            v = p.node(&name(steps - 1), MIRROR, &[v]);
        }
        p.replace(self.end.root.output(), v)
    }
}

/// `-1 - x`.
const MIRROR: Rescale = Rescale {
    data_zero_point: 0,
    multiplier: -(1 << 30),
    shift: 1,
    zero_point: -1,
    lo: -128,
    hi: 127,
    mode: Rounding::Double,
};

/// The smallest factor that 31 fractional bits represent exactly enough for 8-bit results.
const LEAST_WHOLE: f64 = 1.0 / 4096.0;

/// Converts real factors, each with the greatest magnitude of what it scales, to multipliers and shifts: *single*
/// rounding if all factors are below 1 in magnitude, else *double*. `None` if a value shifted before the multiplication
/// would not fit 32 bits.
fn scaling(factors: &[(f64, f64)]) -> Option<(Vec<i32>, Vec<i32>, Rounding)> {
    if factors.iter().any(|(f, _)| f.is_nan()) {
        return None;
    }
    // Larger factors would need too many bits, and saturate all results anyway.
    let (factors, magnitudes): (Vec<f64>, Vec<f64>) =
        factors.iter().map(|&(f, most)| (f.clamp(-MOST_BYTE_FACTOR, MOST_BYTE_FACTOR), most)).unzip();
    let signed = |&f: &f64| {
        let (multiplier, shift) = quantize_multiplier(f.abs());
        (if f < 0.0 { -multiplier } else { multiplier }, i32::from(shift))
    };
    let (multiplier, shift): (Vec<i32>, Vec<i32>) = factors.iter().map(signed).unzip();
    if shift.iter().all(|&s| s <= 0) {
        return Some((multiplier, shift.iter().map(|s| -s).collect(), Rounding::Single));
    }
    if shift.iter().zip(magnitudes).any(|(&s, most)| s > 0 && most * f64::from(1u32 << s) > f64::from(i32::MAX)) {
        return None;
    }
    // A factor below 1 without a shift is rounded only once here too: by the multiplication.
    let whole = |(f, (m, s)): (&f64, (i32, i32))| match s {
        ..=0 if f.abs() >= LEAST_WHOLE => ((f * f64::from(1u32 << 31)).round() as i32, 0),
        _ => (m, s),
    };
    let (multiplier, shift) = factors.iter().zip(multiplier.into_iter().zip(shift)).map(whole).unzip();
    Some((multiplier, shift, Rounding::Double))
}

/// Adds a `requantize` of sums, with channels along `axis`, to the group's output; for `factors` see [`scaling`].
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
        return Some(g.finish(Patch::new("same scale"), data.into()));
    }
    let mut p = Patch::new("rescale");
    let v = p.node(g.name(), rescaled(g, from, 1.0)?, &[data.into()]);
    Some(g.finish(p, v))
}

/// A `rescale` from one scale, times a factor, to the group's scale.
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

/// Rewrites a product or quotient with one positive number.
fn scaled(g: &Group) -> Option<Patch> {
    let (value, factor) = lookup::factor(g)?;
    let (data, from) = g.dequantized(value)?;
    let mut p = Patch::new("rescale");
    let v = p.node(g.name(), rescaled(g, from, factor)?, &[data.into()]);
    Some(g.finish(p, v))
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
    Some(g.finish(p, v))
}
