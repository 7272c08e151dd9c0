//! ScatterND and ScatterElements: write updates into the data, or combine them with the elements there.
//!
//! If the positions are known, each row of the result is gathered from the rows of data and updates, and rows with the
//! same position are combined one after the other. If they are computed at run time, every position is compared with
//! every index.

use super::SemanticBuilder;
use super::movement::{columns, flat_index, from_end, part};
use crate::frontend::reason::Reason;
use crate::graph::op::{self, BinaryKind, Concat, Expand, Gather, GatherElements, ReduceKind, Select};
use crate::graph::{DType, Tensor, TensorData, TensorType, ValueId, strides_of};

/// Maximum number of updates of one position, or of updates to combine one by one at positions computed at run time.
const MOST_COMBINED: usize = 64;

/// Maximum number of pairs of a position and an index to compare at run time.
const MOST_COMPARED: usize = 1 << 24;

/// How an update is combined with the element at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// The last update wins.
    None,
    Add,
    Mul,
    Max,
    Min,
}

impl Reduction {
    fn combine(self, n: &mut SemanticBuilder, suffix: &str, a: ValueId, b: ValueId) -> Result<ValueId, Reason> {
        match self {
            Reduction::None => Ok(b),
            Reduction::Add => n.add(suffix, a, b),
            Reduction::Mul => n.binary(suffix, BinaryKind::Mul, a, b),
            Reduction::Max => n.binary(suffix, BinaryKind::Max, a, b),
            Reduction::Min => n.binary(suffix, BinaryKind::Min, a, b),
        }
    }
}

fn alike(n: &SemanticBuilder, data: ValueId, updates: ValueId) -> Result<(), Reason> {
    let (data, updates) = (n.ty(data), n.ty(updates));
    if data.dtype == updates.dtype {
        return Ok(());
    }
    Err(format!("its updates must have the data's type, found {updates} and {data}").into())
}

fn product(sizes: &[usize]) -> Result<usize, Reason> {
    let all = sizes.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    all.ok_or_else(|| "its operands are too large".into())
}

/// Known indices, with negative ones counted from the end of `size` elements.
fn wrapped(known: &Tensor, axis: usize, size: usize) -> Result<Vec<usize>, Reason> {
    op::check_indices(known, axis, size)?;
    let place = |i: i64| if i < 0 { (i + size as i64) as usize } else { i as usize };
    match known.data() {
        TensorData::I32(v) => Ok(v.iter().map(|&i| place(i.into())).collect()),
        TensorData::I64(v) => Ok(v.iter().map(|&i| place(i)).collect()),
        _ => Err(format!("its indices must be of type i32 or i64, found {}", known.ty()).into()),
    }
}

/// Writes slices of updates to the positions that index tuples, `[…, width]`, name.
pub fn nd(
    n: &mut SemanticBuilder,
    data: ValueId,
    indices: ValueId,
    updates: ValueId,
    reduction: Reduction,
) -> Result<ValueId, Reason> {
    alike(n, data, updates)?;
    let (shape, tuples) = (n.shape(data)?, n.shape(indices)?);
    let Some((&width, outer)) = tuples.split_last() else { return Err("its indices must have dimensions".into()) };
    let wanted: Vec<usize> = outer.iter().chain(shape.get(width..).unwrap_or_default()).copied().collect();
    if width == 0 || width > shape.len() || n.shape(updates)? != wanted {
        let found = n.ty(updates);
        return Err(format!(
            "its updates {found} do not match data {shape:?} with indices {tuples:?}; their shape must be \
                 {wanted:?}"
        )
        .into());
    }
    let (places, row, count) = (product(&shape[..width])?, product(&shape[width..])?, product(outer)?);
    if places * row == 0 || count == 0 {
        return Ok(data);
    }
    let rows = [n.reshape("data", data, &[places, row])?, n.reshape("updates", updates, &[count, row])?];
    let columns = columns(n, indices, &[count])?;
    let known: Option<Vec<_>> = columns.iter().map(|&c| n.constant_of(c).cloned()).collect();
    let v = match known {
        Some(known) => {
            let steps = strides_of(&shape[..width]);
            let mut targets = vec![0; count];
            for (k, column) in known.iter().enumerate() {
                let list = wrapped(column, k, shape[k])?;
                targets.iter_mut().zip(list).for_each(|(t, i)| *t += i * steps[k]);
            }
            in_known_places(n, rows, &targets, reduction)?
        }
        None => {
            // A tuple with an index out of range matches no position.
            let flat = flat_index(n, &columns, (data, 0), Some(places))?;
            let flat = n.reshape("flat", flat, &[1, count, 1])?;
            let data = n.reshape("data/stack", rows[0], &[1, places, row])?;
            let updates = n.reshape("updates/stack", rows[1], &[1, count, row])?;
            in_computed_places(n, [data, updates], flat, reduction)?
        }
    };
    n.reshape("", v, &shape)
}

