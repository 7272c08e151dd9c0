//! Elements that indices or masks choose, and writes to them.

use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::{NodeContext, Operand};
use crate::frontend::reason::Reason;
use crate::frontend::semantic::movement::{self, check_indices, flat_index, from_end};
use crate::frontend::semantic::pad;
use crate::frontend::semantic::reduce;
use crate::frontend::semantic::scatter::{self, Reduction};
use crate::graph::op::{Expand, Gather, GatherElements, Select};
use crate::graph::{DType, Tensor, ValueId};

pub(super) fn embedding(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["padding_idx", "scale_grad_by_freq", "sparse"]);
    let (weight, indices) = (n.tensor("weight")?, n.tensor("indices")?);
    n.axis(0, n.ty(weight).rank())?;
    check_indices(n, indices, weight, 0)?;
    Ok(n.node("", Gather { axis: 0 }, &[weight, indices])?.into())
}

pub(super) fn index_select(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, index) = (n.tensor("self")?, n.tensor("index")?);
    let axis = n.dim("dim", 0, n.ty(v).rank())?;
    check_indices(n, index, v, axis)?;
    let count = n.shape(index)?.iter().product();
    let index = n.reshape("index", index, &[count])?;
    Ok(n.node("", Gather { axis }, &[v, index])?.into())
}

/// The data cut to the sizes of the indices in the other dimensions, as gathering elements has it.
pub(super) fn gather(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["sparse_grad"]);
    let (v, index) = (n.tensor("self")?, n.tensor("index")?);
    let axis = n.dim("dim", 0, n.ty(v).rank())?;
    gathered(n, v, index, axis)
}

fn gathered(n: &mut NodeContext, v: ValueId, index: ValueId, axis: usize) -> Result<Value, Reason> {
    let (shape, chosen) = (n.shape(v)?, n.shape(index)?);
    if shape.is_empty() {
        return Ok(v.into());
    }
    if chosen.len() != shape.len() {
        return Err(format!("its index {} does not suit its data {}", n.ty(index), n.ty(v)).into());
    }
    let mut ends: Vec<(i64, i64)> = vec![(0, 0); shape.len()];
    for a in (0..shape.len()).filter(|a| *a != axis) {
        ends[a].1 = chosen[a] as i64 - shape[a] as i64;
    }
    let v = pad::constant(n, "cut", v, &ends, 0.0)?;
    check_indices(n, index, v, axis)?;
    Ok(n.node("", GatherElements { axis }, &[v, index])?.into())
}

pub(super) fn take_along_dim(n: &mut NodeContext) -> Result<Value, Reason> {
    let (mut v, mut index) = (n.tensor("self")?, n.tensor("indices")?);
    let Some(axis) = n.optional_int("dim")? else {
        for operand in [&mut v, &mut index] {
            let count = n.shape(*operand)?.iter().product();
            *operand = n.reshape("flat", *operand, &[count])?;
        }
        return gathered(n, v, index, 0);
    };
    let rank = n.ty(v).rank();
    let axis = n.axis(axis, rank)?;
    let (mut data, mut chosen) = (n.shape(v)?, n.shape(index)?);
    for a in (0..rank.min(chosen.len())).filter(|a| *a != axis) {
        let most = data[a].max(chosen[a]);
        (data[a], chosen[a]) = (most, most);
    }
    let (v, index) = (movement::expand_to(n, v, &data)?, movement::expand_to(n, index, &chosen)?);
    gathered(n, v, index, axis)
}

/// Elements of the flattened data.
pub(super) fn take(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, index) = (n.tensor("self")?, n.tensor("index")?);
    let count = n.shape(v)?.iter().product();
    let v = n.reshape("flat", v, &[count])?;
    check_indices(n, index, v, 0)?;
    Ok(n.node("", Gather { axis: 0 }, &[v, index])?.into())
}

