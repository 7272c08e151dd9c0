//! Resizing, one dimension at a time: nearest elements by `gather`, the other modes by `resample`.
//!
//! Sizes and coordinates are computed in single precision and in ONNX Runtime's order: if a coordinate is on a
//! boundary, its last bit decides which element is read.

use super::SemanticBuilder;
use crate::frontend::reason::Reason;
use crate::graph::op::{BinaryKind, Gather, Resample, Select};
use crate::graph::{DType, Tensor, TensorType, ValueId};

/// Maximum size of a dimension.
pub const MOST: usize = 1 << 20;

/// Which elements of the data an element of the result is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    Nearest(Rounding),
    Linear,
    /// A cubic filter with this coefficient.
    Cubic(f64),
}

/// Which element is the nearest to a coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    HalfDown,
    HalfUp,
    Floor,
    Ceil,
    /// Down, or up if the dimension shrinks.
    Outward,
}

/// Which coordinate in the data an element of the result has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coordinates {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    /// The place times a step, which the dimension has as its scale.
    Steps,
    TfHalfPixelForNearest,
    /// Within the dimension's region; elements outside the data have the value of extrapolation.
    Crop,
}

/// How all dimensions are resized.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub mode: Mode,
    pub coordinates: Coordinates,
    /// Whether taps outside the data do not count.
    pub exclude_outside: bool,
    /// Whether the filter is as wide as a step of the result.
    pub antialias: bool,
    /// A value of the data as they are stored.
    pub extrapolation: f32,
}

/// A dimension's sizes, its scale, and its region for [`Coordinates::Crop`].
#[derive(Debug, Clone, Copy)]
pub struct ResizedDimension {
    pub from: usize,
    pub to: usize,
    pub scale: f32,
    pub region: (f32, f32),
}

impl ResizedDimension {
    /// A dimension as it is.
    pub fn same(size: usize) -> ResizedDimension {
        ResizedDimension { from: size, to: size, scale: 1.0, region: (0.0, 1.0) }
    }

    /// A dimension whose size follows from a scale.
    pub fn scaled(from: usize, scale: f32) -> Result<ResizedDimension, Reason> {
        let to = (from as f32 * scale).floor();
        if !(scale > 0.0 && to >= 1.0 && to <= MOST as f32) || from == 0 {
            return Err(format!("its scale {scale} of {from} elements is not supported").into());
        }
        Ok(ResizedDimension { to: to as usize, scale, ..ResizedDimension::same(from) })
    }
}

/// The data with each dimension resized.
pub fn resized(
    n: &mut SemanticBuilder,
    data: ValueId,
    plan: &Plan,
    dims: &[ResizedDimension],
) -> Result<ValueId, Reason> {
    let (nearest, dtype) = (matches!(plan.mode, Mode::Nearest(_)), n.ty(data).dtype);
    let mut v = data;
    if !nearest {
        v = n.float("float", v)?;
    }
    let crop = plan.coordinates == Coordinates::Crop;
    // ONNX Runtime copies data whose sizes do not change, whatever the scales say.
    let copied = dims.iter().all(|d| d.from == d.to);
    let mut outside: Option<ValueId> = None;
    for (axis, dim) in dims.iter().enumerate() {
        if !crop && dim.from == dim.to && (copied || dim.scale == 1.0 || plan.antialias) {
            continue;
        }
        if dim.from == 0 || dim.to == 0 {
            return Err("its data and its result must not be empty".into());
        }
        let places: Vec<f32> = (0..dim.to).map(|o| place(plan, dim, o)).collect();
        if let Some(o) = places.iter().position(|x| x.is_nan()) {
            let far = format!("element {o} of dimension {axis} would be read at {}", places[o]);
            return Err(format!("its scale or its roi is not supported: {far}").into());
        }
        if let Mode::Nearest(rounding) = plan.mode {
            n.reserve(&TensorType::new(DType::I64, &[dim.to]))?;
            let index = places.iter().map(|&x| round(rounding, dim, x).clamp(0, dim.from as i64 - 1));
            let index = n.made("index", Tensor::vector(index.collect::<Vec<i64>>()));
            v = n.node(&format!("axis{axis}"), Gather { axis }, &[v, index])?;
        } else {
            let shape = [dim.to, tap_count(plan, dim)?];
            n.reserve(&TensorType::new(DType::I32, &shape))?;
            n.reserve(&TensorType::new(DType::F32, &shape))?;
            let (index, weight) = taps(plan, dim, &places, shape[1])?;
            let (index, weight) = (n.made("index", index), n.made("weight", weight));
            v = n.node(&format!("axis{axis}"), Resample { axis }, &[v, index, weight])?;
        }
        if crop {
            let mut shape = vec![1; dims.len()];
            shape[axis] = dim.to;
            let out = |i: usize| places[i] < 0.0 || places[i] > (dim.from - 1) as f32;
            let mask = n.table("outside", &shape, out)?;
            outside = Some(match outside {
                Some(o) => n.binary("outside", BinaryKind::Or, o, mask)?,
                None => mask,
            });
        }
    }
    if let Some(o) = outside {
        let value = n.scalar("extrapolation", plan.extrapolation);
        let dtype = n.ty(v).dtype;
        let value = n.cast("extrapolation", value, dtype)?;
        v = n.node("inside", Select {}, &[o, value, v])?;
    }
    n.cast("", v, dtype)
}

