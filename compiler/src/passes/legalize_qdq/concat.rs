//! Concatenations: brings each part to the scale of the result.

use super::behind::ProductSearch;
use super::{Group, rescaled};
use crate::graph::op::{Clip, Concat};
use crate::passes::{Patch, Ref};

/// Rewrites a concatenation if at least one part is dequantized or comes from a product. A part that is not dequantized
/// gets a `quantize` of its own, which can be the end of another group.
pub(super) fn rewrite(g: &Group, op: &Concat) -> Option<Patch> {
    let mut search = ProductSearch::new(g.view);
    if !g.core.inputs.iter().any(|&v| g.dequantized(v).is_some() || search.value(v).is_ok()) {
        return None;
    }
    let mut p = Patch::new("concat");
    let mut parts: Vec<Ref> = Vec::new();
    for (i, &v) in g.core.inputs.iter().enumerate() {
        let clamped = (g.lo, g.hi) != (-128, 127);
        let part = g.label(&format!("part{i}"));
        parts.push(match g.dequantized(v) {
            Some((data, from)) if from == g.out && !clamped => data.into(),
            Some((data, from)) => p.node(&part, rescaled(g, from, 1.0)?, &[data.into()]),
            None => {
                let quantized = p.node(&part, g.end.quantize.clone(), &[v.into()]);
                let clip = Clip { lo: g.lo as f32, hi: g.hi as f32 };
                if clamped { p.node(&format!("{part}/clip"), clip, &[quantized]) } else { quantized }
            }
        });
    }
    let v = p.node(g.name(), op.clone(), &parts);
    Some(g.finish(p, v))
}
