//! Fourier transforms, as products with tables of sines and cosines, and windows of signals.

use super::SemanticBuilder;
use super::pad;
use super::product;
use crate::frontend::reason::Reason;
use crate::graph::op::{BinaryKind, Concat, Gather, Transpose};
use crate::graph::{Tensor, ValueId};
use std::f64::consts::TAU;

/// What a Fourier transform is of.
#[derive(Debug, Clone, Copy)]
pub struct Fourier {
    /// Number of places; the data are cut or filled with zeros.
    pub length: usize,
    pub inverse: bool,
    /// Whether the spectrum is its first half only. If the data are real, the other half follows from it.
    pub half: bool,
}

/// Data whose transformed dimension is last.
struct Rows {
    /// Real parts, and imaginary parts if there are any: `[rows, length]` each.
    parts: Vec<ValueId>,
    /// The sizes of the other dimensions.
    others: Vec<usize>,
}

impl Rows {
    /// The rows along a dimension of `[…, 1]` or `[…, 2]`, cut or filled with zeros to a length.
    fn of(n: &mut SemanticBuilder, data: ValueId, axis: usize, length: usize) -> Result<Rows, Reason> {
        let shape = n.shape(data)?;
        let Some((&parts @ 1..=2, outer)) = shape.split_last() else {
            return Err(format!("its last dimension must have 1 or 2 elements, found {}", n.ty(data)).into());
        };
        if axis >= outer.len() || length == 0 {
            return Err("its axis must be before the last dimension, and its length above 0".into());
        }
        let mut perm: Vec<usize> = (0..outer.len()).filter(|at| *at != axis).collect();
        let others: Vec<usize> = perm.iter().map(|at| outer[*at]).collect();
        perm.insert(0, outer.len());
        perm.push(axis);
        let moved = n.node("moved", Transpose { perm }, &[data])?;
        let rows: usize = others.iter().product();
        let mut v = n.reshape("rows", moved, &[parts, rows, outer[axis]])?;
        if outer[axis] != length {
            let more = length as i64 - outer[axis] as i64;
            v = pad::constant(n, "length", v, &[(0, 0), (0, 0), (0, more)], 0.0)?;
        }
        let mut all = Vec::new();
        for at in 0..parts {
            let one = super::movement::part(n, "part", v, 0, at, 1)?;
            all.push(n.reshape("part/rows", one, &[rows, length])?);
        }
        Ok(Rows { parts: all, others })
    }

    /// Results of `count` places as the data were, with the transformed dimension at its place.
    fn back(&self, n: &mut SemanticBuilder, parts: &[ValueId], count: usize, axis: usize) -> Result<ValueId, Reason> {
        let shape = [self.others.as_slice(), &[count, 1]].concat();
        let mut shaped = Vec::new();
        for &v in parts {
            shaped.push(n.reshape("result", v, &shape)?);
        }
        let last = shape.len() - 1;
        let joined = if let [one] = *shaped { one } else { n.node("both", Concat { axis: last }, &shaped)? };
        let mut perm: Vec<usize> = (0..last - 1).collect();
        perm.insert(axis, last - 1);
        perm.push(last);
        n.node("", Transpose { perm }, &[joined])
    }
}

/// The transform along a dimension of `[…, 1]`, real numbers, or `[…, 2]`, complex ones: `[…, 2]`. The inverse of the half
/// of a spectrum, from which real data follow, is `[…, 1]`.
pub fn fourier(n: &mut SemanticBuilder, data: ValueId, axis: usize, of: Fourier) -> Result<ValueId, Reason> {
    let half = of.length / 2 + 1;
    let (from, to) = match (of.half, of.inverse) {
        (true, true) => (half, of.length),
        (true, false) => (of.length, half),
        _ => (of.length, of.length),
    };
    let rows = Rows::of(n, data, axis, from)?;
    let sign = if of.inverse { 1.0 } else { -1.0 };
    let factor = |place: usize| {
        // The places that are missing in a half are those of the others, mirrored.
        let twice = of.half && of.inverse && place > 0 && 2 * place != of.length;
        let scale = if of.inverse { 1.0 / of.length as f64 } else { 1.0 };
        if twice { 2.0 * scale } else { scale }
    };
    let angle = |i: usize| TAU * ((i / to) * (i % to) % of.length) as f64 / of.length as f64;
    let table = [from, to];
    let cosines = n.table("cosines", &table, |i| (factor(i / to) * angle(i).cos()) as f32)?;
    let sines = n.table("sines", &table, |i| (factor(i / to) * sign * angle(i).sin()) as f32)?;
    let mut re = product::matrices(n, rows.parts[0], cosines)?;
    if let Some(&imaginary) = rows.parts.get(1) {
        let less = product::matrices(n, imaginary, sines)?;
        re = n.binary("real", BinaryKind::Sub, re, less)?;
    }
    if of.half && of.inverse {
        return rows.back(n, &[re], to, axis);
    }
    let mut im = product::matrices(n, rows.parts[0], sines)?;
    if let Some(&imaginary) = rows.parts.get(1) {
        let more = product::matrices(n, imaginary, cosines)?;
        im = n.add("imaginary", im, more)?;
    }
    rows.back(n, &[re, im], to, axis)
}

