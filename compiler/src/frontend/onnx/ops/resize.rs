//! Resize and Upsample, one dimension at a time: nearest elements by `gather`, the other modes by `resample`.
//!
//! Sizes and coordinates are computed in single precision and in ONNX Runtime's order: if a coordinate is on a
//! boundary, its last bit decides which element is read.

use crate::frontend::onnx::node::{NodeContext, Reason};
use crate::graph::op::{BinaryKind, Gather, Resample, Select};
use crate::graph::{DType, Tensor, TensorType, ValueId};

/// Maximum size of a dimension.
const MOST: usize = 1 << 20;

/// Rounding of nearest elements before set 11, which had no attribute for it: down, or up if a dimension shrinks.
const OUTWARD: &str = "outward";

/// How a dimension is resized.
struct Plan {
    mode: String,
    coordinates: String,
    nearest: String,
    cubic: f64,
    exclude_outside: bool,
    antialias: bool,
    extrapolation: f32,
}

/// A dimension's sizes, its scale, and its region for `tf_crop_and_resize`.
struct ResizedDimension {
    from: usize,
    to: usize,
    scale: f32,
    region: (f32, f32),
}

pub(super) fn resize(n: &mut NodeContext) -> Result<(), Reason> {
    let word = |n: &NodeContext, name: &str, default: &str| n.word(name).unwrap_or_else(|| default.into());
    let old = n.opset() < 11;
    let plan = Plan {
        mode: word(n, "mode", "nearest"),
        coordinates: word(n, "coordinate_transformation_mode", if old { "asymmetric" } else { "half_pixel" }),
        nearest: word(n, "nearest_mode", if old { OUTWARD } else { "round_prefer_floor" }),
        cubic: n.float("cubic_coeff_a").unwrap_or(-0.75).into(),
        exclude_outside: n.int("exclude_outside").unwrap_or(0) != 0,
        antialias: n.int("antialias").unwrap_or(0) != 0,
        extrapolation: n.float("extrapolation_value").unwrap_or(0.0),
    };
    let nearest = plan.mode == "nearest";
    let data = if nearest { n.input(0)? } else { n.plain(0)? };
    let dims = dims(n, data, old, &plan)?;
    let v = resized(n, data, &plan, &dims)?;
    n.output_like(v, data)
}

/// The data with each dimension resized.
fn resized(n: &mut NodeContext, data: ValueId, plan: &Plan, dims: &[ResizedDimension]) -> Result<ValueId, Reason> {
    let (nearest, dtype) = (plan.mode == "nearest", n.ty(data).dtype);
    let mut v = data;
    if !nearest {
        v = n.cast("float", v, DType::F32)?;
    }
    let crop = plan.coordinates == "tf_crop_and_resize";
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
        let places: Vec<f32> = (0..dim.to).map(|o| place(plan, dim, o)).collect::<Result<_, _>>()?;
        if let Some(o) = places.iter().position(|x| x.is_nan()) {
            let far = format!("element {o} of dimension {axis} would be read at {}", places[o]);
            return Err(format!("its scale or its roi is not supported: {far}").into());
        }
        if nearest {
            n.room(&TensorType::new(DType::I64, &[dim.to]))?;
            let index = places.iter().map(|&x| round(plan, dim, x).map(|i| i.clamp(0, dim.from as i64 - 1)));
            let index = n.made("index", Tensor::vector(index.collect::<Result<Vec<i64>, _>>()?));
            v = n.node(&format!("axis{axis}"), Gather { axis }, &[v, index])?;
        } else {
            let shape = [dim.to, tap_count(plan, dim)?];
            n.room(&TensorType::new(DType::I32, &shape))?;
            n.room(&TensorType::new(DType::F32, &shape))?;
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
        let value = if n.unsigned(data) { plan.extrapolation - 128.0 } else { plan.extrapolation };
        let value = n.scalar("extrapolation", value);
        let value = n.cast("extrapolation", value, n.ty(v).dtype)?;
        v = n.node("inside", Select {}, &[o, value, v])?;
    }
    n.cast("", v, dtype)
}

