//! GridSample, AffineGrid and RoiAlign.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::sample::{self, Interpolation, Outside, Parts};

pub(super) fn grid_sample(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, grid) = (n.plain(0)?, n.plain(1)?);
    let centers = n.int("align_corners").unwrap_or(0) != 0;
    let by = match n.word("mode").as_deref() {
        None | Some("linear" | "bilinear") => Interpolation::Linear,
        Some("nearest") => Interpolation::Nearest,
        Some("cubic" | "bicubic") => Interpolation::Cubic(-0.75),
        Some(other) => return Err(format!("unknown mode `{other}`; use linear, nearest or cubic").into()),
    };
    let outside = match n.word("padding_mode").as_deref() {
        None | Some("zeros") => Outside::Zeros,
        Some("border") => Outside::Border,
        Some("reflection") => Outside::Reflection { centers },
        Some(other) => return Err(format!("unknown padding_mode `{other}`; use zeros, border or reflection").into()),
    };
    let v = sample::on_grid(n, data, grid, by, outside, centers)?;
    n.output(v)
}

pub(super) fn affine_grid(n: &mut NodeContext) -> Result<(), Reason> {
    let maps = n.plain(0)?;
    let size = n.integers(1)?.iter().map(|&d| usize::try_from(d)).collect::<Result<Vec<_>, _>>();
    let size = size.ok().filter(|size| size.len() > 2).ok_or("its size must be that of images with channels")?;
    let centers = n.int("align_corners").unwrap_or(0) != 0;
    let v = sample::affine_grid(n, maps, &size[2..], centers)?;
    n.output(v)
}

pub(super) fn roi_align(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, parts, images) = (n.plain(0)?, n.plain(1)?, n.plain(2)?);
    let positive = |name: &str, default: i64| {
        let given = n.int(name).unwrap_or(default);
        let number = usize::try_from(given).ok().filter(|x| (1..1 << 16).contains(x));
        number.ok_or_else(|| Reason(format!("its attribute `{name}` of {given} is not supported; it must be above 0")))
    };
    let out = [positive("output_height", 1)?, positive("output_width", 1)?];
    let samples = positive("sampling_ratio", 0)?;
    let mode = n.word("coordinate_transformation_mode");
    let half_pixel = match mode.as_deref() {
        None => n.opset() >= 16,
        Some("half_pixel") => true,
        Some("output_half_pixel") => false,
        Some(other) => return Err(format!("unknown coordinate_transformation_mode `{other}`").into()),
    };
    let greatest = match n.word("mode").as_deref() {
        None | Some("avg") => false,
        Some("max") => true,
        Some(other) => return Err(format!("unknown mode `{other}`; use avg or max").into()),
    };
    let scale = n.float("spatial_scale").unwrap_or(1.0);
    let v = sample::parts(n, data, Parts { parts, images, out, samples, scale, half_pixel, greatest })?;
    n.output(v)
}
