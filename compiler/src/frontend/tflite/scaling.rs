//! Scales sums of products to the result: factors, multipliers and shifts, and the rounding of each operator's kernel.

use super::NodeContext;
use super::quant::{Activation, PerTensor};
use super::schema::{TensorInfo, Type};
use crate::frontend::reason::Reason;
use crate::graph::op::{Add, Binary, BinaryKind, Cast, Reduce, ReduceKind, Requantize, Reshape};
use crate::graph::{DType, Tensor, ValueId};
use tilewright_hw::num::{self, Rounding};

/// The real factor of each channel as multiplier and shift, and how products are rounded.
pub(super) struct Scaling {
    multiplier: Vec<i32>,
    shift: Vec<i32>,
    mode: Rounding,
}

impl Scaling {
    /// Two roundings, as in TFLite's convolutions. `sums` are the greatest magnitudes per channel.
    ///
    /// # Errors
    /// If a sum, shifted for a factor of 1 or more, exceeds 32 bits, which the kernels leave undefined.
    pub fn double(factors: &[f64], sums: impl FnOnce() -> Vec<i64>) -> Result<Scaling, Reason> {
        let pairs: Vec<(i32, i8)> = factors.iter().map(|&f| num::byte_multiplier(f)).collect();
        if pairs.iter().any(|&(_, s)| s > 0) {
            for (((_, shift), sum), factor) in pairs.iter().zip(sums()).zip(factors) {
                fits(sum, (*shift).into(), *factor)?;
            }
        }
        let (multiplier, shift) = pairs.into_iter().map(|(m, s)| (m, i32::from(s))).unzip();
        Ok(Scaling { multiplier, shift, mode: Rounding::Double })
    }

    /// One rounding, ties away from zero. `None` if no 31-bit multipliers achieve that for sums up to these magnitudes.
    ///
    /// If a channel's factor is 1 or more, all channels use *double* mode, without its second rounding.
    fn away(factors: &[f64], sums: &[i64]) -> Option<Scaling> {
        let shifts = factors.iter().map(|&f| num::byte_multiplier(f).1);
        let mode = if shifts.clone().all(|s| s <= 0) { Rounding::Single } else { Rounding::Double };
        let shifts: Vec<i8> = shifts.map(|s| if mode == Rounding::Single { s } else { s.max(0) }).collect();
        let multiplier = factors.iter().zip(&shifts).zip(sums).map(|((&factor, &shift), &sum)| {
            let factor = factor.min(num::MOST_BYTE_FACTOR);
            fits(sum, shift.into(), factor).ok()?;
            num::away_multiplier(factor, shift, sum)
        });
        let multiplier = multiplier.collect::<Option<_>>()?;
        Some(Scaling { multiplier, shift: shifts.iter().map(|&s| i32::from(s).abs()).collect(), mode })
    }

    /// The same multiplier and shift, in *double* mode, for all channels.
    pub fn uniform(multiplier: i32, shift: i32, channels: usize) -> Scaling {
        Scaling { multiplier: vec![multiplier; channels], shift: vec![shift; channels], mode: Rounding::Double }
    }
}

/// Fails if a sum, shifted left before it is multiplied, exceeds 32 bits.
pub(super) fn fits(sum: i64, shift: i32, factor: f64) -> Result<(), Reason> {
    if shift <= 0 || sum <= i64::from(i32::MAX) >> shift {
        return Ok(());
    }
    let why = "TFLite's 32-bit arithmetic does not define that";
    Err(format!("its scales are too far apart: sums up to {sum} times {factor}; {why}").into())
}

/// The factors of a convolution's sums, one per scale of the weights.
///
/// For int8 data everything is computed in double precision, for uint8 data the product of the scales in single
/// precision (`PopulateConvolutionQuantizationParams`).
pub(super) fn product_factors(data: &TensorInfo, from: f32, weights: &[f32], to: f32) -> Vec<f64> {
    let product = |&s: &f32| {
        if data.ty == Type::U8 { f64::from(from * s) } else { f64::from(from) * f64::from(s) }
    };
    weights.iter().map(|s| product(s) / f64::from(to)).collect()
}

