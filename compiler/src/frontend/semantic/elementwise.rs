//! Functions of one element that the graph has no operator for.

use super::SemanticBuilder;
use crate::frontend::reason::Reason;
use crate::graph::ValueId;
use crate::graph::op::{BinaryKind, Select};

/// The elements above `alpha`, else 0.
pub fn thresholded(n: &mut SemanticBuilder, suffix: &str, v: ValueId, alpha: f32) -> Result<ValueId, Reason> {
    let at = |part: &str| if suffix.is_empty() { part.to_owned() } else { format!("{suffix}/{part}") };
    let (alpha, zero) = (n.scalar(&at("alpha"), alpha), n.scalar(&at("zero"), 0.0));
    let above = n.binary(&at("above"), BinaryKind::Less, alpha, v)?;
    n.node(suffix, Select {}, &[above, v, zero])
}
