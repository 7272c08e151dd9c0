//! Average pooling.
//!
//! If the real average is halfway between two integers, the format rounds to even, or wherever the error of its floats
//! leads, which differs from sum to sum. No rounding of an integer sum reproduces that. A pooling stays float if more
//! than one in a thousand of its sums is such a tie, for example with equal scales and an even number of elements.

use super::{Group, PerTensor, requantize, scaling};
use crate::graph::op::{AvgPool2d, GlobalAvgPool, QAvgPool2d, SumPool2d};
use crate::graph::{Dim, Op, ValueId};
use crate::passes::Patch;
use std::collections::BTreeSet;

/// Maximum number of elements, over all window sizes of a pooling, for which sums are examined.
const MOST_COUNTED: usize = 1 << 18;

pub(super) fn rewrite(g: &Group) -> Option<Patch> {
    let graph = g.view.graph;
    let (data, from) = g.dequantized(g.core.inputs[0])?;
    let ty = graph.ty(data);
    let same = from == g.out;
    let ties = |n: usize| often_ties(f64::from(from.scale) / f64::from(g.out.scale), n);
    let sum = match &g.core.op {
        Op::AvgPool2d(p) => {
            let padded = p.pads.iter().any(|&n| n > 0);
            let [h, w] = p.kernel;
            // Windows at the image's edges have fewer elements if padding is not counted.
            let least = |k: usize, i: usize| if p.count_include_pad { k } else { k - p.pads[i].max(p.pads[i + 2]) };
            let counts: BTreeSet<usize> = (least(h, 0)..=h)
                .flat_map(|y| (least(w, 1)..=w).map(move |x| y.saturating_mul(x)))
                .take(MOST_COUNTED)
                .collect();
            if counts.iter().fold(0usize, |all, n| all.saturating_add(*n)) > MOST_COUNTED
                || counts.into_iter().any(ties)
            {
                return None;
            }
            // Counted padding is real 0, which is the zero point; the average of the bytes would use 0.
            if same && !(padded && p.count_include_pad && from.zero_point != 0) {
                let mut patch = Patch::new("avg_pool2d");
                let op = AvgPool2d { lo: g.lo, hi: g.hi, ..p.clone() };
                let v = patch.node(g.name(), op, &[data.into()]);
                return Some(g.finish(patch, v));
            }
            if padded && !p.count_include_pad {
                return by_count(g, p, data, from);
            }
            let (kernel, strides, pads, layout) = (p.kernel, p.strides, p.pads, p.layout);
            SumPool2d { kernel, strides, pads, layout, data_zero_point: from.zero_point }
        }
        Op::GlobalAvgPool(p) => {
            let [h, w] = p.layout.spatial_axes().map(|a| ty.dims[a].known());
            let kernel = [h?, w?];
            if ties(kernel[0].saturating_mul(kernel[1])) {
                return None;
            }
            if same {
                let mut patch = Patch::new("global_avg_pool");
                let op = GlobalAvgPool { lo: g.lo, hi: g.hi, ..p.clone() };
                let v = patch.node(g.name(), op, &[data.into()]);
                return Some(g.finish(patch, v));
            }
            SumPool2d { kernel, strides: [1, 1], pads: [0; 4], layout: p.layout, data_zero_point: from.zero_point }
        }
        _ => return None,
    };
    let axis = sum.layout.channel_axis();
    let channels = ty.dims.get(axis).and_then(Dim::known)?;
    let count = sum.kernel[0] as f64 * sum.kernel[1] as f64;
    let factor = f64::from(from.scale) / (f64::from(g.out.scale) * count);
    let mut patch = Patch::new("sum_pool2d");
    let acc = patch.node(&g.label("sum"), sum, &[data.into()]);
    let v =
        requantize(g, &mut patch, g.name(), (acc, axis), vec![0; channels], &vec![(factor, 255.0 * count); channels])?;
    Some(g.finish(patch, v))
}

/// An average of the elements inside the image, with a factor for each number of elements.
fn by_count(g: &Group, p: &AvgPool2d, data: ValueId, from: PerTensor) -> Option<Patch> {
    let scales = f64::from(from.scale) / f64::from(g.out.scale);
    let all = p.kernel[0] * p.kernel[1];
    let factors: Vec<_> = (1..=all).map(|n| (scales / n as f64, 255.0 * n as f64)).collect();
    let (multiplier, shift, mode) = scaling(&factors)?;
    let op = QAvgPool2d {
        kernel: p.kernel,
        strides: p.strides,
        pads: p.pads,
        layout: p.layout,
        data_zero_point: from.zero_point,
        multiplier,
        shift,
        zero_point: g.out.zero_point,
        lo: g.lo,
        hi: g.hi,
        mode,
    };
    let mut patch = Patch::new("qavg_pool2d");
    let v = patch.node(g.name(), op, &[data.into()]);
    Some(g.finish(patch, v))
}

/// True if more than one in a thousand sums of `count` bytes less their zero point, times `scales / count`, are halfway
/// between two integers, within the error of single precision.
///
/// Also true for windows that are too large to examine all sums.
fn often_ties(scales: f64, count: usize) -> bool {
    if count > MOST_COUNTED {
        return true;
    }
    let factor = scales / count as f64;
    let (mut ties, mut all) = (0usize, 0usize);
    for sum in 1..=255 * count {
        let real = sum as f64 * factor;
        // Two bytes differ by less, so everything beyond is clamped.
        if real > 256.0 {
            break;
        }
        all += 1;
        ties += usize::from((real.fract() - 0.5).abs() <= real * f64::from(f32::EPSILON));
    }
    ties * 1000 > all
}

#[cfg(test)]
mod tests {
    use super::often_ties;

    #[test]
    fn ties_are_counted_and_windows_without_end_are_not() {
        assert!(often_ties(1.0, 4) && often_ties(0.5, 9));
        assert!(!often_ties(1.0, 9) && !often_ties(0.7123, 49));
        assert!(often_ties(0.7123, usize::MAX));
    }
}