/// The coordinate in the data of an element of the result.
fn place(plan: &Plan, dim: &ResizedDimension, o: usize) -> f32 {
    let (o, from, to, scale) = (o as f32, dim.from as f32, dim.to as f32, dim.scale);
    match plan.coordinates {
        Coordinates::HalfPixel => (o + 0.5) / scale - 0.5,
        Coordinates::HalfPixelSymmetric => {
            let adjustment = to / (scale * from);
            let offset = from / 2.0 * (1.0 - adjustment);
            (f64::from(offset) + (f64::from(o) + 0.5) / f64::from(scale) - 0.5) as f32
        }
        Coordinates::PytorchHalfPixel if dim.to > 1 => (o + 0.5) / scale - 0.5,
        Coordinates::PytorchHalfPixel => 0.0,
        Coordinates::AlignCorners if dim.to > 1 => o * (from - 1.0) / (to - 1.0),
        Coordinates::AlignCorners => 0.0,
        Coordinates::Asymmetric => o / scale,
        Coordinates::Steps => o * scale,
        Coordinates::TfHalfPixelForNearest => (o + 0.5) / scale,
        Coordinates::Crop => {
            let (start, end) = dim.region;
            if dim.to > 1 {
                start * (from - 1.0) + o * (end - start) * (from - 1.0) / (to - 1.0)
            } else {
                0.5 * (start + end) * (from - 1.0)
            }
        }
    }
}

/// True if a coordinate is halfway between two elements, within ONNX Runtime's tolerance.
fn lies_half_way(x: f32) -> bool {
    (x - x.floor() - 0.5).abs() < 1e-6
}

fn round(rounding: Rounding, dim: &ResizedDimension, x: f32) -> i64 {
    match rounding {
        Rounding::HalfDown if lies_half_way(x) => x.floor() as i64,
        Rounding::HalfUp if lies_half_way(x) => x.ceil() as i64,
        Rounding::HalfDown | Rounding::HalfUp => x.round() as i64,
        Rounding::Floor => x.floor() as i64,
        Rounding::Ceil => x.ceil() as i64,
        Rounding::Outward => {
            if dim.scale < 1.0 {
                x.ceil() as i64
            } else {
                x.floor() as i64
            }
        }
    }
}

/// Width of the filter. One as wide as a step of the result removes patterns that the result cannot show.
fn filter_width(plan: &Plan, dim: &ResizedDimension) -> f64 {
    if plan.antialias && dim.scale < 1.0 { 1.0 / f64::from(dim.scale) } else { 1.0 }
}

/// Number of taps of each element.
fn tap_count(plan: &Plan, dim: &ResizedDimension) -> Result<usize, Reason> {
    let reach = if matches!(plan.mode, Mode::Cubic(_)) { 2.0 } else { 1.0 };
    let side = (reach * filter_width(plan, dim)).ceil() as usize;
    let count = side.checked_mul(2).filter(|c| c.checked_mul(dim.to).is_some_and(|n| n <= 1 << 24));
    count.ok_or_else(|| Reason(format!("its scale {} is not supported", dim.scale)))
}

/// Indices and weights of a dimension, `[to, count]` each.
fn taps(plan: &Plan, dim: &ResizedDimension, places: &[f32], count: usize) -> Result<(Tensor, Tensor), Reason> {
    let (linear, a) = match plan.mode {
        Mode::Cubic(a) => (false, a),
        _ => (true, 0.0),
    };
    let kernel = |x: f64| {
        let x = x.abs();
        if linear {
            (1.0 - x).max(0.0)
        } else if x <= 1.0 {
            ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
        } else if x < 2.0 {
            ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
        } else {
            0.0
        }
    };
    let width = filter_width(plan, dim);
    let (mut index, mut weight) = (Vec::new(), Vec::new());
    for &x in places {
        if linear && width == 1.0 {
            for (i, w) in neighbors(dim, x) {
                index.push(i);
                weight.push(w);
            }
            continue;
        }
        // Beyond this distance outside, every tap reads the element at the edge.
        let x = f64::from(x).clamp(-(count as f64), (dim.from + count) as f64);
        let first = x.floor() as i64 - count as i64 / 2 + 1;
        let row: Vec<(i64, f64)> = (first..first + count as i64).map(|i| (i, kernel((x - i as f64) / width))).collect();
        let inside = |i: i64| (0..dim.from as i64).contains(&i);
        let outside_counts = !plan.exclude_outside;
        let kept = |&(i, w): &(i64, f64)| if outside_counts || inside(i) { w } else { 0.0 };
        let sum: f64 = row.iter().map(kept).sum();
        for tap in &row {
            index.push(tap.0.clamp(0, dim.from as i64 - 1) as i32);
            // If all taps are outside and do not count, all weights are 0.
            weight.push(if sum == 0.0 { 0.0 } else { (kept(tap) / sum) as f32 });
        }
    }
    let shape = [dim.to, count];
    let made = Tensor::new(&shape, index).zip(Tensor::new(&shape, weight));
    made.ok_or_else(|| "its result is too large".into())
}

/// The elements on both sides of a coordinate, clamped to the data, and their weights.
///
/// At the last element both are that element, with half the weight each: a weight of 0 would turn an infinity into NaN.
fn neighbors(dim: &ResizedDimension, x: f32) -> [(i32, f32); 2] {
    let last = dim.from as i32 - 1;
    let x = x.clamp(0.0, last as f32);
    let low = x as i32;
    if low == last {
        return [(low, 0.5), (low, 0.5)];
    }
    [(low, (low + 1) as f32 - x), (low + 1, x - low as f32)]
}
