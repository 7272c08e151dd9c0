//! Products of two quantized tensors: of matrices, and element by element.

use super::{Group, requantize, scaling};
use crate::graph::Dim;
use crate::graph::op::{QMatMul, QMul};
use crate::passes::Patch;

pub(super) fn matrices(g: &Group) -> Option<Patch> {
    let (a, qa) = g.dequantized(g.core.inputs[0])?;
    let (b, qb) = g.dequantized(g.core.inputs[1])?;
    let ty = g.view.graph.ty(g.core.output());
    let axis = ty.rank().checked_sub(1)?;
    let columns = ty.dims.get(axis).and_then(Dim::known)?;
    let factor = f64::from(qa.scale) * f64::from(qb.scale) / f64::from(g.out.scale);
    let mut p = Patch::new("qmatmul");
    let op = QMatMul { a_zero_point: qa.zero_point, b_zero_point: qb.zero_point };
    let acc = p.node(&g.label(&g.core.name), op, &[a.into(), b.into()]);
    // The greatest sum of products of bytes less their zero points.
    let most = g.view.graph.ty(a).dims.last().and_then(Dim::known)? as f64 * 255.0 * 255.0;
    let v = requantize(g, &mut p, g.name(), (acc, axis), vec![0; columns], &vec![(factor, most); columns])?;
    g.finish(p, v)
}

pub(super) fn elements(g: &Group) -> Option<Patch> {
    let (a, qa) = g.dequantized(g.core.inputs[0])?;
    let (b, qb) = g.dequantized(g.core.inputs[1])?;
    let factor = f64::from(qa.scale) * f64::from(qb.scale) / f64::from(g.out.scale);
    let (multiplier, shift, mode) = scaling(&[(factor, 255.0 * 255.0)])?;
    let op = QMul {
        a_zero_point: qa.zero_point,
        b_zero_point: qb.zero_point,
        multiplier: multiplier[0],
        shift: i8::try_from(shift[0]).ok()?,
        zero_point: g.out.zero_point,
        lo: g.lo,
        hi: g.hi,
        mode,
    };
    let mut p = Patch::new("qmul");
    let v = p.node(g.name(), op, &[a.into(), b.into()]);
    g.finish(p, v)
}
