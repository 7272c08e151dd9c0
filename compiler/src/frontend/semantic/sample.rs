//! Samples of images at places between the pixels, which are computed at run time.

use super::SemanticBuilder;
use crate::frontend::reason::Reason;
use crate::graph::op::{BinaryKind, Clip, Concat, Conv2d, Gather, Layout, ReduceKind, Select, Transpose, UnaryKind};
use crate::graph::{DType, Tensor, ValueId, strides_of};

/// How a sample follows from the pixels around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Interpolation {
    /// The nearest pixel; of two, the one with the even place.
    Nearest,
    Linear,
    /// Cubic convolution with this coefficient.
    Cubic(f32),
}

/// What is outside of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    Zeros,
    /// The nearest pixel.
    Border,
    /// The image mirrored: at the centers of its outermost pixels if `centers`, else at their edges.
    Reflection {
        centers: bool,
    },
}

/// A pixel that a sample is made of, along one dimension: its place (i64), and its weight.
type Tap = (ValueId, ValueId);

/// The images of `[N, C, S…]` as rows of channels, `[N * S…, C]`.
fn rows(n: &mut SemanticBuilder, data: ValueId) -> Result<(ValueId, Vec<usize>), Reason> {
    let shape = n.shape(data)?;
    if shape.len() < 3 || shape.contains(&0) {
        return Err(format!("its data must be images with channels, found {}", n.ty(data)).into());
    }
    let mut perm: Vec<usize> = (0..shape.len()).filter(|axis| *axis != 1).collect();
    perm.push(1);
    let last = n.node("channels_last", Transpose { perm }, &[data])?;
    let rows: usize = shape.iter().enumerate().filter(|(axis, _)| *axis != 1).map(|(_, size)| size).product();
    let rows = n.reshape("rows", last, &[rows, shape[1]])?;
    Ok((rows, shape))
}

/// The pixels of each combination of taps, times their weights: each `[P…, C]`. `base` is the first row of each sample's
/// image.
fn weighted(
    n: &mut SemanticBuilder,
    rows: ValueId,
    base: ValueId,
    taps: &[Vec<Tap>],
    sizes: &[usize],
) -> Result<Vec<ValueId>, Reason> {
    let mut all: Vec<(ValueId, Option<ValueId>)> = vec![(base, None)];
    for (taps, stride) in taps.iter().zip(strides_of(sizes)) {
        let stride = n.made("stride", Tensor::scalar(stride as i64));
        let mut further = Vec::with_capacity(all.len() * taps.len());
        for &(row, weight) in &all {
            for &(place, own) in taps {
                let step = n.binary("step", BinaryKind::Mul, place, stride)?;
                let row = n.add("row", row, step)?;
                let weight = match weight {
                    Some(weight) => n.binary("weight", BinaryKind::Mul, weight, own)?,
                    None => own,
                };
                further.push((row, Some(weight)));
            }
        }
        all = further;
    }
    let mut pixels = Vec::with_capacity(all.len());
    for (row, weight) in all {
        let pixel = n.node("pixel", Gather { axis: 0 }, &[rows, row])?;
        let Some(weight) = weight else { continue };
        let shape = [n.shape(weight)?.as_slice(), &[1]].concat();
        let weight = n.reshape("weight/column", weight, &shape)?;
        pixels.push(n.binary("weighted", BinaryKind::Mul, pixel, weight)?);
    }
    Ok(pixels)
}

fn sum(n: &mut SemanticBuilder, values: &[ValueId], kind: Option<BinaryKind>) -> Result<ValueId, Reason> {
    let mut values = values.iter().copied();
    let first = values.next().ok_or("it has no samples")?;
    values.try_fold(first, |all, value| match kind {
        Some(kind) => n.binary("joined", kind, all, value),
        None => n.add("sum", all, value),
    })
}

/// A place mirrored into the image.
fn mirrored(n: &mut SemanticBuilder, place: ValueId, size: usize, centers: bool) -> Result<ValueId, Reason> {
    let (low, range) = if centers { (0.0, size as f32 - 1.0) } else { (-0.5, size as f32) };
    if range == 0.0 {
        let zero = n.scalar("zero", 0.0);
        return n.binary("only", BinaryKind::Mul, place, zero);
    }
    let [low, range, twice] = [low, range, 2.0 * range].map(|x| n.scalar("range", x));
    let from = n.binary("from", BinaryKind::Sub, place, low)?;
    let from = n.unary("distance", UnaryKind::Abs, from)?;
    let count = n.binary("count", BinaryKind::Div, from, twice)?;
    let count = n.unary("count/whole", UnaryKind::Floor, count)?;
    let whole = n.binary("whole", BinaryKind::Mul, count, twice)?;
    let rest = n.binary("rest", BinaryKind::Sub, from, whole)?;
    let back = n.binary("back", BinaryKind::Sub, twice, rest)?;
    let is_back = n.binary("is_back", BinaryKind::Less, range, rest)?;
    let rest = n.node("mirrored", Select {}, &[is_back, back, rest])?;
    n.add("inside", rest, low)
}

