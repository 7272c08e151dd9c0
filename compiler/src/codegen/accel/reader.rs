//! Reads the graph for operators of the accelerator: shapes, layouts, and the nodes that form a layer.

use super::finish::{Finish, Slope};
use super::kept::OnChip;
use super::layer::Layer;
use super::vector_op::elementwise;
use super::view::View;
use crate::graph::op::{self, Layout, Op};
use crate::graph::{DType, Graph, Node, NodeId, ValueId};

/// A part of a layer, or the reason why the accelerator cannot compute it.
pub type Read<T> = Result<T, String>;

/// The graph, with the information that operators need about it.
pub struct Reader<'a> {
    pub graph: &'a Graph,
    /// For each value, the nodes that read it.
    pub users: &'a [Vec<NodeId>],
    /// The view in which a value is in device memory; `None` if it is not there.
    pub known: &'a dyn Fn(ValueId) -> Option<View>,
    /// Channels per block of the layout in device memory.
    pub block: usize,
    /// The views in which the accelerator's operator for a node would read an operand, the preferred ones first.
    pub preferred: &'a dyn Fn(&Reader<'_>, NodeId, ValueId) -> Vec<View>,
}

impl Reader<'_> {
    pub fn shape(&self, value: ValueId) -> Read<Vec<usize>> {
        let ty = self.graph.ty(value);
        let shape = ty.shape().ok_or_else(|| format!("{} has the open shape {ty}", self.graph.value_name(value)))?;
        if shape.contains(&0) {
            return Err(format!("{} has no elements", self.graph.value_name(value)));
        }
        Ok(shape)
    }

    pub fn int8(&self, value: ValueId) -> Read<()> {
        match self.graph.ty(value).dtype {
            DType::I8 => Ok(()),
            other => Err(format!("its data are {other}; the accelerator only computes i8")),
        }
    }

    pub fn image(&self, value: ValueId, layout: Layout) -> Read<View> {
        View::image(&self.shape(value)?, layout).ok_or_else(|| "its data are not an image".into())
    }

    /// Returns the only reader of a node's value; `None` if there are several or the value is an output of the graph.
    pub fn only_user(&self, node: &Node) -> Option<(NodeId, &Node)> {
        let value = node.output();
        match self.users[value.0].as_slice() {
            [user] if !self.graph.is_output(value) => Some((*user, self.graph.node(*user))),
            _ => None,
        }
    }

    /// Returns the requantization of a node's sums.
    ///
    /// # Errors
    /// The sums are not read by exactly one requantize along `axis` with constant parameters.
    pub fn requantize(&self, node: &Node, axis: usize) -> Read<(NodeId, Finish)> {
        let alone = "its 32-bit sums are not read by exactly one requantize, for example because a scale or zero point \
                     is only known at run time or no 31-bit multiplier rounds like TFLite; the accelerator stores only \
                     8 bits";
        let (id, user) = self.only_user(node).ok_or(alone)?;
        if !matches!(user.op, Op::Requantize(_)) {
            return Err(alone.into());
        }
        Ok((id, self.finish(node, user, axis)?))
    }

    /// Reads the parameters of a requantize of a node's sums.
    fn finish(&self, node: &Node, user: &Node, axis: usize) -> Read<Finish> {
        let Op::Requantize(op) = &user.op else { return Err(format!("the accelerator has no {}", user.op.name())) };
        if user.inputs[0] != node.output() || op.axis != axis {
            return Err("its requantize is not along the channels".into());
        }
        let vector = |i: usize| -> Read<Vec<i32>> {
            let constant = self.graph.constant(user.inputs[i]).ok_or("its requantization is not constant")?;
            Ok(constant.as_slice::<i32>().map_err(|e| e.to_string())?.to_vec())
        };
        let finish = Finish {
            bias: vector(1)?,
            multiplier: vector(2)?,
            shift: vector(3)?.into_iter().map(|s| s.clamp(-128, 127) as i8).collect(),
            zero_point: op.zero_point,
            lo: op.lo,
            hi: op.hi,
            mode: op.mode,
        };
        Ok(finish)
    }

    /// Returns the nodes of a product and its requantization, with the parameters.
    ///
    /// There can be two requantizations with the maximum or minimum of both as the result.
    pub fn finished(&self, id: NodeId, node: &Node, axis: usize) -> Read<(Vec<NodeId>, Finish, Option<Slope>)> {
        if let Some((nodes, finish, slope)) = self.sloped(node, axis) {
            return Ok(([&[id][..], &nodes].concat(), finish, Some(slope)));
        }
        let (next, finish) = self.requantize(node, axis)?;
        Ok((vec![id, next], finish, None))
    }

    /// Returns two requantizations of a node's sums with the same zero point and bounds, and the operator that combines
    /// their results.
    ///
    /// The nodes are both requantizations and the operator. `None` if the node's readers do not have this form.
    pub fn sloped(&self, node: &Node, axis: usize) -> Option<([NodeId; 3], Finish, Slope)> {
        let &[a, b] = self.users[node.output().0].as_slice() else { return None };
        if a == b || self.graph.is_output(node.output()) {
            return None;
        }
        let (above, below) = (self.graph.node(a), self.graph.node(b));
        let (taken, user) = self.only_user(above)?;
        let Op::Binary(op::Binary { kind }) = user.op else { return None };
        let op = elementwise(kind)?;
        if self.only_user(below)?.0 != taken || user.inputs.len() != 2 || user.inputs[0] == user.inputs[1] {
            return None;
        }
        let (first, second) = (self.finish(node, above, axis).ok()?, self.finish(node, below, axis).ok()?);
        let Finish { bias, multiplier, shift, mode, .. } = second.clone();
        let slope = Slope { bias, multiplier, shift, mode, op };
        (slope.finish(&first) == second).then_some(([a, b, taken], first, slope))
    }

    /// Fuses clips after the last node into the bounds `lo` and `hi`, and adds them to `nodes`.
    pub fn fuse_clip(&self, nodes: &mut Vec<NodeId>, lo: &mut i32, hi: &mut i32) {
        while let Some((id, user)) = nodes.last().and_then(|&last| self.only_user(self.graph.node(last))) {
            let Op::Clip(clip) = &user.op else { return };
            let (least, greatest) = (clip.lo as i32, clip.hi as i32);
            *lo = (*lo).clamp(least, greatest);
            *hi = (*hi).clamp(least, greatest);
            nodes.push(id);
        }
    }

    /// Creates a layer from nodes in graph order. The value of the last node is the output.
    ///
    /// # Errors
    /// There are no nodes.
    pub fn layer(&self, nodes: Vec<NodeId>, inputs: Vec<(ValueId, View)>, view: View) -> Read<Layer> {
        let last = nodes.last().ok_or("it has no nodes")?;
        let node = self.graph.node(*last);
        let output = (node.output(), view);
        Ok(Layer { name: node.name.clone(), nodes, inputs, output, on_chip: OnChip::default(), given: None })
    }

    pub fn bytes(&self, value: ValueId) -> Read<&[i8]> {
        let tensor = self.graph.constant(value).ok_or("its weights are not constant")?;
        tensor.as_slice::<i8>().map_err(|e| e.to_string())
    }
}
