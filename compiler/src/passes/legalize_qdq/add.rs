//! Additions and subtractions.

use super::Group;
use crate::graph::op::QAdd;
use crate::passes::Patch;
use tilewright_hw::num::{Qadd, QaddOperand, quantize_multiplier};

/// Operands are multiplied by this power of two before they are scaled; TFLite's value for 8 bits.
const LEFT_SHIFT: u8 = 20;

/// Rewrites a sum, or a difference: a sum with a negative factor for the second operand.
pub(super) fn rewrite(g: &Group, difference: bool) -> Option<Patch> {
    let (a, qa) = g.dequantized(g.core.inputs[0])?;
    let (b, qb) = g.dequantized(g.core.inputs[1])?;
    let twice = 2.0 * f64::from(qa.scale.max(qb.scale));
    let operand = |zero_point: i32, factor: f64| {
        let (multiplier, shift) = quantize_multiplier(factor);
        QaddOperand { zero_point, multiplier, shift }
    };
    let out = twice / (f64::from(1u32 << LEFT_SHIFT) * f64::from(g.out.scale));
    if !out.is_finite() || out >= 1.0 {
        return None;
    }
    let mut b_operand = operand(qb.zero_point, f64::from(qb.scale) / twice);
    if difference {
        b_operand.multiplier = -b_operand.multiplier;
    }
    let params = Qadd {
        a: operand(qa.zero_point, f64::from(qa.scale) / twice),
        b: b_operand,
        out: operand(g.out.zero_point, out),
        left_shift: LEFT_SHIFT,
        lo: g.lo,
        hi: g.hi,
    };
    let mut p = Patch::new("qadd");
    let v = p.node(g.name(), QAdd { params }, &[a.into(), b.into()]);
    Some(g.finish(p, v))
}
