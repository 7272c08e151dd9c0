//! The greatest elements.

use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::reduce;

pub(super) fn top_k(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["sorted"]);
    let v = n.tensor("self")?;
    let axis = n.dim("dim", -1, n.ty(v).rank())?;
    let (k, greatest) = (n.int("k", 1)?, n.flag("largest", true)?);
    Ok(reduce::top_k(n, v, axis, k, greatest)?.into())
}

pub(super) fn arg_sort(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["stable"]);
    let v = n.tensor("self")?;
    let shape = n.shape(v)?;
    let axis = n.dim("dim", -1, shape.len())?;
    let greatest = n.flag("descending", false)?;
    let [_, indices] = reduce::top_k(n, v, axis, shape[axis] as i64, greatest)?;
    Ok(indices.into())
}

/// All elements in order, and their indices.
pub(super) fn sort(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["stable"]);
    let v = n.tensor("self")?;
    let shape = n.shape(v)?;
    let only_values = n.proto.target.contains("msort");
    let axis = n.dim("dim", if only_values { 0 } else { -1 }, shape.len())?;
    let greatest = n.flag("descending", false)?;
    let sorted = reduce::top_k(n, v, axis, shape[axis] as i64, greatest)?;
    Ok(if only_values { sorted[0].into() } else { sorted.into() })
}
