//! Operators whose results have a number of rows that depends on the data. A function of the runtime computes them; the
//! results have room for the most rows that there can be, and the number of those that are there is a value of its own.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::graph::op::{Attr, Gather, Packed};
use crate::graph::{DType, Op, Tensor, TensorType, ValueId};
use std::collections::BTreeMap;
use tilewright_runtime::builtin;

/// Adds a call of a function of the runtime, whose last result is the number of rows. `rows` are the results that have
/// these rows, each with their dimension.
fn counted(
    n: &mut NodeContext,
    function: &str,
    operands: &[ValueId],
    attributes: &[(&str, i64)],
    mut types: Vec<TensorType>,
    rows: &[(usize, usize)],
) -> Result<Vec<ValueId>, Reason> {
    if !n.cx.around.is_empty() {
        return Err("its number of rows depends on the data, which is not supported within If, Loop and Scan".into());
    }
    types.push(TensorType::new(DType::I64, &[]));
    let attributes = attributes.iter().map(|(name, value)| (name.to_string(), Attr::Int(*value)));
    let function = function.to_owned();
    let op = Op::Packed(Packed { function, attributes: attributes.collect::<BTreeMap<_, _>>(), types });
    let name = n.name().to_owned();
    let mut values = n.graph.node_outputs(&name, op, operands)?;
    let number = values.pop().ok_or("it has no results")?;
    for (result, axis) in rows {
        n.counted(values[*result], *axis, number);
    }
    Ok(values)
}

/// The boxes that do not overlap better ones too much.
pub(super) fn non_max_suppression(n: &mut NodeContext) -> Result<(), Reason> {
    let (boxes, scores) = (n.plain(0)?, n.plain(1)?);
    let (shape, shape_of_scores) = (n.shape(boxes)?, n.shape(scores)?);
    let (&[batches, count, 4], &[_, classes, _]) = (&shape[..], &shape_of_scores[..]) else {
        return Err(format!(
            "its boxes must be [B, N, 4] and its scores [B, C, N], found {shape:?} and {shape_of_scores:?}"
        )
        .into());
    };
    if shape_of_scores != [batches, classes, count] {
        return Err(format!("its scores {shape_of_scores:?} do not belong to its boxes {shape:?}").into());
    }
    let center = n.int("center_point_box").unwrap_or(0);
    // Without a number of boxes there are none.
    let known = if n.has_input(2) { n.known(2).and_then(|_| n.whole(2).ok()) } else { Some(0) };
    let of_class = known.map_or(count, |most| usize::try_from(most).unwrap_or(0).min(count));
    let most = batches * classes * of_class;
    if most == 0 {
        return n.output_known(Tensor::from_fn(&[0, 3], |_| 0i64));
    }
    let ty = TensorType::new(DType::I64, &[most, 3]);
    n.reserve(&ty)?;
    let limit = n.plain(2)?;
    let overlap = if n.has_input(3) { n.plain(3)? } else { n.scalar("iou_threshold", 0.0) };
    let mut operands = vec![boxes, scores, limit, overlap];
    if n.has_input(4) {
        operands.push(n.plain(4)?);
    }
    let attributes = [("most", most as i64), ("center_point_box", center)];
    let values = counted(n, builtin::NON_MAX_SUPPRESSION, &operands, &attributes, vec![ty], &[(0, 0)])?;
    n.output(values[0])
}

/// The places of the elements that are not 0.
pub(super) fn non_zero(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let shape = n.shape(data)?;
    let most = shape.iter().product::<usize>();
    let ty = TensorType::new(DType::I64, &[shape.len(), most]);
    n.reserve(&ty)?;
    let values = counted(n, builtin::NON_ZERO, &[data], &[("most", most as i64)], vec![ty], &[(0, 1)])?;
    n.output(values[0])
}

/// The dimension of the attribute `axis`, if it is set.
fn dimension(n: &NodeContext, rank: usize) -> Result<Option<usize>, Reason> {
    n.int("axis").map(|axis| n.axis(axis, rank)).transpose()
}

/// The parts of the data for which a condition holds.
pub(super) fn compress(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, condition) = (n.plain(0)?, n.plain(1)?);
    let (shape, parts) = (n.shape(data)?, n.shape(condition)?.iter().product::<usize>());
    let axis = dimension(n, shape.len())?;
    let there = axis.map_or(shape.iter().product(), |axis| shape[axis]);
    if let Some(known) = n.known(1) {
        let holds = known.doubles();
        let chosen: Vec<i64> = (0..there.min(parts)).filter(|i| holds[*i] != 0.0).map(|i| i as i64).collect();
        let data = if axis.is_none() { n.reshape("flat", data, &[there])? } else { data };
        let index = n.constant("index", Tensor::vector(chosen))?;
        let v = n.node("", Gather { axis: axis.unwrap_or(0) }, &[data, index])?;
        return n.output(v);
    }
    let most = there.min(parts);
    let mut attributes = vec![("most", most as i64)];
    attributes.extend(axis.map(|axis| ("axis", axis as i64)));
    let types = vec![parts_type(n.ty(data).dtype, &shape, axis, most)];
    let values = counted(n, builtin::COMPRESS, &[data, condition], &attributes, types, &[(0, axis.unwrap_or(0))])?;
    n.output(values[0])
}

/// The type of so many parts along a dimension, or of so many elements.
fn parts_type(dtype: DType, shape: &[usize], axis: Option<usize>, most: usize) -> TensorType {
    let Some(axis) = axis else { return TensorType::new(dtype, &[most]) };
    let mut shape = shape.to_vec();
    shape[axis] = most;
    TensorType::new(dtype, &shape)
}

/// The different parts of the data, the first place of each, the place of each part among them, and how often each is
/// there.
pub(super) fn unique(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let shape = n.shape(data)?;
    let axis = dimension(n, shape.len())?;
    let most = axis.map_or(shape.iter().product(), |axis| shape[axis]);
    let sorted = n.int("sorted").unwrap_or(1);
    let mut attributes = vec![("most", most as i64), ("sorted", sorted)];
    attributes.extend(axis.map(|axis| ("axis", axis as i64)));
    let list = || TensorType::new(DType::I64, &[most]);
    let types = vec![parts_type(n.ty(data).dtype, &shape, axis, most), list(), list(), list()];
    let with_rows = [(0, axis.unwrap_or(0)), (1, 0), (3, 0)];
    let values = counted(n, builtin::UNIQUE, &[data], &attributes, types, &with_rows)?;
    n.outputs(&values)
}