/// A place moved into the image.
fn held(n: &mut SemanticBuilder, place: ValueId, size: usize) -> Result<ValueId, Reason> {
    n.node("held", Clip { lo: 0.0, hi: size as f32 - 1.0 }, &[place])
}

/// A pixel at a whole place, and its weight where it is outside.
fn tap(n: &mut SemanticBuilder, place: ValueId, weight: ValueId, size: usize, outside: Outside) -> Result<Tap, Reason> {
    let (place, weight) = match outside {
        Outside::Border => (place, weight),
        Outside::Reflection { centers } => (mirrored(n, place, size, centers)?, weight),
        Outside::Zeros => {
            let [zero, last] = [0.0, size as f32 - 1.0].map(|x| n.scalar("end", x));
            let from = n.binary("from_first", BinaryKind::LessEqual, zero, place)?;
            let to = n.binary("to_last", BinaryKind::LessEqual, place, last)?;
            let inside = n.binary("inside", BinaryKind::And, from, to)?;
            (place, n.node("weight/inside", Select {}, &[inside, weight, zero])?)
        }
    };
    let place = held(n, place, size)?;
    Ok((n.cast("place", place, DType::I64)?, weight))
}

/// The pixels along one dimension that samples at these places are made of.
fn taps(
    n: &mut SemanticBuilder,
    place: ValueId,
    size: usize,
    by: Interpolation,
    outside: Outside,
) -> Result<Vec<Tap>, Reason> {
    let place = if by == Interpolation::Nearest { n.unary("nearest", UnaryKind::Round, place)? } else { place };
    let place = match outside {
        Outside::Zeros => place,
        // The taps of a cubic sample are moved one by one, as in PyTorch and ONNX Runtime.
        Outside::Border if matches!(by, Interpolation::Cubic(_)) => place,
        Outside::Border => held(n, place, size)?,
        Outside::Reflection { centers } => mirrored(n, place, size, centers)?,
    };
    let one = n.scalar("one", 1.0);
    if by == Interpolation::Nearest {
        let shape = n.shape(place)?;
        let one = n.table("ones", &shape, |_| 1.0f32)?;
        return Ok(vec![tap(n, place, one, size, outside)?]);
    }
    let first = n.unary("first", UnaryKind::Floor, place)?;
    let fraction = n.binary("fraction", BinaryKind::Sub, place, first)?;
    let rest = n.binary("rest", BinaryKind::Sub, one, fraction)?;
    let weights = match by {
        Interpolation::Cubic(a) => {
            let [beyond, behind] = [n.add("beyond", fraction, one)?, n.add("behind", rest, one)?];
            vec![
                (-1.0, polynomial(n, beyond, [a, -5.0 * a, 8.0 * a, -4.0 * a])?),
                (0.0, polynomial(n, fraction, [a + 2.0, -(a + 3.0), 0.0, 1.0])?),
                (1.0, polynomial(n, rest, [a + 2.0, -(a + 3.0), 0.0, 1.0])?),
                (2.0, polynomial(n, behind, [a, -5.0 * a, 8.0 * a, -4.0 * a])?),
            ]
        }
        _ => vec![(0.0, rest), (1.0, fraction)],
    };
    let mut all = Vec::with_capacity(weights.len());
    for (offset, weight) in weights {
        let offset = n.scalar("offset", offset);
        let place = n.add("place", first, offset)?;
        all.push(tap(n, place, weight, size, outside)?);
    }
    Ok(all)
}

/// A polynomial of the third degree.
fn polynomial(n: &mut SemanticBuilder, x: ValueId, [a, b, c, d]: [f32; 4]) -> Result<ValueId, Reason> {
    let mut sum = n.scalar("coefficient", a);
    for coefficient in [b, c, d] {
        let coefficient = n.scalar("coefficient", coefficient);
        let product = n.binary("product", BinaryKind::Mul, sum, x)?;
        sum = n.add("polynomial", product, coefficient)?;
    }
    Ok(sum)
}

