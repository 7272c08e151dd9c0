//! AVERAGE_POOL_2D, MAX_POOL_2D and MEAN over height and width; `reduce` has the other means of floats.

use super::conv::reshape_to;
use super::reduce::{axes, mean_of_floats};
use super::{activate, before, expect, padding, size};
use crate::frontend::reason::Reason;
use crate::frontend::tflite::quant::{Activation, PerTensor, per_tensor};
use crate::frontend::tflite::scaling::{Scaling, fits, requantize};
use crate::frontend::tflite::schema::Type;
use crate::frontend::tflite::{NodeContext, wide};
use crate::graph::op::{AvgPool2d, Clip, GlobalAvgPool, Layout, MaxPool2d, SumPool2d};
use crate::graph::{DType, ValueId};
use tilewright_hw::num::{MOST_BYTE_FACTOR, quantize_multiplier};

const NHWC: Layout = Layout::Nhwc;

struct Pool {
    data: ValueId,
    kernel: [usize; 2],
    strides: [usize; 2],
    pads: [usize; 4],
    act: Activation,
    /// Quantization of both data and result; `None` for floats.
    quant: Option<PerTensor>,
}

fn pool(n: &mut NodeContext) -> Result<Pool, Reason> {
    let o = n.op.options.ok_or("it has no options")?;
    let data = n.input(0)?;
    let dtype = expect(n, data, &[DType::F32, DType::I8, DType::I16])?;
    let shape = n.shape(data)?;
    let &[_, h, w, _] = shape.as_slice() else {
        return Err(format!("its data must have 4 dimensions, found {shape:?}").into());
    };
    let strides = [size("stride", o.i32(2)?)?, size("stride", o.i32(1)?)?];
    let kernel = [size("filter", o.i32(4)?)?, size("filter", o.i32(3)?)?];
    let (top, bottom) = padding(o.i8(0)?, h, kernel[0], strides[0], 1)?;
    let (left, right) = padding(o.i8(0)?, w, kernel[1], strides[1], 1)?;
    let act = Activation::from_code(o.i8(5)?)?;
    let mut quant = None;
    if dtype != DType::F32 {
        let (from, to) = (per_tensor(n.input_info(0)?)?, n.result()?);
        if from.zero_point != to.zero_point || (from.scale - to.scale).abs() > 1e-6 {
            return Err("data and result must have the same scale and zero point".into());
        }
        quant = Some(to);
    }
    Ok(Pool { data, kernel, strides, pads: [top, left, bottom, right], act, quant })
}

pub(super) fn average_pool_2d(n: &mut NodeContext) -> Result<(), Reason> {
    let p = pool(n)?;
    let (lo, hi) = p.quant.map_or((-128, 127), |q| p.act.range(q));
    let Pool { kernel, strides, pads, .. } = p;
    let unsigned = p.quant.is_some() && n.input_info(0)?.ty == Type::U8;
    let op = AvgPool2d { kernel, strides, pads, count_include_pad: false, layout: NHWC, lo, hi, unsigned };
    if let Some(q) = p.quant {
        let v = if wide::is_wide(n.input_info(0)?) {
            // Averages in double precision are at ties where those of the integers are.
            let data = wide::operand(n, 0, p.data)?;
            let v = n.node("avg_pool2d", op, &[data])?;
            let v = wide::rounded_away(n, v)?;
            wide::bounded(n, v, p.act, q)?
        } else {
            n.node("", op, &[p.data])?
        };
        return n.output(v);
    }
    let v = n.node(before(p.act, "avg_pool2d"), op, &[p.data])?;
    let v = activate(n, v, p.act)?;
    n.output(v)
}

