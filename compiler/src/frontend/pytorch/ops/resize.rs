//! Resizing, padding, sampling, and columns of windows.

use super::convolution::check_steps;
use super::{with_batch, without_batch};
use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::movement::beside;
use crate::frontend::semantic::pad::{self, Border};
use crate::frontend::semantic::resize::{Coordinates, Mode, Plan, ResizedDimension, Rounding, resized};
use crate::frontend::semantic::sample::{self, Interpolation, Outside};
use crate::frontend::semantic::window::{self, Padding, Sliding};
use crate::graph::op::Slice;

/// Resizes the dimensions behind batch and channels. Sizes are given, or follow from factors, which then also give the scale.
fn upsampled(n: &mut NodeContext, mode: Mode, coordinates: Coordinates, antialias: bool) -> Result<Value, Reason> {
    let name = if matches!(n.value("input")?, Value::None) { "self" } else { "input" };
    let v = n.tensor(name)?;
    let shape = n.shape(v)?;
    let spatial = shape.len().checked_sub(2).ok_or("its data must have a batch and channels")?;
    let sizes = n.ints("output_size")?;
    let mut scales: Vec<Option<f64>> = n.floats("scale_factors")?.unwrap_or_default().into_iter().map(Some).collect();
    for name in ["scales", "scales_d", "scales_h", "scales_w"] {
        // A factor that is left out keeps its place.
        if n.has(name) || (name == "scales_h" && n.has("scales_w")) {
            scales.push(n.number(name)?);
        }
    }
    let mut dims: Vec<ResizedDimension> = shape.iter().map(|&d| ResizedDimension::same(d)).collect();
    for i in 0..spatial {
        let (dim, scale) = (&mut dims[2 + i], scales.get(i).copied().flatten());
        dim.to = match (&sizes, scale) {
            (Some(sizes), _) => {
                let size = sizes.get(i).and_then(|&s| usize::try_from(s).ok()).filter(|&s| s > 0 && s < 1 << 24);
                size.ok_or("its output_size must have a positive size for each dimension")?
            }
            (None, Some(scale)) => ((dim.from as f64 * scale) as usize).clamp(1, 1 << 24),
            _ => return Err("it has neither sizes nor factors".into()),
        };
        dim.scale = match (coordinates, scale) {
            (Coordinates::Steps, Some(scale)) => (1.0 / scale) as f32,
            (Coordinates::Steps, None) => dim.from as f32 / dim.to as f32,
            (_, Some(scale)) => scale as f32,
            (_, None) => dim.to as f32 / dim.from.max(1) as f32,
        };
    }
    if antialias && coordinates == Coordinates::AlignCorners {
        return Err("antialias with align_corners is not supported".into());
    }
    if !matches!(mode, Mode::Nearest(_)) && !n.ty(v).dtype.is_float() {
        return Err(format!("its data {} must be floats", n.ty(v)).into());
    }
    let plan = Plan { mode, coordinates, exclude_outside: antialias, antialias, extrapolation: 0.0 };
    Ok(resized(n, v, &plan, &dims)?.into())
}

fn corners(n: &mut NodeContext) -> Result<Coordinates, Reason> {
    Ok(if n.flag("align_corners", false)? { Coordinates::AlignCorners } else { Coordinates::HalfPixel })
}

pub(super) fn nearest(n: &mut NodeContext) -> Result<Value, Reason> {
    upsampled(n, Mode::Nearest(Rounding::Floor), Coordinates::Steps, false)
}

pub(super) fn nearest_exact(n: &mut NodeContext) -> Result<Value, Reason> {
    upsampled(n, Mode::Nearest(Rounding::HalfUp), Coordinates::HalfPixel, false)
}

pub(super) fn linear(n: &mut NodeContext) -> Result<Value, Reason> {
    let corners = corners(n)?;
    upsampled(n, Mode::Linear, corners, false)
}

pub(super) fn linear_smooth(n: &mut NodeContext) -> Result<Value, Reason> {
    let corners = corners(n)?;
    upsampled(n, Mode::Linear, corners, true)
}

pub(super) fn bicubic(n: &mut NodeContext) -> Result<Value, Reason> {
    let corners = corners(n)?;
    upsampled(n, Mode::Cubic(-0.75), corners, false)
}

pub(super) fn bicubic_smooth(n: &mut NodeContext) -> Result<Value, Reason> {
    let corners = corners(n)?;
    upsampled(n, Mode::Cubic(-0.5), corners, true)
}

/// Elements to add before and after each dimension. The program has them for the last dimensions, the last one first.
fn ends(n: &mut NodeContext, rank: usize, name: &str) -> Result<Vec<(i64, i64)>, Reason> {
    let list = n.ints(name)?.unwrap_or_default();
    let mut ends = vec![(0, 0); rank];
    for (i, pair) in list.chunks(2).enumerate() {
        let &[before, after] = pair else { return Err("its pads must be pairs".into()) };
        let axis = rank.checked_sub(i + 1).ok_or("its pads are for more dimensions than its data have")?;
        ends[axis] = (before, after);
    }
    pad::check(&ends)?;
    Ok(ends)
}

