//! Element-wise products of two quantized tensors.

use super::{Group, scaling};
use crate::graph::op::QMul;
use crate::passes::Patch;

pub(super) fn rewrite(g: &Group) -> Option<Patch> {
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
    Some(g.finish(p, v))
}
