//! RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR: the positions to read are computed at import.

use super::expect;
use super::shape::same_quantization;
use crate::frontend::reason::Reason;
use crate::frontend::tflite::schema::Type;
use crate::frontend::tflite::{NodeContext, wide};
use crate::graph::op::{BilinearU8, Gather, Requantize, Resample};
use crate::graph::{DType, Tensor, ValueId};
use tilewright_hw::num::Rounding;

/// Fractional bits of positions and weights for bytes.
const FRACTION: i64 = 10;

struct Resize {
    data: ValueId,
    dtype: DType,
    /// Heights, then widths, of data and result.
    from: [usize; 2],
    to: [usize; 2],
    align_corners: bool,
    half_pixel_centers: bool,
}

fn resize(n: &mut NodeContext, first: usize) -> Result<Resize, Reason> {
    let (align_corners, half_pixel_centers) =
        n.op.options.map_or(Ok((0, 0)), |o| Ok::<_, String>((o.i8(first)?, o.i8(first + 1)?)))?;
    let data = n.input(0)?;
    let dtype = expect(n, data, &[DType::F32, DType::I8, DType::I16])?;
    let &[_, h, w, _] = n.shape(data)?.as_slice() else { return Err("its data must have 4 dimensions".into()) };
    let size = n.integers(1)?;
    let to: Vec<usize> = size.iter().filter_map(|&s| usize::try_from(s).ok()).collect();
    let (&[height, width], true) = (to.as_slice(), h > 0 && w > 0) else {
        return Err(format!("its size must be a height and a width, and its data not empty, found {size:?}").into());
    };
    if height > 1 << 16 || width > 1 << 16 || h > 1 << 16 || w > 1 << 16 {
        return Err("an image of more than 65,536 rows or columns is not supported".into());
    }
    n.reserve_tables(height + width)?;
    same_quantization(n)?;
    let (align_corners, half_pixel_centers) = (align_corners != 0, half_pixel_centers != 0);
    Ok(Resize { data, dtype, from: [h, w], to: [height, width], align_corners, half_pixel_centers })
}

impl Resize {
    /// Rows or columns of the data per row or column of the result.
    fn scale(&self, i: usize) -> f32 {
        let (from, to) = (self.from[i], self.to[i]);
        if self.align_corners && to > 1 {
            return (from - 1) as f32 / (to - 1) as f32;
        }
        from as f32 / to as f32
    }

    /// For each row or column of the result, the nearest one of the data (`GetNearestNeighbor`).
    fn nearest(&self, i: usize) -> Vec<i32> {
        let (scale, offset) = (self.scale(i), if self.half_pixel_centers { 0.5 } else { 0.0 });
        let place = |o: usize| {
            let at = (o as f32 + offset) * scale;
            let at = if self.align_corners { at.round() } else { at.floor() };
            (at as i64).clamp(0, self.from[i] as i64 - 1) as i32
        };
        (0..self.to[i]).map(place).collect()
    }

    /// For each row or column of the result, the ones before and after it in the data, and the distance from the one
    /// before.
    fn neighbors(&self, i: usize) -> (Vec<i32>, Vec<i32>, Vec<f32>) {
        let scale = self.scale(i);
        let (mut before, mut behind, mut distance) = (Vec::new(), Vec::new(), Vec::new());
        for o in 0..self.to[i] {
            let at = if self.half_pixel_centers { (o as f32 + 0.5) * scale - 0.5 } else { o as f32 * scale };
            let first = (at.floor() as i32).max(0);
            before.push(first);
            behind.push((at.ceil() as i32).min(self.from[i] as i32 - 1));
            distance.push(at - first as f32);
        }
        (before, behind, distance)
    }

    /// The same for bytes, with ten fractional bits.
    fn fixed_neighbors(&self, i: usize) -> (Vec<i32>, Vec<i32>, Vec<i32>) {
        let one = 1i64 << FRACTION;
        let (from, to) = (self.from[i] as i64, self.to[i] as i64);
        let scale = if self.align_corners && to > 1 {
            (one * (from - 1) + (to - 1) / 2) / (to - 1)
        } else {
            (one * from + to / 2) / to.max(1)
        };
        let (mut before, mut behind, mut distance) = (Vec::new(), Vec::new(), Vec::new());
        for o in 0..to {
            let at = if self.half_pixel_centers { o * scale + scale / 2 - one / 2 } else { o * scale };
            // Divisions truncate, as in the kernel.
            let first = (at / one).max(0);
            before.push(first as i32);
            behind.push(((at + one - 1) / one).min(from - 1) as i32);
            distance.push((at - one * first) as i32);
        }
        (before, behind, distance)
    }
}