/// Upsample, the predecessor of Resize.
pub(super) fn upsample(n: &mut NodeContext) -> Result<(), Reason> {
    let mode = n.word("mode").unwrap_or_else(|| "nearest".into());
    let mode = if mode == "bilinear" { "linear".into() } else { mode };
    let data = n.plain(0)?;
    let scales: Vec<f32> = match n.list("scales") {
        Some(list) => list.to_vec(),
        None if n.opset() >= 9 => n.floats(1)?,
        None => {
            let get = |name: &str| n.float(name).ok_or_else(|| Reason(format!("it has no `{name}`")));
            vec![1.0, 1.0, get("height_scale")?, get("width_scale")?]
        }
    };
    let plan = Plan {
        mode,
        coordinates: "asymmetric".into(),
        nearest: OUTWARD.into(),
        cubic: -0.75,
        exclude_outside: false,
        antialias: false,
        extrapolation: 0.0,
    };
    let shape = n.shape(data)?;
    if scales.len() != shape.len() {
        return Err(format!("its scales must have {} values, found {}", shape.len(), scales.len()).into());
    }
    let dim = |(&from, &scale): (&usize, &f32)| {
        Ok(ResizedDimension { from, to: scaled(from, scale)?, scale, region: (0.0, 1.0) })
    };
    let dims = shape.iter().zip(&scales).map(dim).collect::<Result<Vec<_>, Reason>>()?;
    let v = resized(n, data, &plan, &dims)?;
    n.output(v)
}

fn scaled(from: usize, scale: f32) -> Result<usize, Reason> {
    let to = (from as f32 * scale).floor();
    if !(scale > 0.0 && to >= 1.0 && to <= MOST as f32) || from == 0 {
        return Err(format!("its scale {scale} of {from} elements is not supported").into());
    }
    Ok(to as usize)
}

