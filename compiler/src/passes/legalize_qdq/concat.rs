//! Concatenations: each part at the scale of the whole.

use super::{Group, rescaled};
use crate::graph::op::Concat;
use crate::passes::{Patch, Ref};

pub(super) fn rewrite(g: &Group, op: &Concat) -> Option<Patch> {
    let mut p = Patch::new("concat");
    let mut parts: Vec<Ref> = Vec::new();
    for (i, &v) in g.core.inputs.iter().enumerate() {
        let (data, from) = g.dequantized(v)?;
        let same = from == g.out && (g.lo, g.hi) == (-128, 127);
        parts.push(if same {
            data.into()
        } else {
            p.node(&g.label(&format!("part{i}")), rescaled(g, from, 1.0)?, &[data.into()])
        });
    }
    let v = p.node(g.name(), op.clone(), &parts);
    g.finish(p, v)
}