/// Samples of `[N, C, S…]` at places of pixels, one tensor `[N, P]` for each dimension of S: `[N, C, P]`.
pub fn sampled(
    n: &mut SemanticBuilder,
    data: ValueId,
    places: &[ValueId],
    by: Interpolation,
    outside: Outside,
) -> Result<ValueId, Reason> {
    let (rows, shape) = rows(n, data)?;
    let sizes = &shape[2..];
    let area: usize = sizes.iter().product();
    let base = n.table("base", &[shape[0], 1], |image| (image * area) as i64)?;
    let mut all = Vec::with_capacity(places.len());
    for (&place, &size) in places.iter().zip(sizes) {
        all.push(taps(n, place, size, by, outside)?);
    }
    let pixels = weighted(n, rows, base, &all, sizes)?;
    let sum = sum(n, &pixels, None)?;
    n.node("channels_first", Transpose { perm: vec![0, 2, 1] }, &[sum])
}

/// The data, `[N, C, ...]`, at the places of a grid, `[N, ..., dimensions]`, whose numbers are from -1 to 1 and have the
/// innermost dimension first. With `centers`, -1 and 1 are the centers of the outermost elements.
pub fn on_grid(
    n: &mut SemanticBuilder,
    data: ValueId,
    grid: ValueId,
    by: Interpolation,
    outside: Outside,
    centers: bool,
) -> Result<ValueId, Reason> {
    let (shape, places) = (n.shape(data)?, n.shape(grid)?);
    let Some((&d, outer)) = places
        .split_last()
        .filter(|(d, outer)| **d + 2 == shape.len() && outer.first() == shape.first() && !outer.is_empty())
    else {
        return Err(format!("its grid {} does not suit its data {}", n.ty(grid), n.ty(data)).into());
    };
    let count: usize = outer[1..].iter().product();
    let mut all = Vec::with_capacity(d);
    for (axis, &size) in shape[2..].iter().enumerate() {
        // The grid's numbers are in the order of the innermost dimension first.
        let place = super::movement::part(n, "place", grid, outer.len(), d - 1 - axis, 1)?;
        let place = n.reshape("place/rows", place, &[shape[0], count])?;
        all.push(in_pixels(n, place, size, centers)?);
    }
    let v = sampled(n, data, &all, by, outside)?;
    let out = [&shape[..2], &outer[1..]].concat();
    n.reshape("", v, &out)
}

/// Places of pixels from -1 to 1 over an image as numbers of pixels: -1 and 1 are the centers of the outermost pixels if
/// `centers`, else their edges.
pub fn in_pixels(n: &mut SemanticBuilder, v: ValueId, size: usize, centers: bool) -> Result<ValueId, Reason> {
    let size = size as f32;
    let (scale, offset) =
        if centers { ((size - 1.0) / 2.0, (size - 1.0) / 2.0) } else { (size / 2.0, (size - 1.0) / 2.0) };
    let (scale, offset) = (n.scalar("scale", scale), n.scalar("offset", offset));
    let scaled = n.binary("scaled", BinaryKind::Mul, v, scale)?;
    n.add("in_pixels", scaled, offset)
}

/// Parts of images that are resized to one size.
#[derive(Debug, Clone, Copy)]
pub struct Parts {
    /// `[R, 4]`: first and last column and row of each part.
    pub parts: ValueId,
    /// `[R]`, i64: the image of each part.
    pub images: ValueId,
    /// Height and width of the results.
    pub out: [usize; 2],
    /// Number of samples in each direction for a pixel of the results.
    pub samples: usize,
    /// Pixels of the image for one of the parts' numbers.
    pub scale: f32,
    /// Whether places are shifted by half a pixel.
    pub half_pixel: bool,
    /// Whether a pixel of the results is the greatest instead of the average.
    pub greatest: bool,
}