/// Writes each update to the position along a dimension that its index names.
pub fn elements(
    n: &mut SemanticBuilder,
    data: ValueId,
    indices: ValueId,
    updates: ValueId,
    axis: usize,
    reduction: Reduction,
) -> Result<ValueId, Reason> {
    alike(n, data, updates)?;
    let (shape, chosen) = (n.shape(data)?, n.shape(indices)?);
    let fits = chosen.len() == shape.len() && (0..shape.len()).all(|a| a == axis || chosen[a] <= shape[a]);
    if !fits || n.shape(updates)? != chosen {
        let found = n.ty(updates);
        return Err(
            format!("its updates {found} and indices {chosen:?} do not match data {shape:?} along {axis}").into()
        );
    }
    if product(&shape)? == 0 || product(&chosen)? == 0 {
        return Ok(data);
    }
    let v = match n.constant_of(indices).cloned() {
        Some(known) => {
            let steps = strides_of(&shape);
            let along = wrapped(&known, axis, shape[axis])?;
            let from = strides_of(&chosen);
            let base = |i: usize| -> usize {
                (0..shape.len()).filter(|&a| a != axis).map(|a| i / from[a] % chosen[a] * steps[a]).sum()
            };
            let targets: Vec<usize> = along.iter().enumerate().map(|(i, &p)| base(i) + p * steps[axis]).collect();
            let (all, count) = (product(&shape)?, targets.len());
            let rows = [n.reshape("data", data, &[all, 1])?, n.reshape("updates", updates, &[count, 1])?];
            in_known_places(n, rows, &targets, reduction)?
        }
        None => elements_computed(n, [data, updates], indices, axis, reduction)?,
    };
    n.reshape("", v, &shape)
}

/// Updates elements at positions computed at run time: those that the indices can reach; the rest is appended.
fn elements_computed(
    n: &mut SemanticBuilder,
    [data, updates]: [ValueId; 2],
    indices: ValueId,
    axis: usize,
    reduction: Reduction,
) -> Result<ValueId, Reason> {
    let (shape, chosen) = (n.shape(data)?, n.shape(indices)?);
    let mut reached = chosen.clone();
    reached[axis] = shape[axis];
    let region = |n: &mut SemanticBuilder, starts: Vec<usize>, sizes: Vec<usize>| {
        let steps = vec![1; sizes.len()];
        n.node("region", op::Slice { starts, sizes, steps }, &[data])
    };
    let mut v = if reached == shape { data } else { region(n, vec![0; shape.len()], reached.clone())? };
    let stack = |size: usize| Ok::<_, Reason>([product(&reached[..axis])?, size, product(&reached[axis + 1..])?]);
    let rows = [n.reshape("data", v, &stack(shape[axis])?)?, n.reshape("updates", updates, &stack(chosen[axis])?)?];
    let index = n.cast("index", indices, DType::I64)?;
    let index = from_end(n, index, shape[axis] as i64)?;
    let index = n.reshape("index/stack", index, &stack(chosen[axis])?)?;
    v = in_computed_places(n, rows, index, reduction)?;
    v = n.reshape("reached", v, &reached)?;
    for a in 0..shape.len() {
        if reached[a] == shape[a] {
            continue;
        }
        let (mut starts, mut sizes) = (vec![0; shape.len()], reached.clone());
        (starts[a], sizes[a]) = (reached[a], shape[a] - reached[a]);
        let rest = region(n, starts, sizes)?;
        v = n.node("beside", Concat { axis: a }, &[v, rest])?;
        reached[a] = shape[a];
    }
    Ok(v)
}

