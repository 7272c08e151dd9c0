//! AVERAGE_POOL_2D, MAX_POOL_2D and MEAN over height and width; `reduce` has the other means of floats.

use super::conv::reshape_to;
use super::reduce::{axes, mean_of_floats};
use super::{activate, before, expect, padding, size};
use crate::frontend::reason::Reason;
use crate::frontend::tflite::NodeContext;
use crate::frontend::tflite::quant::{Activation, PerTensor, per_tensor};
use crate::frontend::tflite::scaling::{Scaling, fits, requantize};
use crate::frontend::tflite::schema::Type;
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
    let dtype = expect(n, data, &[DType::F32, DType::I8])?;
    let shape = &n.input_info(0)?.shape;
    let &[_, h, w, _] = shape.as_slice() else {
        return Err(format!("its data must have 4 dimensions, found {shape:?}").into());
    };
    let strides = [size("stride", o.i32(2)?)?, size("stride", o.i32(1)?)?];
    let kernel = [size("filter", o.i32(4)?)?, size("filter", o.i32(3)?)?];
    let (top, bottom) = padding(o.i8(0)?, h, kernel[0], strides[0], 1)?;
    let (left, right) = padding(o.i8(0)?, w, kernel[1], strides[1], 1)?;
    let act = Activation::from_code(o.i8(5)?)?;
    let mut quant = None;
    if dtype == DType::I8 {
        let (from, to) = (per_tensor(n.input_info(0)?)?, per_tensor(n.output_info()?)?);
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
    if p.quant.is_some() {
        let v = n.node("", op, &[p.data])?;
        return n.output(v);
    }
    let v = n.node(before(p.act, "avg_pool2d"), op, &[p.data])?;
    let v = activate(n, v, p.act)?;
    n.output(v)
}

pub(super) fn max_pool_2d(n: &mut NodeContext) -> Result<(), Reason> {
    let p = pool(n)?;
    let op = MaxPool2d { kernel: p.kernel, strides: p.strides, pads: p.pads, dilations: [1, 1], layout: NHWC };
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
    let dtype = expect(n, data, &[DType::F32, DType::I8])?;
    let info = n.input_info(0)?;
    let (rank, axes) = (info.shape.len(), axes(n)?);
    let (4, [1, 2]) = (rank, axes.as_slice()) else {
        if dtype == DType::F32 {
            return mean_of_floats(n);
        }
        let only = "only the mean over height and width of 4 dimensions is supported for 8 bits";
        return Err(format!("{only}, found axes {axes:?} of {rank} dimensions").into());
    };
    let out_shape = n.output_info()?.shape.clone();
    let kept = out_shape.len() == 4;
    let v = if dtype == DType::F32 {
        let suffix = if kept { "" } else { "mean" };
        n.node(suffix, GlobalAvgPool { layout: NHWC, lo: -128, hi: 127 }, &[data])?
    } else {
        let (from, to) = (per_tensor(info)?, per_tensor(n.output_info()?)?);
        let kernel = [info.shape[1], info.shape[2]];
        let (multiplier, shift) = mean_multiplier(from.scale, to.scale, kernel)?;
        let op = SumPool2d { kernel, strides: [1, 1], pads: [0; 4], layout: NHWC, data_zero_point: from.zero_point };
        let acc = n.node("sum", op, &[data])?;
        let c = info.shape[3];
        n.reserve_tables(c)?;
        requantize(n, acc, 3, vec![0; c], Scaling::uniform(multiplier, shift, c), to, Activation::None)?
    };
    let v = if kept { v } else { reshape_to(n, v, &out_shape)? };
    n.output(v)
}

/// The factor of a mean, including the division by the number of elements (`QuantizedMeanOrSum`).
fn mean_multiplier(from: f32, to: f32, kernel: [usize; 2]) -> Result<(i32, i32), Reason> {
    let count = kernel[0].checked_mul(kernel[1]).and_then(|n| i64::try_from(n).ok()).filter(|&n| n > 0);
    let count = count.ok_or("its height and width must be positive and not too large")?;
    let factor = f64::from(from) / f64::from(to);
    let (multiplier, shift) = quantize_multiplier(factor.min(MOST_BYTE_FACTOR * count as f64));
    let down = (63 - count.leading_zeros() as i32).min(32).min(31 + i32::from(shift)).max(0);
    let product = (i64::from(multiplier) << down) / count;
    let multiplier = i32::try_from(product).map_err(|_| "its scales are too far apart")?;
    let shift = i32::from(shift) - down;
    fits(count.saturating_mul(255), shift, factor / count as f64)?;
    Ok((multiplier, shift))
}
