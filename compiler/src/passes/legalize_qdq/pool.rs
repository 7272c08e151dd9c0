//! Averages.

use super::{Group, requantize};
use crate::graph::op::{AvgPool2d, GlobalAvgPool, SumPool2d};
use crate::graph::{Dim, Op};
use crate::passes::Patch;

pub(super) fn rewrite(g: &Group) -> Option<Patch> {
    let graph = g.view.graph;
    let (data, from) = g.dequantized(g.core.inputs[0])?;
    let ty = graph.ty(data);
    let same = from == g.out;
    let sum = match &g.core.op {
        Op::AvgPool2d(p) => {
            let padded = p.pads.iter().any(|&n| n > 0);
            // Padding counted as real 0 is the zero point, which the average of the bytes takes for 0.
            if same && !(padded && p.count_include_pad && from.zero_point != 0) {
                let mut patch = Patch::new("avg_pool2d");
                let op = AvgPool2d { lo: g.lo, hi: g.hi, ..p.clone() };
                let v = patch.node(g.name(), op, &[data.into()]);
                return g.finish(patch, v);
            }
            if padded && !p.count_include_pad {
                return None;
            }
            let (kernel, strides, pads, layout) = (p.kernel, p.strides, p.pads, p.layout);
            SumPool2d { kernel, strides, pads, layout, data_zero_point: from.zero_point }
        }
        Op::GlobalAvgPool(p) => {
            if same {
                let mut patch = Patch::new("global_avg_pool");
                let op = GlobalAvgPool { lo: g.lo, hi: g.hi, ..p.clone() };
                let v = patch.node(g.name(), op, &[data.into()]);
                return g.finish(patch, v);
            }
            let [h, w] = p.layout.spatial_axes().map(|a| ty.dims[a].known());
            let kernel = [h?, w?];
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
    let v = requantize(g, &mut patch, acc, axis, vec![0; channels], &vec![factor; channels])?;
    g.finish(patch, v)
}