pub(super) fn max_pool_2d(n: &mut NodeContext) -> Result<(), Reason> {
    let p = pool(n)?;
    let op = MaxPool2d { kernel: p.kernel, strides: p.strides, pads: p.pads, dilations: [1, 1], layout: NHWC };
    if let Some(q) = p.quant.filter(|_| n.ty(p.data).dtype == DType::I16) {
        let data = n.float("data", p.data)?;
        let v = n.node("max_pool2d", op, &[data])?;
        let v = n.cast("integers", v, DType::I16)?;
        let v = wide::bounded(n, v, p.act, q)?;
        return n.output(v);
    }
    let v = n.node(before(p.act, "max_pool2d"), op, &[p.data])?;
    let v = match p.quant {
        None => activate(n, v, p.act)?,
        Some(_) if p.act == Activation::None => v,
        Some(q) => {
            let (lo, hi) = p.act.range(q);
            n.node("", Clip { lo: lo as f32, hi: hi as f32 }, &[v])?
        }
    };
    n.output(v)
}

pub(super) fn mean(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let dtype = expect(n, data, &[DType::F32, DType::I8, DType::I16])?;
    let (shape, axes) = (n.shape(data)?, axes(n)?);
    let kept = n.output_info()?.shape.len() == shape.len();
    if dtype != DType::F32 {
        let (from, to) = (per_tensor(n.input_info(0)?)?, n.result()?);
        let count = axes.iter().try_fold(1usize, |count, &axis| count.checked_mul(shape[axis]));
        let (multiplier, shift) =
            mean_multiplier(from.scale, to.scale, count, if dtype == DType::I8 { 255 } else { 65535 })?;
        let v = match (dtype, shape.as_slice(), axes.as_slice()) {
            (DType::I8, &[batch, height, width, c], [1, 2]) => {
                let (kernel, data_zero_point) = ([height, width], from.zero_point);
                let op = SumPool2d { kernel, strides: [1, 1], pads: [0; 4], layout: NHWC, data_zero_point };
                let acc = n.node("sum", op, &[data])?;
                n.reserve_tables(c)?;
                let scaling = Scaling::uniform(multiplier, shift, c);
                let v = requantize(n, acc, 3, vec![0; c], scaling, to, Activation::None)?;
                if kept { v } else { reshape_to(n, v, &[batch, c])? }
            }
            _ => {
                let factors = wide::Factors::of_pair(multiplier, shift);
                // The multiplier fits the number of elements.
                wide::scaled_sum(n, data, &axes, kept, (&factors, 0), [from.zero_point, to.zero_point])?
            }
        };
        return n.output(v);
    }
    let (&[batch, _, _, c], [1, 2]) = (shape.as_slice(), axes.as_slice()) else { return mean_of_floats(n) };
    let suffix = if kept { "" } else { "mean" };
    let v = n.node(suffix, GlobalAvgPool { layout: NHWC, lo: -128, hi: 127 }, &[data])?;
    let v = if kept { v } else { reshape_to(n, v, &[batch, c])? };
    n.output(v)
}

/// The factor of a mean, including the division by the number of elements (`QuantizedMeanOrSum`).
fn mean_multiplier(from: f32, to: f32, count: Option<usize>, most: i64) -> Result<(i32, i32), Reason> {
    let count = count.and_then(|n| i64::try_from(n).ok()).filter(|&n| n > 0);
    let count = count.ok_or("the dimensions of its mean must be positive and not too large")?;
    let factor = f64::from(from) / f64::from(to);
    // From this factor on, every number but 0 is at the bounds of the type.
    let greatest = if most > 255 { 65536.0 } else { MOST_BYTE_FACTOR };
    let (multiplier, shift) = quantize_multiplier(factor.min(greatest * count as f64));
    let down = (63 - count.leading_zeros() as i32).min(32).min(31 + i32::from(shift)).max(0);
    let product = (i64::from(multiplier) << down) / count;
    let multiplier = i32::try_from(product).map_err(|_| "its scales are too far apart")?;
    let shift = i32::from(shift) - down;
    fits(count.saturating_mul(most), shift, factor / count as f64)?;
    Ok((multiplier, shift))
}
