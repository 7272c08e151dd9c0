//! Reads operators of two tensors as layers.

use super::op::{Other, PairOp, Pairwise};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::view::View;
use crate::graph::op::Layout;
use crate::graph::op::attr::AttrValue;
use crate::graph::{Node, NodeId, Op, ValueId};

/// Reads an operator of two tensors.
///
/// # Errors
/// The reason why the accelerator cannot compute it.
pub fn pair(reader: &Reader<'_>, id: NodeId, node: &Node) -> Read<(Layer, Pairwise)> {
    let mut op = match &node.op {
        Op::QAdd(q) => PairOp::Add(q.params),
        Op::QMul(m) => PairOp::Mul { zero_points: [m.a_zero_point, m.b_zero_point], requant: m.requant() },
        Op::Binary(b) => {
            PairOp::plain(b.kind).ok_or_else(|| format!("the vector unit has no operation for {}", b.kind.to_attr()))?
        }
        other => return Err(format!("the accelerator has no {}", other.name())),
    };
    let [mut a, mut b] = [node.inputs[0], node.inputs[1]];
    reader.int8(a)?;
    reader.int8(b)?;
    let shape = reader.shape(node.output())?;
    if reader.shape(a)? != shape || reader.graph.constant(a).is_some() {
        (a, b, op) = (b, a, op.swapped());
    }
    if reader.shape(a)? != shape {
        return Err("both operands broadcast".into());
    }
    if reader.graph.constant(a).is_some() {
        return Err("both operands are constants".into());
    }
    let like = reader.shape(b)? == shape;
    let beside = if like { (reader.known)(b) } else { None };
    // If no layout is known yet, prefer a view in which an operand with one value per channel fits.
    let suits = |view: &View| like || by_channel(reader, &shape, b, *view).is_ok();
    let first = || View::image(&shape, Layout::Nchw).filter(suits);
    let free = || Some(View::any(&shape)).filter(suits).or_else(first);
    let view = (reader.known)(a).or(beside).or_else(free).unwrap_or_else(|| View::any(&shape));
    let constant = reader.graph.constant(b);
    let mut inputs = vec![(a, view)];
    let other = match constant {
        Some(t) if like => Other::Constant(t.as_slice::<i8>().map_err(|e| e.to_string())?.to_vec()),
        Some(t) => {
            let values = t.as_slice::<i8>().map_err(|e| e.to_string())?;
            by_channel(reader, &shape, b, view)?;
            Other::ConstantChannels(if values.len() == 1 { vec![values[0]; view.c] } else { values.to_vec() })
        }
        None if like => {
            inputs.push((b, view));
            Other::Tensor
        }
        None => {
            if by_channel(reader, &shape, b, view)? != view.c {
                return Err("an operand with one value for all elements is not constant".into());
            }
            inputs.push((b, view.channels()));
            Other::Channels
        }
    };
    let mut nodes = vec![id];
    if let Some((lo, hi)) = op.bounds() {
        reader.fuse_clip(&mut nodes, lo, hi);
    }
    Ok((reader.layer(nodes, inputs, view)?, Pairwise { op, b: other }))
}

/// Returns the number of values of an operand with one value per channel of the view, or with a single value.
///
/// # Errors
/// The reason why the operand does not have this form.
fn by_channel(reader: &Reader<'_>, shape: &[usize], operand: ValueId, view: View) -> Read<usize> {
    let own = reader.shape(operand)?;
    let skipped = shape.len() - own.len();
    if !(shape.len() == 4 && view.is_image(shape)) && view != View::rows(shape) {
        return Err("its data have another shape in device memory".into());
    }
    let axis = if shape.len() == 4 && view.is_image(shape) { view.order().channel_axis() } else { shape.len() - 1 };
    let others = own.iter().enumerate().any(|(d, &n)| d + skipped != axis && n != 1);
    let count: usize = own.iter().product();
    if others || !(count == 1 || count == view.c) || shape[axis] != view.c {
        return Err("an operand broadcasts, but not per channel".into());
    }
    Ok(count)
}