/// Indices of some dimensions of the data, with the dimensions that have them; known masks become indices.
fn indices(n: &mut NodeContext, v: ValueId) -> Result<Vec<(usize, ValueId)>, Reason> {
    let list = n.optional_tensors("indices")?;
    let (mut all, mut axis) = (Vec::new(), 0);
    for index in list {
        let Some(index) = index else {
            axis += 1;
            continue;
        };
        if !matches!(n.ty(index).dtype, DType::Bool | DType::U8) {
            all.push((axis, index));
            axis += 1;
            continue;
        }
        let Some(mask) = n.constant_of(index).cloned() else {
            n.must_know(index);
            return Err("it chooses elements by a mask, whose number is known only at run time; use `where`".into());
        };
        let shape = mask.shape().to_vec();
        let places: Vec<usize> =
            mask.doubles().iter().enumerate().filter(|(_, x)| **x != 0.0).map(|(i, _)| i).collect();
        let mut step: usize = shape.iter().product();
        for &size in &shape {
            step /= size.max(1);
            let column = places.iter().map(|place| (place / step.max(1) % size.max(1)) as i64).collect();
            let column = n.constant("mask", Tensor::vector(column))?;
            all.push((axis, column));
            axis += 1;
        }
    }
    if axis > n.ty(v).rank() {
        return Err(format!("it has more indices than its data {} have dimensions", n.ty(v)).into());
    }
    Ok(all)
}

/// The order in which the indexed dimensions come first, and whether they are side by side.
fn order(rank: usize, axes: &[usize]) -> (Vec<usize>, bool) {
    let rest = (0..rank).filter(|d| !axes.contains(d));
    (axes.iter().copied().chain(rest).collect(), axes.windows(2).all(|w| w[1] == w[0] + 1))
}

pub(super) fn index(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let chosen = indices(n, v)?;
    let shape = n.shape(v)?;
    match chosen.as_slice() {
        [] => return Ok(v.into()),
        &[(axis, index)] => {
            check_indices(n, index, v, axis)?;
            let index = n.cast("index", index, DType::I64)?;
            let index = from_end(n, index, shape[axis] as i64)?;
            return Ok(n.node("", Gather { axis }, &[v, index])?.into());
        }
        _ => {}
    }
    let axes: Vec<usize> = chosen.iter().map(|(axis, _)| *axis).collect();
    let columns: Vec<ValueId> = chosen.iter().map(|(_, index)| *index).collect();
    let (perm, adjacent) = order(shape.len(), &axes);
    let first = if perm.iter().copied().eq(0..perm.len()) { v } else { n.transposed("order", v, &perm)? };
    let flat = flat_index(n, &columns, (first, 0), None)?;
    let ordered = n.shape(first)?;
    let mut rows = vec![ordered[..axes.len()].iter().product()];
    rows.extend_from_slice(&ordered[axes.len()..]);
    let data = n.reshape("rows", first, &rows)?;
    let v = n.node("chosen", Gather { axis: 0 }, &[data, flat])?;
    // Dimensions of indices that are side by side take their place; others come first.
    let (own, at) = (n.ty(flat).rank(), if adjacent { axes[0] } else { 0 });
    if at == 0 {
        return Ok(v.into());
    }
    let rank = n.ty(v).rank();
    let perm: Vec<usize> = (own..own + at).chain(0..own).chain(own + at..rank).collect();
    Ok(n.transposed("", v, &perm)?.into())
}

