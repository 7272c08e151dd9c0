//! The greatest elements.

use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::reduce;
use crate::graph::ValueId;

pub(super) fn top_k(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["sorted"]);
    let v = n.tensor("self")?;
    let axis = n.dim("dim", -1, n.ty(v).rank())?;
    let (k, greatest) = (n.int("k", 1)?, n.flag("largest", true)?);
    Ok(reduce::top_k(n, v, axis, k, greatest)?.into())
}

/// All elements along a dimension in order, and their indices.
fn sorted(n: &mut NodeContext, default: i64) -> Result<[ValueId; 2], Reason> {
    n.ignore(&["stable"]);
    let v = n.tensor("self")?;
    let shape = n.shape(v)?;
    let axis = n.dim("dim", default, shape.len())?;
    let greatest = n.flag("descending", false)?;
    reduce::top_k(n, v, axis, shape[axis] as i64, greatest)
}

pub(super) fn arg_sort(n: &mut NodeContext) -> Result<Value, Reason> {
    Ok(sorted(n, -1)?[1].into())
}

pub(super) fn sort(n: &mut NodeContext) -> Result<Value, Reason> {
    Ok(sorted(n, -1)?.into())
}

/// The elements alone, along dimension 0.
pub(super) fn sort_first(n: &mut NodeContext) -> Result<Value, Reason> {
    Ok(sorted(n, 0)?[0].into())
}
