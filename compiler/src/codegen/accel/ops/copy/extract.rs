//! Reads nodes that move elements as copies.

use super::op::{Copy, Places, Segment};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::view::View;
use crate::graph::op::{self, Layout};
use crate::graph::{DType, Node, NodeId, ValueId};

/// What a tensor's dimension corresponds to in its view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Along {
    Channels,
    Rows,
    Columns,
}

/// Returns a whole input as the segment at the first channel, row and column of the result.
fn whole(input: usize, view: View) -> Segment {
    Segment { input, c_from: 0, c_to: 0, c: view.c, rows: Places::all(view.h), columns: Places::all(view.w) }
}

/// Returns the order of dimensions of the first of these tensors that is in device memory, if any is.
fn shared_view(reader: &Reader<'_>, values: &[ValueId]) -> Option<Layout> {
    values.iter().find_map(|v| (reader.known)(*v)).map(|v| v.order())
}

/// Returns the view of a value, as an image in this order if it is one.
fn view(reader: &Reader<'_>, value: ValueId, order: Option<Layout>) -> Read<View> {
    let shape = reader.shape(value)?;
    match order {
        Some(order) if shape.len() == 4 => reader.image(value, order),
        _ => Ok(View::any(&shape)),
    }
}

/// Returns what a dimension corresponds to in the view of a tensor of this rank, with images in this order.
fn along(rank: usize, axis: usize, order: Option<Layout>) -> Read<Along> {
    let layout = order.unwrap_or(Layout::Nhwc);
    let [rows, columns] = layout.spatial_axes();
    match (rank, axis) {
        (4, a) if a == layout.channel_axis() => Ok(Along::Channels),
        (4, a) if a == rows => Ok(Along::Rows),
        (4, a) if a == columns => Ok(Along::Columns),
        (r, a) if r != 4 && a + 1 == r => Ok(Along::Channels),
        // In other tensors all dimensions except the last are columns.
        (2 | 3, a) if a + 2 == rank => Ok(Along::Columns),
        _ => Err(format!("dimension {axis} of {rank} is not channels, rows or columns")),
    }
}

/// Reads a concatenation.
pub fn concat(reader: &Reader<'_>, id: NodeId, node: &Node, axis: usize) -> Read<(Layer, Copy)> {
    let order = shared_view(reader, &node.inputs);
    let output = view(reader, node.output(), order)?;
    let rank = reader.shape(node.output())?.len();
    let along = along(rank, axis, order)?;
    if rank == 3 && along == Along::Columns && reader.shape(node.output())?[0] != 1 {
        return Err("it joins several batches".into());
    }
    let (mut inputs, mut segments, mut at) = (Vec::new(), Vec::new(), 0);
    for (i, &value) in node.inputs.iter().enumerate() {
        movable(reader, value)?;
        let view = view(reader, value, order)?;
        let mut s = whole(i, view);
        match along {
            Along::Channels => (s.c_to, at) = (at, at + view.c),
            Along::Rows => (s.rows.first, at) = (at, at + view.h),
            Along::Columns => (s.columns.first, at) = (at, at + view.w),
        }
        inputs.push((value, view));
        segments.push(s);
    }
    Ok((reader.layer(vec![id], inputs, output)?, Copy { segments }))
}

/// Reads a slice.
pub fn slice(reader: &Reader<'_>, id: NodeId, node: &Node, op: &op::Slice) -> Read<(Layer, Copy)> {
    let data = node.inputs[0];
    movable(reader, data)?;
    let order = shared_view(reader, &node.inputs);
    let (input, output) = (view(reader, data, order)?, view(reader, node.output(), order)?);
    let shape = reader.shape(data)?;
    let mut s = whole(0, input);
    for axis in 0..shape.len() {
        let (start, size, step) = (op.starts[axis], op.sizes[axis], op.steps[axis]);
        if start == 0 && size == shape[axis] && step == 1 {
            continue;
        }
        let map = || -> Vec<usize> { (0..size).map(|i| (start as i64 + i as i64 * step) as usize).collect() };
        match along(shape.len(), axis, order)? {
            Along::Channels if step == 1 || size == 1 => (s.c_from, s.c) = (start, size),
            Along::Channels => return Err(format!("it slices channels with a step of {step}")),
            Along::Rows => s.rows.sources = map(),
            // In tensors that are not images, several dimensions together are columns.
            Along::Columns if shape.len() == 4 || input.w == shape[axis] => s.columns.sources = map(),
            Along::Columns => return Err(format!("it slices dimension {axis} of several batches")),
        }
    }
    Ok((reader.layer(vec![id], vec![(data, input)], output)?, Copy { segments: vec![s] }))
}

/// Reads a gather of rows or columns with constant indices, which nearest resizing becomes.
pub fn gather(reader: &Reader<'_>, id: NodeId, node: &Node, axis: usize) -> Read<(Layer, Copy)> {
    let data = node.inputs[0];
    movable(reader, data)?;
    let indices = reader.graph.constant(node.inputs[1]).ok_or("its indices are not constant")?;
    // A resize gathers rows, then columns. If it gathers the last dimension, channels come first.
    let last = |id: &NodeId| matches!(&reader.graph.node(*id).op, op::Op::Gather(g) if g.axis == 3);
    let channels_first = axis == 3 || (axis == 2 && reader.users[node.output().0].iter().any(last));
    let order = shared_view(reader, &node.inputs[..1]).or(channels_first.then_some(Layout::Nchw));
    let shape = reader.shape(data)?;
    if indices.shape().len() != 1 || shape.len() != 4 {
        return Err("the accelerator only gathers rows and columns of images".into());
    }
    let size = shape[axis] as i64;
    let numbers: Vec<i64> = match indices.dtype() {
        DType::I32 => indices.as_slice::<i32>().map_err(|e| e.to_string())?.iter().map(|&i| i.into()).collect(),
        _ => indices.as_slice::<i64>().map_err(|e| e.to_string())?.to_vec(),
    };
    let place = |i: i64| (if i < 0 { i.saturating_add(size) } else { i }).clamp(0, size - 1) as usize;
    let map: Vec<usize> = numbers.into_iter().map(place).collect();
    let (input, output) = (view(reader, data, order)?, view(reader, node.output(), order)?);
    let mut s = whole(0, input);
    match along(4, axis, order)? {
        Along::Rows => s.rows.sources = map,
        Along::Columns => s.columns.sources = map,
        Along::Channels => return Err("it gathers channels".into()),
    }
    Ok((reader.layer(vec![id], vec![(data, input)], output)?, Copy { segments: vec![s] }))
}

/// Checks that a value is an int8 tensor and not a constant.
fn movable(reader: &Reader<'_>, value: ValueId) -> Read<()> {
    reader.int8(value)?;
    if reader.graph.constant(value).is_some() {
        return Err("an operand is a constant".into());
    }
    Ok(())
}
