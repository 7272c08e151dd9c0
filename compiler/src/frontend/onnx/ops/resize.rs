//! Resize and Upsample.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::resize::{Coordinates, MOST, Mode, Plan, ResizedDimension, Rounding, resized};
use crate::graph::ValueId;

/// The one of `known` with this name.
fn named<T: Copy>(attribute: &str, name: &str, known: &[(&str, T)]) -> Result<T, Reason> {
    known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(known, _)| *known).collect();
        let (last, others) = names.split_last().map_or(("", &[][..]), |(last, others)| (last, others));
        Reason(format!("unknown {attribute} `{name}`; use {} or {last}", others.join(", ")))
    })
}

/// The attribute `mode`. `rounding` is that of nearest elements, `cubic` the coefficient of a cubic filter.
fn mode(name: &str, rounding: Rounding, cubic: f64) -> Result<Mode, Reason> {
    let known = [("nearest", Mode::Nearest(rounding)), ("linear", Mode::Linear), ("cubic", Mode::Cubic(cubic))];
    named("mode", name, &known)
}

fn coordinates(name: &str) -> Result<Coordinates, Reason> {
    let known = [
        ("half_pixel", Coordinates::HalfPixel),
        ("half_pixel_symmetric", Coordinates::HalfPixelSymmetric),
        ("pytorch_half_pixel", Coordinates::PytorchHalfPixel),
        ("align_corners", Coordinates::AlignCorners),
        ("asymmetric", Coordinates::Asymmetric),
        ("tf_half_pixel_for_nn", Coordinates::TfHalfPixelForNearest),
        ("tf_crop_and_resize", Coordinates::Crop),
    ];
    named("coordinate_transformation_mode", name, &known)
}

fn rounding(name: &str) -> Result<Rounding, Reason> {
    let known = [
        ("round_prefer_floor", Rounding::HalfDown),
        ("round_prefer_ceil", Rounding::HalfUp),
        ("floor", Rounding::Floor),
        ("ceil", Rounding::Ceil),
    ];
    named("nearest_mode", name, &known)
}

pub(super) fn resize(n: &mut NodeContext) -> Result<(), Reason> {
    let word = |n: &NodeContext, name: &str, default: &str| n.word(name).unwrap_or_else(|| default.into());
    let old = n.opset() < 11;
    // Sets before 11 had no attributes for rounding and coordinates.
    let nearest = match n.word("nearest_mode") {
        Some(name) => rounding(&name)?,
        None if old => Rounding::Outward,
        None => Rounding::HalfDown,
    };
    let mode = mode(&word(n, "mode", "nearest"), nearest, n.float("cubic_coeff_a").unwrap_or(-0.75).into())?;
    let default = if old { "asymmetric" } else { "half_pixel" };
    let mut plan = Plan {
        mode,
        coordinates: coordinates(&word(n, "coordinate_transformation_mode", default))?,
        exclude_outside: n.int("exclude_outside").unwrap_or(0) != 0,
        antialias: n.int("antialias").unwrap_or(0) != 0,
        extrapolation: n.float("extrapolation_value").unwrap_or(0.0),
    };
    let data = if matches!(mode, Mode::Nearest(_)) { n.input(0)? } else { n.plain(0)? };
    if n.unsigned(data) {
        plan.extrapolation -= 128.0;
    }
    let dims = dims(n, data, old, &plan)?;
    let v = resized(n, data, &plan, &dims)?;
    n.output_like(v, data)
}

/// Upsample, the predecessor of Resize.
pub(super) fn upsample(n: &mut NodeContext) -> Result<(), Reason> {
    let name = n.word("mode").unwrap_or_else(|| "nearest".into());
    let name = if name == "bilinear" { "linear".into() } else { name };
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
        mode: mode(&name, Rounding::Outward, -0.75)?,
        coordinates: Coordinates::Asymmetric,
        exclude_outside: false,
        antialias: false,
        extrapolation: 0.0,
    };
    let shape = n.shape(data)?;
    if scales.len() != shape.len() {
        return Err(format!("its scales must have {} values, found {}", shape.len(), scales.len()).into());
    }
    let dims = shape.iter().zip(&scales).map(|(&from, &scale)| ResizedDimension::scaled(from, scale));
    let dims = dims.collect::<Result<Vec<_>, _>>()?;
    let v = resized(n, data, &plan, &dims)?;
    n.output(v)
}

fn dims(n: &NodeContext, data: ValueId, old: bool, plan: &Plan) -> Result<Vec<ResizedDimension>, Reason> {
    let shape = n.shape(data)?;
    let rank = shape.len();
    let (region, scales, sizes) = if old { (9, 1, 9) } else { (1, 2, 3) };
    let axes = match n.ints("axes") {
        Some(list) => list.iter().map(|&a| n.axis(a, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).collect(),
    };
    let mut dims: Vec<ResizedDimension> = shape.iter().map(|&s| ResizedDimension::same(s)).collect();
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
            dims[a] = ResizedDimension::scaled(shape[a], scales[i])?;
        }
    }
    if plan.coordinates == Coordinates::Crop {
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