/// The transforms of frames of a signal, `[B, L]` or `[B, L, 1 or 2]`, that begin every `step` places: `[B, F, K, 2]`.
pub fn frames(
    n: &mut SemanticBuilder,
    signal: ValueId,
    step: usize,
    length: usize,
    window: Option<ValueId>,
    half: bool,
) -> Result<ValueId, Reason> {
    let mut shape = n.shape(signal)?;
    if shape.len() == 2 {
        shape.push(1);
    }
    let &[batch, size, parts] = shape.as_slice() else {
        return Err(format!("its signal must have 2 or 3 dimensions, found {}", n.ty(signal)).into());
    };
    if step == 0 || length == 0 || length > size {
        return Err(format!("its frames of {length} every {step} do not suit a signal of {size}").into());
    }
    let count = (size - length) / step + 1;
    let signal = n.reshape("signal", signal, &[batch, size, parts])?;
    let places = n.table("places", &[count, length], |i| (i / length * step + i % length) as i64)?;
    let mut all = n.node("frames", Gather { axis: 1 }, &[signal, places])?;
    if let Some(window) = window {
        let window = n.reshape("window", window, &[length, 1])?;
        all = n.binary("windowed", BinaryKind::Mul, all, window)?;
    }
    fourier(n, all, 2, Fourier { length, inverse: false, half })
}

/// A window of a signal: a sum of cosines, `c0 - c1 cos(x) + c2 cos(2x)`, over one period of `size` places, or of one
/// less.
pub fn window(size: usize, periodic: bool, [c0, c1, c2]: [f64; 3]) -> Vec<f32> {
    let period = if periodic { size } else { size.saturating_sub(1) }.max(1) as f64;
    let at = |i: usize| {
        let x = TAU * i as f64 / period;
        (c0 - c1 * x.cos() + c2 * (2.0 * x).cos()) as f32
    };
    (0..size).map(at).collect()
}

/// Weights that sum a spectrum into bands of equal width on the mel scale: `[length / 2 + 1, bands]`.
///
/// # Errors
/// If the sizes are too large or the edges do not suit them.
pub fn mel_weights(bands: usize, length: usize, rate: f64, edges: [f64; 2]) -> Result<Tensor, Reason> {
    let places = length / 2 + 1;
    if bands == 0 || bands.checked_mul(places).is_none_or(|all| all > 1 << 24) || rate <= 0.0 {
        return Err(format!("its {bands} bands of {places} places at a rate of {rate} are not supported").into());
    }
    let [low, high] = edges.map(|hertz| 2595.0 * (1.0 + hertz / 700.0).log10());
    let step = (high - low) / (bands + 2) as f64;
    let place = |i: usize| {
        let hertz = 700.0 * (10f64.powf((i as f64 * step + low) / 2595.0) - 1.0);
        ((length + 1) as f64 * hertz / rate).floor()
    };
    let mut weights = vec![0.0f32; places * bands];
    let mut set = |at: f64, band: usize, weight: f64| {
        if at >= 0.0 && (at as usize) < places {
            weights[at as usize * bands + band] = weight as f32;
        }
    };
    for band in 0..bands {
        let [lower, center, higher] = [0, 1, 2].map(|k| place(band + k));
        let (up, down) = (center - lower, higher - center);
        if up == 0.0 {
            set(center, band, 1.0);
        }
        (0..=up.max(0.0) as usize).filter(|_| up > 0.0).for_each(|j| set(lower + j as f64, band, j as f64 / up));
        (0..down.max(0.0) as usize).for_each(|j| set(center + j as f64, band, (down - j as f64) / down));
    }
    Tensor::new(&[places, bands], weights).ok_or_else(|| "its result is too large".into())
}