/// The parts of `[N, C, H, W]`, resized: `[R, C, h, w]` (Mask R-CNN's RoIAlign).
pub fn parts(n: &mut SemanticBuilder, data: ValueId, of: Parts) -> Result<ValueId, Reason> {
    let (rows, shape) = rows(n, data)?;
    let count = n.shape(of.parts)?;
    let (&[_, channels, h, w], &[count, 4]) = (shape.as_slice(), count.as_slice()) else {
        return Err("its data must have 4 dimensions, and its parts 4 numbers each".into());
    };
    let shift = n.scalar("shift", if of.half_pixel { -0.5 } else { 0.0 });
    let scale = n.scalar("scale", of.scale);
    let ends = n.binary("scaled", BinaryKind::Mul, of.parts, scale)?;
    let ends = n.add("shifted", ends, shift)?;
    let mut all = Vec::new();
    for (axis, size) in [(1, h), (0, w)] {
        let [first, last] = [axis, axis + 2].map(|at| super::movement::part(n, "end", ends, 1, at, 1));
        let (first, last) = (first?, last?);
        let mut length = n.binary("length", BinaryKind::Sub, last, first)?;
        if !of.half_pixel {
            let one = n.scalar("least", 1.0);
            length = n.binary("length/least", BinaryKind::Max, length, one)?;
        }
        let out = of.out[usize::from(axis == 0)];
        let positions = out.checked_mul(of.samples).ok_or("its result is too large")?;
        // A sample is in the middle of its share of the part.
        let share = n.table("share", &[1, positions], |i| (i as f32 + 0.5) / positions as f32)?;
        let places = n.binary("places", BinaryKind::Mul, length, share)?;
        let places = n.add("places/from", places, first)?;
        // Samples more than a pixel outside are 0; others are moved into the image.
        let [low, high] = [-1.0, size as f32].map(|x| n.scalar("limit", x));
        let from = n.binary("from", BinaryKind::LessEqual, low, places)?;
        let to = n.binary("to", BinaryKind::LessEqual, places, high)?;
        let inside = n.binary("inside", BinaryKind::And, from, to)?;
        let floats = n.ty(places).dtype;
        let inside = n.cast("inside", inside, floats)?;
        let places = held(n, places, size)?;
        let taps = taps(n, places, size, Interpolation::Linear, Outside::Border)?;
        // [R, positions] over both dimensions of the result.
        let shape = if axis == 1 { [count, positions, 1] } else { [count, 1, positions] };
        let mut shaped = Vec::new();
        for (place, weight) in taps {
            let weight = n.binary("weight/inside", BinaryKind::Mul, weight, inside)?;
            shaped.push((n.reshape("place/shape", place, &shape)?, n.reshape("weight/shape", weight, &shape)?));
        }
        all.push(shaped);
    }
    let area = n.made("area", Tensor::scalar((h * w) as i64));
    let images = n.cast("images", of.images, DType::I64)?;
    let base = n.binary("base", BinaryKind::Mul, images, area)?;
    let base = n.reshape("base/shape", base, &[count, 1, 1])?;
    let pixels = weighted(n, rows, base, &all, &[h, w])?;
    let samples = sum(n, &pixels, of.greatest.then_some(BinaryKind::Max))?;
    let [oh, ow] = of.out;
    let apart = n.reshape("samples", samples, &[count, oh, of.samples, ow, of.samples, channels])?;
    let kind = if of.greatest { ReduceKind::Max } else { ReduceKind::Mean };
    let v = n.reduce("pixels", kind, &[2, 4], false, apart)?;
    n.node("", Transpose { perm: vec![0, 3, 1, 2] }, &[v])
}

/// The grid of places from -1 to 1 that affine maps, `[N, d, d + 1]`, make of an image's own: `[N, S…, d]`.
pub fn affine_grid(n: &mut SemanticBuilder, maps: ValueId, sizes: &[usize], centers: bool) -> Result<ValueId, Reason> {
    let d = sizes.len();
    let shape = n.shape(maps)?;
    let &[count, rows, columns] = shape.as_slice() else {
        return Err(format!("its maps must have 3 dimensions, found {}", n.ty(maps)).into());
    };
    if (rows, columns) != (d, d + 1) || d == 0 {
        return Err(format!("its maps must be {d} by {}, found {}", d + 1, n.ty(maps)).into());
    }
    let area = sizes.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).ok_or("its size is too large")?;
    let strides = strides_of(sizes);
    let place = |i: usize, axis: usize| {
        let (at, size) = (i / strides[axis] % sizes[axis], sizes[axis] as f32);
        match (centers, sizes[axis]) {
            (true, 1) => -1.0,
            (true, _) => -1.0 + 2.0 * at as f32 / (size - 1.0),
            (false, _) => (2.0 * at as f32 + 1.0) / size - 1.0,
        }
    };
    // The last dimension of the image is the first of the grid's numbers.
    let own = n.table("own", &[1, area, d + 1], |i| {
        let (i, axis) = (i / (d + 1), i % (d + 1));
        if axis == d { 1.0 } else { place(i, d - 1 - axis) }
    })?;
    let maps = n.node("maps", Transpose { perm: vec![0, 2, 1] }, &[maps])?;
    let own = n.node("own/each", crate::graph::op::Expand { shape: vec![count, area, d + 1] }, &[own])?;
    let grid = super::product::matrices(n, own, maps)?;
    let shape: Vec<usize> = [count].into_iter().chain(sizes.iter().copied()).chain([d]).collect();
    n.reshape("", grid, &shape)
}