pub(super) fn nearest(n: &mut NodeContext) -> Result<(), Reason> {
    let r = resize(n, 0)?;
    let mut v = r.data;
    for (i, suffix) in ["rows", ""].into_iter().enumerate() {
        let index = n.made("places", Tensor::vector(r.nearest(i)));
        v = n.node(suffix, Gather { axis: i + 1 }, &[v, index])?;
    }
    n.output(v)
}

pub(super) fn bilinear(n: &mut NodeContext) -> Result<(), Reason> {
    let r = resize(n, 2)?;
    if r.align_corners && r.half_pixel_centers {
        return Err("attributes align_corners and half_pixel_centers must not both be set".into());
    }
    let v = match (r.dtype, n.input_info(0)?.ty) {
        (DType::F32, _) => float(n, &r)?,
        (_, Type::U8) => unsigned(n, &r)?,
        (DType::I16, _) => wide_sums(n, &r)?,
        _ => signed(n, &r)?,
    };
    n.output(v)
}

/// Index and weight of two taps for each row or column of the result.
fn taps<T: crate::graph::Element>(
    n: &mut NodeContext,
    (before, behind): (&[i32], &[i32]),
    weights: impl Fn(usize) -> [T; 2],
) -> [ValueId; 2] {
    let shape = [before.len(), 2];
    let index = Tensor::from_fn(&shape, |i| if i % 2 == 0 { before[i / 2] } else { behind[i / 2] });
    let weight = Tensor::from_fn(&shape, |i| weights(i / 2)[i % 2]);
    [n.made("places", index), n.made("weights", weight)]
}

fn float(n: &mut NodeContext, r: &Resize) -> Result<ValueId, Reason> {
    let mut v = r.data;
    for (i, suffix) in ["rows", ""].into_iter().enumerate() {
        let (before, behind, distance) = r.neighbors(i);
        let [index, weight] = taps(n, (&before, &behind), |o| [1.0 - distance[o], distance[o]]);
        v = n.node(suffix, Resample { axis: i + 1 }, &[v, index, weight])?;
    }
    Ok(v)
}

/// 16 bits: the same sums as for int8, in double precision.
fn wide_sums(n: &mut NodeContext, r: &Resize) -> Result<ValueId, Reason> {
    let mut v = wide::operand(n, 0, r.data)?;
    let one = f64::from(1 << FRACTION);
    for (i, suffix) in ["rows", "columns"].into_iter().enumerate() {
        let (before, behind, distance) = r.fixed_neighbors(i);
        let far = |o: usize| f64::from(distance[o]) / one;
        let [index, weight] = taps(n, (&before, &behind), |o| [1.0 - far(o), far(o)]);
        v = n.node(suffix, Resample { axis: i + 1 }, &[v, index, weight])?;
    }
    wide::rounded_away(n, v)
}

/// int8: sums of products with ten-bit weights, divided by 2^20 with ties away from zero.
fn signed(n: &mut NodeContext, r: &Resize) -> Result<ValueId, Reason> {
    let mut v = r.data;
    for (i, suffix) in ["rows", "columns"].into_iter().enumerate() {
        let (before, behind, distance) = r.fixed_neighbors(i);
        // Doubles the weights the second time, because requantization halves before it divides.
        let one = 1 << (FRACTION as usize + i);
        let far = |o: usize| distance[o] << i;
        let [index, weight] = taps(n, (&before, &behind), |o| [one - far(o), far(o)]);
        v = n.node(suffix, Resample { axis: i + 1 }, &[v, index, weight])?;
    }
    let channels = *n.shape(v)?.last().ok_or("its data have no channels")?;
    // The sums need no scaling: scale and zero point of data and result are equal, and the weights sum to one.
    n.reserve_tables(channels)?;
    let constant = |n: &mut NodeContext, name: &str, v: i32| n.made(name, Tensor::vector(vec![v; channels]));
    let bias = constant(n, "bias", 0);
    let multiplier = constant(n, "multiplier", 1 << 30);
    let shift = constant(n, "shift", -2 * FRACTION as i32);
    let op = Requantize { axis: 3, zero_point: 0, lo: -128, hi: 127, mode: Rounding::Double };
    n.node("", op, &[v, bias, multiplier, shift])
}

fn unsigned(n: &mut NodeContext, r: &Resize) -> Result<ValueId, Reason> {
    let mut operands = vec![r.data];
    for i in 0..2 {
        let (before, behind, distance) = r.neighbors(i);
        operands.push(n.made("before", Tensor::vector(before)));
        operands.push(n.made("behind", Tensor::vector(behind)));
        operands.push(n.made("distance", Tensor::vector(distance)));
    }
    n.node("", BilinearU8 { offset: 0.5 }, &operands)
}