pub(super) fn pad(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let ends = ends(n, n.ty(v).rank(), "pad")?;
    let (mode, value) = (n.text("mode")?, n.number("value")?.unwrap_or(0.0));
    Ok(match mode.as_deref() {
        None | Some("constant") => pad::constant(n, "", v, &ends, value as f32)?,
        Some("reflect") => pad::bordered(n, v, &ends, Border::Reflect)?,
        Some("replicate") => pad::bordered(n, v, &ends, Border::Edge)?,
        Some("circular") => pad::bordered(n, v, &ends, Border::Wrap)?,
        Some(other) => {
            return Err(format!("unknown mode `{other}`; use constant, reflect, replicate or circular").into());
        }
    }
    .into())
}

fn bordered(n: &mut NodeContext, border: Border) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let ends = ends(n, n.ty(v).rank(), "padding")?;
    Ok(pad::bordered(n, v, &ends, border)?.into())
}

pub(super) fn pad_reflect(n: &mut NodeContext) -> Result<Value, Reason> {
    bordered(n, Border::Reflect)
}

pub(super) fn pad_replicate(n: &mut NodeContext) -> Result<Value, Reason> {
    bordered(n, Border::Edge)
}

/// Samples of data at places of a grid, whose last dimension has the innermost place first.
pub(super) fn grid_sample(n: &mut NodeContext) -> Result<Value, Reason> {
    let (data, grid) = (n.tensor("input")?, n.tensor("grid")?);
    let centers = n.flag("align_corners", false)?;
    let by = match n.int("interpolation_mode", 0)? {
        0 => Interpolation::Linear,
        1 => Interpolation::Nearest,
        2 => Interpolation::Cubic(-0.75),
        other => return Err(format!("interpolation_mode {other} is not known").into()),
    };
    let outside = match n.int("padding_mode", 0)? {
        0 => Outside::Zeros,
        1 => Outside::Border,
        2 => Outside::Reflection { centers },
        other => return Err(format!("padding_mode {other} is not known").into()),
    };
    Ok(sample::on_grid(n, data, grid, by, outside, centers)?.into())
}

pub(super) fn affine_grid(n: &mut NodeContext) -> Result<Value, Reason> {
    let maps = n.tensor("theta")?;
    let size = n.ints("size")?.unwrap_or_default();
    let size = size.iter().map(|&d| usize::try_from(d)).collect::<Result<Vec<_>, _>>();
    let size = size.ok().filter(|size| size.len() > 2).ok_or("its size must be that of images with channels")?;
    let centers = n.flag("align_corners", false)?;
    Ok(sample::affine_grid(n, maps, &size[2..], centers)?.into())
}

/// The window of im2col and col2im.
fn sliding(n: &mut NodeContext) -> Result<Sliding, Reason> {
    let (kernel, pads) = (n.sizes::<2>("kernel_size", 1)?, n.sizes::<2>("padding", 0)?);
    let (strides, dilations) = (n.sizes::<2>("stride", 1)?, n.sizes::<2>("dilation", 1)?);
    check_steps(&[strides, dilations].concat())?;
    let padding = Padding::Given([pads[0], pads[1], pads[0], pads[1]]);
    Ok(Sliding { kernel, strides, dilations, padding, round_up: false })
}

/// The windows of images as columns, `[N, C * kernel, windows]`.
pub(super) fn image_to_columns(n: &mut NodeContext) -> Result<Value, Reason> {
    let by = sliding(n)?;
    let v = n.tensor("self")?;
    let (v, is_single) = with_batch(n, v, 4)?;
    let shape = n.shape(v)?;
    let &[images, channels, h, w] = shape.as_slice() else { return Err("its data must be images".into()) };
    let Padding::Given(pads) = by.padding else { return Err("it has no padding".into()) };
    let mut out = [0; 2];
    for (i, size) in [h, w].into_iter().enumerate() {
        let found = window::count(size, [pads[i], pads[i + 2]], by.kernel[i], by.strides[i], by.dilations[i]);
        out[i] = found.ok_or("its blocks are larger than its image")?;
    }
    let p = pads.map(|pad| pad as i64);
    let padded = pad::constant(n, "padded", v, &[(0, 0), (0, 0), (p[0], p[2]), (p[1], p[3])], 0.0)?;
    n.reserve_nodes(by.kernel[0] * by.kernel[1])?;
    let mut taps = Vec::new();
    for y in 0..by.kernel[0] {
        for x in 0..by.kernel[1] {
            let slice = Slice {
                starts: vec![0, 0, y * by.dilations[0], x * by.dilations[1]],
                sizes: vec![images, channels, out[0], out[1]],
                steps: vec![1, 1, by.strides[0] as i64, by.strides[1] as i64],
            };
            let tap = n.node("tap", slice, &[padded])?;
            taps.push(n.reshape("tap/row", tap, &[images, channels, 1, out[0] * out[1]])?);
        }
    }
    let v = beside(n, "taps", 2, &taps)?;
    let v = n.reshape("columns", v, &[images, channels * taps.len(), out[0] * out[1]])?;
    Ok(without_batch(n, v, is_single)?.into())
}

/// Folds columns of windows back into images.
pub(super) fn columns_to_image(n: &mut NodeContext) -> Result<Value, Reason> {
    let by = sliding(n)?;
    let image = n.sizes::<2>("output_size", 1)?;
    let v = n.tensor("self")?;
    let (v, is_single) = with_batch(n, v, 3)?;
    let v = window::images_of_columns(n, v, image, by)?;
    Ok(without_batch(n, v, is_single)?.into())
}