/// The greatest magnitude, over all data, of each channel's sum of products and bias; channels are the first dimension
/// of the weights.
pub(super) fn greatest_sums(weight: &Tensor, weight_zero_point: i32, data_zero_point: i32, bias: &[i32]) -> Vec<i64> {
    let Ok(weight) = weight.as_slice::<i8>() else { return vec![i64::MAX; bias.len()] };
    let (low, high) = (i64::from(-128 - data_zero_point), i64::from(127 - data_zero_point));
    let sum = |row: &[i8], bias: i32| {
        let (mut least, mut most) = (i64::from(bias), i64::from(bias));
        for &w in row {
            let w = i64::from(w) - i64::from(weight_zero_point);
            least += (w * low).min(w * high);
            most += (w * low).max(w * high);
        }
        // Sums wrap at 32 bits.
        most.max(-least).min(i64::from(i32::MAX))
    };
    let row = weight.len() / bias.len().max(1);
    bias.iter().enumerate().map(|(c, &b)| sum(&weight[c * row..(c + 1) * row], b)).collect()
}

/// Adds the requantization of an accumulator with channels along `axis`.
pub(super) fn requantize(
    n: &mut NodeContext,
    acc: ValueId,
    axis: usize,
    bias: Vec<i32>,
    scaling: Scaling,
    out: PerTensor,
    act: Activation,
) -> Result<ValueId, Reason> {
    let (lo, hi) = act.range(out);
    let bias = n.made("bias", Tensor::vector(bias));
    let multiplier = n.made("multiplier", Tensor::vector(scaling.multiplier));
    let shift = n.made("shift", Tensor::vector(scaling.shift));
    let op = Requantize { axis, zero_point: out.zero_point, lo, hi, mode: scaling.mode };
    n.node("", op, &[acc, bias, multiplier, shift])
}

/// Adds the requantization of a fully connected layer. Its reference kernel multiplies each sum by its factor in double
/// precision and rounds once, ties away from zero. The sums are `[rows, channels]`.
pub(super) fn requantize_away(
    n: &mut NodeContext,
    acc: ValueId,
    bias: Vec<i32>,
    factors: &[f64],
    sums: &[i64],
    out: PerTensor,
    act: Activation,
) -> Result<ValueId, Reason> {
    if let Some(scaling) = Scaling::away(factors, sums) {
        return requantize(n, acc, 1, bias, scaling, out, act);
    }
    // No multipliers achieve it: count up from the least result, one for each integer whose first sum is reached.
    let (lo, hi) = act.range(out);
    let (channels, steps) = (factors.len(), (hi - lo) as usize);
    n.reserve_tables(channels.saturating_mul(steps))?;
    let first = |i: usize| {
        let (c, k) = (i / steps, i64::from(lo + 1 - out.zero_point) + (i % steps) as i64);
        let first = |k| num::first_rounded_to(factors[c], k, sums[c]);
        let first = if k > 0 { first(k) } else { 1 - first(1 - k) };
        first.min(i64::from(i32::MAX)) as i32
    };
    let first = n.made("first", Tensor::from_fn(&[channels, steps], first));
    let (bias, least) = (n.made("bias", Tensor::vector(bias)), n.made("least", Tensor::vector(vec![lo])));
    let v = n.node("sum", Add {}, &[acc, bias])?;
    let channels = i64::try_from(channels).map_err(|_| "it has too many channels")?;
    let v = n.node("column", Reshape { shape: vec![-1, channels, 1] }, &[v])?;
    let v = n.node("reached", Binary { kind: BinaryKind::LessEqual }, &[first, v])?;
    let v = n.node("steps", Cast { dtype: DType::I32 }, &[v])?;
    let v = n.node("count", Reduce { kind: ReduceKind::Sum, axes: vec![2], keep_dims: false }, &[v])?;
    let v = n.node("value", Add {}, &[v, least])?;
    n.node("", Cast { dtype: DType::I8 }, &[v])
}