pub(super) fn index_put(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, updates) = (n.tensor("self")?, n.tensor("values")?);
    let reduction = if n.flag("accumulate", false)? { Reduction::Add } else { Reduction::None };
    let list = n.optional_tensors("indices")?;
    // A mask of the data's shape chooses between the data and one value.
    if let [Some(mask)] = list.as_slice()
        && n.ty(*mask).dtype == DType::Bool
        && n.constant_of(*mask).is_none()
        && n.ty(updates).element_count() == Some(1)
        && reduction == Reduction::None
    {
        let mut shape = n.shape(*mask)?;
        shape.resize(n.ty(v).rank(), 1);
        let mask = n.reshape("mask", *mask, &shape)?;
        let value = n.reshape("value", updates, &[])?;
        return Ok(n.node("", Select {}, &[mask, value, v])?.into());
    }
    let chosen = indices(n, v)?;
    let shape = n.shape(v)?;
    let axes: Vec<usize> = chosen.iter().map(|(axis, _)| *axis).collect();
    let (perm, adjacent) = order(shape.len(), &axes);
    let is_ordered = perm.iter().copied().eq(0..perm.len());
    let data = if is_ordered { v } else { n.transposed("order", v, &perm)? };
    let ordered = n.shape(data)?;
    // All indices in one shape, as columns.
    let common = movement::broadcast_shape(n, chosen.iter().map(|(_, index)| *index))?;
    let mut columns = Vec::new();
    for &(axis, index) in &chosen {
        let index = n.cast("index", index, DType::I64)?;
        let index = from_end(n, index, shape[axis] as i64)?;
        let index = n.node("index/wide", Expand { shape: common.clone() }, &[index])?;
        columns.push(n.reshape("index/column", index, &[common.as_slice(), &[1]].concat())?);
    }
    let tuples = movement::beside(n, "tuples", common.len(), &columns)?;
    let rest = &ordered[axes.len()..];
    // Updates have the dimensions of indices where the indexed dimensions are, if these are side by side.
    let at = if adjacent { axes.first().copied().unwrap_or(0) } else { 0 };
    let wanted = [&rest[..at], &common, &rest[at..]].concat();
    let dtype = n.ty(v).dtype;
    let updates = n.cast("values", updates, dtype)?;
    let updates = movement::expand_to(n, updates, &wanted)?;
    let updates = if at == 0 {
        updates
    } else {
        let perm: Vec<usize> = (at..at + common.len()).chain(0..at).chain(at + common.len()..wanted.len()).collect();
        n.transposed("values/order", updates, &perm)?
    };
    let v = scatter::nd(n, data, tuples, updates, reduction)?;
    if is_ordered {
        return Ok(v.into());
    }
    let back: Vec<usize> = (0..perm.len()).map(|d| perm.iter().position(|p| *p == d).unwrap_or(d)).collect();
    Ok(n.transposed("", v, &back)?.into())
}

/// The data with new elements, which are brought to their shape and type.
pub(super) fn copy(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["non_blocking"]);
    let (v, source) = (n.tensor("self")?, n.tensor("src")?);
    let dtype = n.ty(v).dtype;
    let source = n.as_type("source", Operand::Tensor(source), dtype)?;
    let shape = n.shape(v)?;
    Ok(movement::expand_to(n, source, &shape)?.into())
}

pub(super) fn masked_fill(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, mask, value) = (n.tensor("self")?, n.tensor("mask")?, n.operand("value")?);
    let dtype = n.result_type(0)?;
    let v = n.cast("self", v, dtype)?;
    let value = n.as_type("value", value, dtype)?;
    Ok(n.node("", Select {}, &[mask, value, v])?.into())
}

/// Scatters updates, or one value, with the reduction that `reduce` names.
pub(super) fn scatter(n: &mut NodeContext) -> Result<Value, Reason> {
    let reduction = match n.text("reduce")?.as_deref() {
        None => Reduction::None,
        Some("add") => Reduction::Add,
        Some("multiply") => Reduction::Mul,
        Some(other) => return Err(format!("unknown reduce `{other}`; use add or multiply").into()),
    };
    scattered(n, reduction)
}

pub(super) fn scatter_add(n: &mut NodeContext) -> Result<Value, Reason> {
    scattered(n, Reduction::Add)
}

pub(super) fn scatter_reduce(n: &mut NodeContext) -> Result<Value, Reason> {
    if !n.flag("include_self", true)? {
        return Err("include_self of False is not supported".into());
    }
    let reduction = match n.text("reduce")?.as_deref() {
        Some("sum") => Reduction::Add,
        Some("prod") => Reduction::Mul,
        Some("amax") => Reduction::Max,
        Some("amin") => Reduction::Min,
        other => {
            return Err(format!(
                "reduce of {} is not supported; use sum, prod, amax or amin",
                other.unwrap_or("nothing")
            )
            .into());
        }
    };
    scattered(n, reduction)
}

fn scattered(n: &mut NodeContext, reduction: Reduction) -> Result<Value, Reason> {
    let (v, index) = (n.tensor("self")?, n.tensor("index")?);
    let axis = n.dim("dim", 0, n.ty(v).rank())?;
    let (dtype, shape) = (n.ty(v).dtype, n.shape(index)?);
    let updates = if matches!(n.value("src")?, Value::None) {
        let value = n.operand("value")?;
        let value = n.as_type("value", value, dtype)?;
        n.node("updates", Expand { shape: shape.clone() }, &[value])?
    } else {
        // If there are more updates than indices, only the first are used.
        let source = n.tensor("src")?;
        let mut ends = Vec::new();
        for (own, wanted) in n.shape(source)?.iter().zip(&shape) {
            ends.push((0, *wanted as i64 - *own as i64));
        }
        pad::constant(n, "updates", source, &ends, 0.0)?
    };
    Ok(scatter::elements(n, v, index, updates, axis, reduction)?.into())
}