/// A convolution whose taps are moved by offsets.
#[derive(Debug, Clone, Copy)]
pub struct Deformable {
    /// `[O, C / groups, KH, KW]`.
    pub weight: ValueId,
    /// `[N, offset groups * KH * KW * 2, H, W]` of the result: rows and columns that each tap is moved by.
    pub offset: ValueId,
    /// `[N, offset groups * KH * KW, H, W]`: factors of the taps.
    pub mask: Option<ValueId>,
    pub bias: Option<ValueId>,
    pub strides: [usize; 2],
    pub dilations: [usize; 2],
    /// Top and left.
    pub pads: [usize; 2],
    pub groups: usize,
    pub offset_groups: usize,
}

/// The deformable convolution of `[N, C, H, W]`.
pub fn deformable(n: &mut SemanticBuilder, data: ValueId, of: Deformable) -> Result<ValueId, Reason> {
    let (shape, weight, offset) = (n.shape(data)?, n.shape(of.weight)?, n.shape(of.offset)?);
    let (&[images, channels, _, _], &[out, per_group, kh, kw], &[_, _, oh, ow]) =
        (shape.as_slice(), weight.as_slice(), offset.as_slice())
    else {
        return Err("its data, weights and offsets must have 4 dimensions".into());
    };
    let (taps, parts) = (kh * kw, of.offset_groups);
    let masks = of.mask.map(|mask| n.shape(mask)).transpose()?;
    let suits = parts > 0 && channels % parts == 0 && offset == [images, parts * taps * 2, oh, ow];
    if !suits || masks.is_some_and(|mask| mask != [images, parts * taps, oh, ow]) {
        return Err(format!("its offsets {} or its mask do not suit its data", n.ty(of.offset)).into());
    }
    n.reserve_nodes(parts * taps * 64)?;
    let (area, own) = (oh * ow, channels / parts);
    let mut columns = Vec::new();
    for group in 0..parts {
        let data = super::movement::part(n, "group", data, 1, group * own, own)?;
        for tap in 0..taps {
            let mut places = Vec::new();
            for axis in 0..2 {
                let channel = (group * taps + tap) * 2 + axis;
                let moved = super::movement::part(n, "offset", of.offset, 1, channel, 1)?;
                let moved = n.reshape("offset/row", moved, &[images, area])?;
                let at = if axis == 0 { tap / kw } else { tap % kw };
                let from = (at * of.dilations[axis]) as f32 - of.pads[axis] as f32;
                let place = |i: usize| (if axis == 0 { i / ow } else { i % ow } * of.strides[axis]) as f32 + from;
                let place = n.table("place", &[1, area], place)?;
                places.push(n.add("moved", place, moved)?);
            }
            let mut v = sampled(n, data, &places, Interpolation::Linear, Outside::Zeros)?;
            if let Some(mask) = of.mask {
                let mask = super::movement::part(n, "mask", mask, 1, group * taps + tap, 1)?;
                let mask = n.reshape("mask/row", mask, &[images, 1, area])?;
                v = n.binary("masked", BinaryKind::Mul, v, mask)?;
            }
            columns.push(n.reshape("column", v, &[images, own, 1, oh, ow])?);
        }
    }
    // Channels outside, their taps inside.
    let mut groups = Vec::new();
    for columns in columns.chunks(taps) {
        let joined = n.node("taps", Concat { axis: 2 }, columns)?;
        groups.push(n.reshape("taps/image", joined, &[images, own * taps, oh, ow])?);
    }
    let all = if let [one] = groups.as_slice() { *one } else { n.node("columns", Concat { axis: 1 }, &groups)? };
    let weight = n.reshape("weight", of.weight, &[out, per_group * taps, 1, 1])?;
    let weight = n.transposed("weight", weight, &[0, 2, 3, 1])?;
    let op = Conv2d {
        strides: [1, 1],
        pads: [0; 4],
        dilations: [1, 1],
        groups: of.groups,
        layout: Layout::Nchw,
        data_zero_point: 0,
        weight_zero_point: 0,
    };
    let operands: Vec<ValueId> = [all, weight].into_iter().chain(of.bias).collect();
    n.node("", op, &operands)
}