fn dims(n: &NodeContext, data: ValueId, old: bool, plan: &Plan) -> Result<Vec<ResizedDimension>, Reason> {
    let shape = n.shape(data)?;
    let rank = shape.len();
    let (region, scales, sizes) = if old { (9, 1, 9) } else { (1, 2, 3) };
    let axes = match n.ints("axes") {
        Some(list) => list.iter().map(|&a| n.axis(a, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).collect(),
    };
    let mut dims: Vec<ResizedDimension> =
        shape.iter().map(|&s| ResizedDimension { from: s, to: s, scale: 1.0, region: (0.0, 1.0) }).collect();
    let wrong = |what: &str, found: usize| Reason(format!("its {what} must have {} values, found {found}", axes.len()));
    let policy = n.word("keep_aspect_ratio_policy");
    // Only a crop has a region.
    n.has_input(region);
    let sizes = if n.has_input(sizes) { n.integers(sizes)? } else { Vec::new() };
    let scales = if n.has_input(scales) { n.floats(scales)? } else { Vec::new() };
    if !sizes.is_empty() {
        if sizes.len() != axes.len() {
            return Err(wrong("sizes", sizes.len()));
        }
        let exact = |i: usize| sizes[i] as f32 / shape[axes[i]].max(1) as f32;
        let all = (0..axes.len()).map(exact);
        let one = match policy.as_deref() {
            None | Some("stretch") => None,
            Some("not_larger") => Some(all.fold(f32::INFINITY, f32::min)),
            Some("not_smaller") => Some(all.fold(0.0, f32::max)),
            Some(p) => {
                let known = "use stretch, not_larger or not_smaller";
                return Err(format!("unknown keep_aspect_ratio_policy `{p}`; {known}").into());
            }
        };
        for (i, &a) in axes.iter().enumerate() {
            dims[a].scale = one.unwrap_or_else(|| exact(i));
            let size = one.map_or(sizes[i], |s| (s * shape[a] as f32).round() as i64);
            let to = usize::try_from(size).ok().filter(|&s| s <= MOST);
            dims[a].to =
                to.ok_or_else(|| Reason(format!("its size {size} is not supported; the maximum is {MOST}")))?;
        }
    } else {
        if scales.len() != axes.len() {
            return Err(wrong("scales", scales.len()));
        }
        for (i, &a) in axes.iter().enumerate() {
            (dims[a].to, dims[a].scale) = (scaled(shape[a], scales[i])?, scales[i]);
        }
    }
    if plan.coordinates == "tf_crop_and_resize" {
        let roi = n.floats(region)?;
        if roi.len() != 2 * axes.len() {
            return Err(format!("its roi must have {} values, found {}", 2 * axes.len(), roi.len()).into());
        }
        for (i, &a) in axes.iter().enumerate() {
            dims[a].region = (roi[i], roi[i + axes.len()]);
        }
    }
    Ok(dims)
}

/// The coordinate in the data of an element of the result.
fn place(plan: &Plan, dim: &ResizedDimension, o: usize) -> Result<f32, Reason> {
    let (o, from, to, scale) = (o as f32, dim.from as f32, dim.to as f32, dim.scale);
    Ok(match plan.coordinates.as_str() {
        "half_pixel" => (o + 0.5) / scale - 0.5,
        "half_pixel_symmetric" => {
            let adjustment = to / (scale * from);
            let offset = from / 2.0 * (1.0 - adjustment);
            (f64::from(offset) + (f64::from(o) + 0.5) / f64::from(scale) - 0.5) as f32
        }
        "pytorch_half_pixel" if dim.to > 1 => (o + 0.5) / scale - 0.5,
        "pytorch_half_pixel" => 0.0,
        "align_corners" if dim.to > 1 => o * (from - 1.0) / (to - 1.0),
        "align_corners" => 0.0,
        "asymmetric" => o / scale,
        "tf_half_pixel_for_nn" => (o + 0.5) / scale,
        "tf_crop_and_resize" => {
            let (start, end) = dim.region;
            if dim.to > 1 {
                start * (from - 1.0) + o * (end - start) * (from - 1.0) / (to - 1.0)
            } else {
                0.5 * (start + end) * (from - 1.0)
            }
        }
        other => {
            let known = "half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric, \
                         tf_half_pixel_for_nn or tf_crop_and_resize";
            return Err(format!("unknown coordinate_transformation_mode `{other}`; use {known}").into());
        }
    })
}

/// True if a coordinate is halfway between two elements, within ONNX Runtime's tolerance.
fn lies_half_way(x: f32) -> bool {
    (x - x.floor() - 0.5).abs() < 1e-6
}

fn round(plan: &Plan, dim: &ResizedDimension, x: f32) -> Result<i64, Reason> {
    Ok(match plan.nearest.as_str() {
        "round_prefer_floor" if lies_half_way(x) => x.floor() as i64,
        "round_prefer_ceil" if lies_half_way(x) => x.ceil() as i64,
        "round_prefer_floor" | "round_prefer_ceil" => x.round() as i64,
        "floor" => x.floor() as i64,
        "ceil" => x.ceil() as i64,
        OUTWARD => {
            if dim.scale < 1.0 {
                x.ceil() as i64
            } else {
                x.floor() as i64
            }
        }
        other => {
            let known = "round_prefer_floor, round_prefer_ceil, floor or ceil";
            return Err(format!("unknown nearest_mode `{other}`; use {known}").into());
        }
    })
}

/// Width of the filter. One as wide as a step of the result removes patterns that the result cannot show.
fn filter_width(plan: &Plan, dim: &ResizedDimension) -> f64 {
    if plan.antialias && dim.scale < 1.0 { 1.0 / f64::from(dim.scale) } else { 1.0 }
}

/// Number of taps of each element.
fn tap_count(plan: &Plan, dim: &ResizedDimension) -> Result<usize, Reason> {
    let reach = match plan.mode.as_str() {
        "linear" => 1.0,
        "cubic" => 2.0,
        other => return Err(format!("unknown mode `{other}`; use nearest, linear or cubic").into()),
    };
    let side = (reach * filter_width(plan, dim)).ceil() as usize;
    let count = side.checked_mul(2).filter(|c| c.checked_mul(dim.to).is_some_and(|n| n <= 1 << 24));
    count.ok_or_else(|| Reason(format!("its scale {} is not supported", dim.scale)))
}

/// Indices and weights of a dimension, `[to, count]` each.
fn taps(plan: &Plan, dim: &ResizedDimension, places: &[f32], count: usize) -> Result<(Tensor, Tensor), Reason> {
    let a = plan.cubic;
    let kernel = |x: f64| {
        let x = x.abs();
        if plan.mode == "linear" {
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
        if plan.mode == "linear" && width == 1.0 {
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