/// Writes rows of updates, `[count, row]`, into rows of data, `[places, row]`, at known positions.
fn in_known_places(
    n: &mut SemanticBuilder,
    [data, updates]: [ValueId; 2],
    targets: &[usize],
    reduction: Reduction,
) -> Result<ValueId, Reason> {
    let (places, row) = (n.shape(data)?[0], n.shape(data)?[1]);
    if i32::try_from(places + targets.len()).is_err() {
        return Err("its operands are too large".into());
    }
    // The counts of updates and the table of each round have this size.
    let index = TensorType::new(DType::I32, &[places]);
    n.reserve(&index)?;
    let mut hits = vec![0u32; places];
    targets.iter().for_each(|&t| hits[t] += 1);
    let rounds = if reduction == Reduction::None { 1 } else { hits.iter().copied().max().unwrap_or(0) };
    if rounds > MOST_COMBINED as u32 {
        return Err(format!("{rounds} updates of one element are not supported; the maximum is {MOST_COMBINED}").into());
    }
    // The row for a position without an update in a round: its own row, or one that changes nothing.
    let neutral = match reduction {
        Reduction::Add => Some(0.0),
        Reduction::Mul => Some(1.0),
        _ => None,
    };
    let other = match neutral {
        Some(x) => {
            let x = n.scalar("neutral", x);
            let dtype = n.ty(data).dtype;
            let x = n.cast("neutral/cast", x, dtype)?;
            n.node("neutral/row", Expand { shape: vec![1, row] }, &[x])?
        }
        None => data,
    };
    let both = n.node("rows", Concat { axis: 0 }, &[other, updates])?;
    let first = if neutral.is_some() { 1 } else { places };
    let mut done = hits;
    let mut v = data;
    for round in 0..rounds {
        n.reserve(&index)?;
        let mut from: Vec<i32> = (0..places).map(|p| if neutral.is_some() { 0 } else { p as i32 }).collect();
        done.fill(0);
        for (u, &t) in targets.iter().enumerate() {
            if reduction == Reduction::None || done[t] == round {
                from[t] = (first + u) as i32;
            }
            done[t] += 1;
        }
        let table = n.made(&format!("{round}/from"), Tensor::vector(from));
        let rows = n.node(&format!("{round}/rows"), Gather { axis: 0 }, &[both, table])?;
        v = reduction.combine(n, &format!("{round}/combined"), v, rows)?;
    }
    Ok(v)
}

/// Writes updates `[p, count, q]` into data `[p, places, q]` along dimension 1, at positions `[p, count, q or 1]` (i64,
/// from 0) computed at run time; positions out of range are ignored.
fn in_computed_places(
    n: &mut SemanticBuilder,
    [data, updates]: [ValueId; 2],
    index: ValueId,
    reduction: Reduction,
) -> Result<ValueId, Reason> {
    let [p, places, q] = stack_of(n, data)?;
    let [_, count, own] = stack_of(n, index)?;
    let remedy = "indices that follow from constants and sizes have no such limit";
    if reduction != Reduction::None {
        if count > MOST_COMBINED {
            return Err(format!(
                "combining {count} updates at indices computed at run time is not supported; the maximum is \
                 {MOST_COMBINED}, but {remedy}"
            )
            .into());
        }
        let numbers = n.table("places", &[places, 1], |i| i as i64)?;
        let mut v = data;
        for u in 0..count {
            let at = part(n, &format!("{u}/index"), index, 1, u, 1)?;
            let update = part(n, &format!("{u}/update"), updates, 1, u, 1)?;
            let here = n.binary(&format!("{u}/here"), BinaryKind::Equal, numbers, at)?;
            let new = reduction.combine(n, &format!("{u}/combined"), v, update)?;
            v = n.node(&format!("{u}/kept"), Select {}, &[here, new, v])?;
        }
        return Ok(v);
    }
    let pairs = [p, places, count, own].iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    if pairs.is_none_or(|pairs| pairs > MOST_COMPARED) {
        return Err(format!(
            "{count} updates of {places} elements at indices computed at run time are not supported; the maximum is \
             {MOST_COMPARED} pairs, but {remedy}"
        )
        .into());
    }
    let numbers = n.table("places", &[places, 1, 1], |i| i as i64)?;
    let order = n.table("order", &[count, 1], |i| i as i32)?;
    let none = n.made("none", Tensor::scalar(-1));
    let apart = n.reshape("index/apart", index, &[p, 1, count, own])?;
    let here = n.binary("here", BinaryKind::Equal, numbers, apart)?;
    let which = n.node("which", Select {}, &[here, order, none])?;
    let last = n.reduce("last", ReduceKind::Max, &[2], false, which)?;
    let zero = n.made("zero", Tensor::scalar(0));
    let updated = n.binary("updated", BinaryKind::LessEqual, zero, last)?;
    let from = n.binary("from", BinaryKind::Max, last, zero)?;
    let rows = if own == q {
        n.node("rows", GatherElements { axis: 1 }, &[updates, from])?
    } else {
        // One index selects a whole row; there is only one stack.
        let (from, updates) =
            (n.reshape("from/row", from, &[places])?, n.reshape("updates/rows", updates, &[count, q])?);
        let rows = n.node("rows", Gather { axis: 0 }, &[updates, from])?;
        n.reshape("rows/stack", rows, &[1, places, q])?
    };
    n.node("scattered", Select {}, &[updated, rows, data])
}

fn stack_of(n: &SemanticBuilder, v: ValueId) -> Result<[usize; 3], Reason> {
    n.shape(v)?.try_into().map_err(|_| Reason(format!("needs 3 dimensions, found {}", n.ty(v))))
}