/// Rows along a dimension, with the reduction.
fn rows(n: &mut NodeContext, updates: ValueId, reduction: Reduction) -> Result<Value, Reason> {
    let (v, index) = (n.tensor("self")?, n.tensor("index")?);
    let rank = n.ty(v).rank();
    let axis = n.dim("dim", 0, rank)?;
    let count = n.shape(index)?.iter().product();
    let tuples = n.reshape("index", index, &[count, 1])?;
    let mut perm: Vec<usize> = (0..rank).collect();
    perm[..=axis].rotate_right(1);
    let mut back: Vec<usize> = (0..rank).collect();
    back[..=axis].rotate_left(1);
    let (data, updates) = (n.transposed("order", v, &perm)?, n.transposed("updates/order", updates, &perm)?);
    let v = scatter::nd(n, data, tuples, updates, reduction)?;
    Ok(n.transposed("", v, &back)?.into())
}

pub(super) fn index_add(n: &mut NodeContext) -> Result<Value, Reason> {
    let source = n.tensor("source")?;
    let source = n.times("alpha", source)?;
    rows(n, source, Reduction::Add)
}

pub(super) fn index_copy(n: &mut NodeContext) -> Result<Value, Reason> {
    let source = n.tensor("source")?;
    rows(n, source, Reduction::None)
}

pub(super) fn index_fill(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, index, value) = (n.tensor("self")?, n.tensor("index")?, n.operand("value")?);
    let dtype = n.ty(v).dtype;
    let value = n.as_type("value", value, dtype)?;
    let mut shape = n.shape(v)?;
    let axis = n.dim("dim", 0, shape.len())?;
    shape[axis] = n.shape(index)?.iter().product();
    let updates = n.node("updates", Expand { shape }, &[value])?;
    rows(n, updates, Reduction::None)
}

/// The data with a part of them replaced: the part's places are taken from a table of all places.
fn replaced(
    n: &mut NodeContext,
    part: impl FnOnce(&mut NodeContext, ValueId) -> Result<ValueId, Reason>,
) -> Result<Value, Reason> {
    let (v, source) = (n.tensor("self")?, n.tensor("src")?);
    let shape = n.shape(v)?;
    let count = shape.iter().product();
    let places = n.table("places", &shape, |i| i as i64)?;
    let places = part(n, places)?;
    let chosen = n.shape(places)?.iter().product();
    let places = n.reshape("places/column", places, &[chosen, 1])?;
    let (data, source) = (n.reshape("flat", v, &[count])?, n.reshape("source", source, &[chosen])?);
    let v = scatter::nd(n, data, places, source, Reduction::None)?;
    Ok(n.reshape("replaced", v, &shape)?.into())
}

pub(super) fn select_scatter(n: &mut NodeContext) -> Result<Value, Reason> {
    replaced(n, |n, places| {
        let shape = n.shape(places)?;
        let axis = n.dim("dim", 0, shape.len())?;
        let index = n.int("index", 0)?;
        let index = n.axis(index, shape[axis])?;
        movement::part(n, "part", places, axis, index, 1)
    })
}

pub(super) fn slice_scatter(n: &mut NodeContext) -> Result<Value, Reason> {
    replaced(n, |n, places| {
        let ranges = super::shape::ranges(n, n.ty(places).rank())?;
        movement::sliced(n, "part", places, &ranges)
    })
}

pub(super) fn one_hot(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, depth) = (n.tensor("self")?, n.int("num_classes", -1)?);
    if depth < 0 {
        return Err("num_classes must be given, because the shape of the result depends on it".into());
    }
    let values = n.made("values", Tensor::vector(vec![0i64, 1]));
    Ok(reduce::one_hot(n, v, depth, values, -1, false)?.into())
}

pub(super) fn lower_triangle(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, k) = (n.tensor("self")?, n.int("diagonal", 0)?);
    Ok(movement::triangle(n, v, k, false)?.into())
}

pub(super) fn upper_triangle(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, k) = (n.tensor("self")?, n.int("diagonal", 0)?);
    Ok(movement::triangle(n, v, k, true)?.into())
}
