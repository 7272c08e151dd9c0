//! Transposed convolutions, as a convolution for each phase of the strides.
//!
//! Results a stride apart meet the same taps of the kernel, so they are a convolution with those taps alone, whose results
//! are stored a stride apart.

use super::extract::{Read, Reader, fold_zero_point};
use super::layer::{Conv, Kind, Layer, Phase, Transposed};
use super::rest::split;
use crate::graph::op;
use crate::graph::{Node, NodeId};

/// The taps that one phase of a dimension meets, in the order of the convolution's taps, and rows of padding in front.
fn taps(phase: usize, stride: usize, pad: usize, kernel: usize) -> Read<(Vec<usize>, usize)> {
    let first = (phase + pad) % stride;
    let mut taps: Vec<usize> = (first..kernel).step_by(stride).collect();
    // The data's first row meets the last tap.
    taps.reverse();
    let Some(&last) = taps.first() else { return Err("a phase of its strides meets no tap of its kernel".into()) };
    let before = last.checked_sub(phase + pad).ok_or("its result begins behind the data's first row")?;
    Ok((taps, before / stride))
}

/// Of weights `[O, KH * KW, I]` some taps; of no weights none.
fn choose<T: Copy>(weights: &[T], [outputs, all, depth]: [usize; 3], taps: &[usize]) -> Vec<T> {
    let mut chosen = Vec::with_capacity(weights.len() / all.max(1) * taps.len());
    for o in 0..if weights.is_empty() { 0 } else { outputs } {
        for tap in taps {
            chosen.extend_from_slice(&weights[(o * all + tap) * depth..][..depth]);
        }
    }
    chosen
}

impl Reader<'_> {
    pub(super) fn transposed(&self, id: NodeId, node: &Node, op: &op::ConvTranspose2d) -> Read<Layer> {
        let data = node.inputs[0];
        self.int8(data)?;
        if op.dilations != [1, 1] {
            return Err(format!("dilations {:?} beside strides; the accelerator takes 1", op.dilations));
        }
        let (input, output) = (self.image(data, op.layout)?, self.image(node.output(), op.layout)?);
        let &[outputs, kh, kw, depth] = self.shape(node.inputs[1])?.as_slice() else {
            return Err("its weights are no kernel".into());
        };
        let (weights, rest) = split(self.weights(node.inputs[1])?, op.weight_zero_point);
        let (next, finish) = self.requantize(node, op.layout.channel_axis())?;
        let mut nodes = vec![id, next];
        let (mut lo, mut hi) = (finish.lo, finish.hi);
        self.fuse_clip(&mut nodes, &mut lo, &mut hi);
        let mut phases = Vec::new();
        for y in 0..op.strides[0].min(output.h) {
            for x in 0..op.strides[1].min(output.w) {
                let (rows, top) = taps(y, op.strides[0], op.pads[0], kh)?;
                let (columns, left) = taps(x, op.strides[1], op.pads[1], kw)?;
                let pairs = rows.iter().flat_map(|r| columns.iter().map(move |c| (r, c)));
                let taps: Vec<usize> = pairs.map(|(r, c)| r * kw + c).collect();
                let shape = [outputs, kh * kw, depth];
                let (weights, mut rest) = (choose(&weights, shape, &taps), choose(&rest, shape, &taps));
                if rest.iter().all(|&w| w == 0) {
                    rest.clear();
                }
                let mut finish = super::layer::Finish { lo, hi, ..finish.clone() };
                fold_zero_point(&mut finish, &weights, op.data_zero_point);
                fold_zero_point(&mut finish, &rest, op.data_zero_point);
                let view = output.resized(
                    output.c,
                    (output.h - y).div_ceil(op.strides[0]),
                    (output.w - x).div_ceil(op.strides[1]),
                );
                // Rows behind the data are read as far as the windows reach.
                let behind = |out: usize, taps: usize, before: usize, size: usize| {
                    (out + taps - 1).saturating_sub(before + size)
                };
                let pads =
                    [top, left, behind(view.h, rows.len(), top, input.h), behind(view.w, columns.len(), left, input.w)];
                let conv = Conv {
                    kernel: [rows.len(), columns.len()],
                    strides: [1, 1],
                    pads,
                    dilations: [1, 1],
                    groups: op.groups,
                    weights,
                    rest,
                    weight_zero_point: op.weight_zero_point,
                    pad_value: op.data_zero_point as i8,
                    finish,
                    slope: None,
                };
                phases.push(Phase { conv, view, first: [y, x] });
            }
        }
        let transposed = Transposed { strides: op.strides, phases };
        self.layer(nodes, vec![(data, input)], output, Kind::Transposed(transposed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_meet_the_taps_that_reach_them() {
        for (stride, pad, kernel, size) in [(2, 0, 3, 5), (2, 1, 4, 6), (3, 1, 5, 4), (1, 2, 3, 5)] {
            for phase in 0..stride {
                let Ok((found, before)) = taps(phase, stride, pad, kernel) else { panic!("no tap") };
                for t in 0..3 {
                    // By the definition: element i and tap k add to i * stride + k - pad.
                    let out = phase + t * stride;
                    let meets = |i: i64| (0..kernel).find(|&k| i * stride as i64 + k as i64 - pad as i64 == out as i64);
                    for (m, &tap) in found.iter().enumerate() {
                        let i = (t + m) as i64 - before as i64;
                        assert_eq!(meets(i), Some(tap), "{stride} {pad} {kernel} {size}");
                    }
                }
            }
        }
    }
}
