//! Reads transposes as reorders of whole blocks.

use super::op::{Reorder, reorder};
use crate::codegen::accel::operator::Extracted;
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::view::View;
use crate::graph::op::{self, Layout, Op};
use crate::graph::{DType, Node, NodeId, ValueId};

/// Maximum number of reshapes between a value and a reader whose preferred views are considered.
const MOST_RESHAPES: usize = 4;

/// Reads a transpose as the cheapest equivalent: an alias if a view of the result has the same bytes in the same order,
/// otherwise a reorder of blocks.
pub fn transpose(reader: &Reader<'_>, id: NodeId, node: &Node, op: &op::Transpose) -> Read<Extracted<Reorder>> {
    let data = node.inputs[0];
    if reader.graph.ty(data).dtype != DType::I8 {
        return Err("its data are not i8, and the accelerator only moves bytes".into());
    }
    let from = (reader.known)(data).ok_or("its data are on the CPU")?;
    let (shape, result) = (reader.shape(data)?, reader.shape(node.output())?);
    let wanted = wanted(reader, node.output(), MOST_RESHAPES);
    let images = [Layout::Nhwc, Layout::Nchw].into_iter().filter_map(|layout| View::image(&result, layout));
    let matrices = (result.len() > 2).then(|| View::matrices(&result));
    let others = images.filter(|_| result.len() == 4).chain(matrices).chain([View::rows(&result)]);
    let source = |i: usize| source(&shape, &result, &op.perm, i);
    let mut found = Vec::new();
    for view in wanted.iter().copied().chain(others) {
        let Some(reorder) = reorder(from, view, &source, reader.block) else { continue };
        if reorder.is_nothing() {
            return Ok(Extracted::Recast(view));
        }
        // A view that no reader prefers is not worth a reorder: the host changes layouts at borders anyway.
        if wanted.is_empty() || wanted.contains(&view) {
            found.push((view, reorder));
        }
    }
    let (view, reorder) = found
        .into_iter()
        .next()
        .ok_or("elements change their places within blocks of channels, which loads cannot do")?;
    Ok(Extracted::Layer(reader.layer(vec![id], vec![(data, from)], view)?, reorder))
}

/// Returns the views that the readers of a value prefer.
fn wanted(reader: &Reader<'_>, value: ValueId, reshapes: usize) -> Vec<View> {
    let mut found = Vec::new();
    for &user in &reader.users[value.0] {
        let node = reader.graph.node(user);
        match &node.op {
            Op::Reshape(_) if reshapes > 0 => found.extend(wanted(reader, node.output(), reshapes - 1)),
            _ => found.extend((reader.preferred)(reader, user, value)),
        }
    }
    found
}

/// Returns the index, in the transpose's data, of element `i` of its result.
fn source(data: &[usize], result: &[usize], perm: &[usize], i: usize) -> usize {
    let mut at = vec![0; data.len()];
    let mut left = i;
    for (axis, &size) in result.iter().enumerate().rev() {
        at[perm[axis]] = left % size;
        left /= size;
    }
    at.iter().zip(data).fold(0, |sum, (place, size)| sum * size + place)
}
