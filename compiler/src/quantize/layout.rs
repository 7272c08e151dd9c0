//! Converts `[N, H, W, C]` images to `[N, C, H, W]`, the only order that ONNX has.
//!
//! Inputs and outputs keep their order: transposes are inserted where an image enters or leaves. Element-wise operators
//! and operators along one dimension work in whichever order their operands have.

use crate::graph::op::{GlobalAvgPool, Layout, ReduceKind, Reshape, Transpose};
use crate::graph::{Graph, GraphBuilder, GraphError, Op, Tensor, ValueId};

/// Dimension `i` of `[N, C, H, W]` is dimension `TO_NCHW[i]` of `[N, H, W, C]`.
const TO_NCHW: [usize; 4] = [0, 3, 1, 2];
const TO_NHWC: [usize; 4] = [0, 2, 3, 1];

/// A value in each order in which it exists so far.
#[derive(Debug, Clone, Copy, Default)]
struct Orders {
    plain: Option<ValueId>,
    image: Option<ValueId>,
}

struct Rewrite<'g> {
    graph: &'g Graph,
    b: GraphBuilder,
    orders: Vec<Orders>,
}

/// Converts all images of a network to `[N, C, H, W]`.
///
/// # Errors
/// If the resulting graph is invalid, which is a bug in this rewrite.
pub fn to_nchw(graph: &Graph) -> Result<Graph, GraphError> {
    if !graph.nodes().any(|(_, n)| layout(&n.op) == Some(Layout::Nhwc)) {
        return Ok(graph.clone());
    }
    let mut r =
        Rewrite { graph, b: GraphBuilder::new(graph.name()), orders: vec![Orders::default(); graph.value_count()] };
    for (name, v) in graph.inputs() {
        r.orders[v.0].plain = Some(r.b.input(name, graph.ty(v).clone()));
    }
    for (_, node) in graph.nodes() {
        r.node(node)?;
    }
    for (name, v) in graph.outputs() {
        let v = r.plain(*v)?;
        r.b.output(name, v);
    }
    r.b.finish()
}

fn layout(op: &Op) -> Option<Layout> {
    match op {
        Op::Conv2d(o) => Some(o.layout),
        Op::ConvTranspose2d(o) => Some(o.layout),
        Op::MaxPool2d(o) => Some(o.layout),
        Op::AvgPool2d(o) => Some(o.layout),
        Op::GlobalAvgPool(o) => Some(o.layout),
        _ => None,
    }
}

/// The operator on `[N, C, H, W]` instead of `[N, H, W, C]`; `None` if it cannot be converted.
fn moved(op: &Op) -> Option<Op> {
    let axis = |a: usize| TO_NCHW.iter().position(|&p| p == a).unwrap_or(a);
    let order = |v: &[usize]| TO_NCHW.iter().filter_map(|&p| v.get(p).copied()).collect::<Vec<_>>();
    let mut op = op.clone();
    match &mut op {
        Op::Conv2d(o) => o.layout = Layout::Nchw,
        Op::ConvTranspose2d(o) => o.layout = Layout::Nchw,
        Op::MaxPool2d(o) => o.layout = Layout::Nchw,
        Op::AvgPool2d(o) => o.layout = Layout::Nchw,
        Op::GlobalAvgPool(o) => o.layout = Layout::Nchw,
        Op::Add(_) | Op::Binary(_) | Op::Select(_) => {}
        map if map.is_map() => {}
        Op::Concat(o) => o.axis = axis(o.axis),
        Op::Softmax(o) => o.axis = axis(o.axis),
        Op::Resample(o) => o.axis = axis(o.axis),
        Op::Pad(o) => (o.before, o.after) = (order(&o.before), order(&o.after)),
        Op::Expand(o) if o.shape.len() == 4 => o.shape = order(&o.shape),
        Op::Slice(o) => {
            (o.starts, o.sizes) = (order(&o.starts), order(&o.sizes));
            o.steps = TO_NCHW.iter().filter_map(|&p| o.steps.get(p).copied()).collect();
        }
        Op::Reduce(o) if o.keep_dims => {
            o.axes = o.axes.iter().map(|&a| axis(a)).collect();
            o.axes.sort_unstable();
        }
        _ => return None,
    }
    Some(op)
}

/// Number of leading operands that must all be images if the operator works on images.
fn image_operands(op: &Op, count: usize) -> usize {
    match op {
        Op::Add(_) | Op::Binary(_) | Op::Select(_) | Op::Concat(_) => count,
        _ => 1,
    }
}

impl Rewrite<'_> {
    fn node(&mut self, node: &crate::graph::Node) -> Result<(), GraphError> {
        let out = node.output();
        let rank = |v: ValueId| self.graph.ty(v).rank();
        let images = image_operands(&node.op, node.inputs.len());
        let fixed = layout(&node.op);
        let follows = || {
            let first = &node.inputs[..images.min(node.inputs.len())];
            let there = |v: &ValueId| self.orders[v.0].image.is_some();
            first.iter().any(there)
                && rank(out) == 4
                && first.iter().all(|&v| rank(v) == 4 || self.graph.constant(v).is_some())
        };
        let spatial_mean = match &node.op {
            Op::Reduce(r) => r.kind == ReduceKind::Mean && r.axes == [1, 2] && rank(node.inputs[0]) == 4,
            _ => false,
        };
        if spatial_mean && self.orders[node.inputs[0].0].image.is_some() {
            let data = self.image(node.inputs[0])?;
            let pool = GlobalAvgPool { layout: Layout::Nchw, lo: -128, hi: 127 };
            let v = self.b.node(&node.name, pool, &[data])?;
            if rank(out) == 4 {
                self.orders[out.0].image = Some(v);
            } else {
                let shape = self.graph.ty(out).shape().unwrap_or_default();
                let shape = shape.into_iter().map(|n| n as i64).collect();
                self.orders[out.0].plain =
                    Some(self.b.node(&format!("{}/reshape", node.name), Reshape { shape }, &[v])?);
            }
            return Ok(());
        }
        let to_image = fixed == Some(Layout::Nhwc) || fixed.is_none() && follows();
        if let Some(op) = moved(&node.op).filter(|_| to_image) {
            let mut operands = Vec::with_capacity(node.inputs.len());
            for (i, &v) in node.inputs.iter().enumerate() {
                operands.push(if i < images { self.image(v)? } else { self.plain(v)? });
            }
            self.orders[out.0].image = Some(self.b.node(&node.name, op, &operands)?);
            return Ok(());
        }
        let operands = node.inputs.iter().map(|&v| self.plain(v)).collect::<Result<Vec<_>, _>>()?;
        let results = self.b.node_outputs(&node.name, node.op.clone(), &operands)?;
        for (v, r) in node.outputs.iter().zip(results) {
            self.orders[v.0].plain = Some(r);
        }
        Ok(())
    }

    /// The value in its original order.
    fn plain(&mut self, v: ValueId) -> Result<ValueId, GraphError> {
        if let Some(found) = self.orders[v.0].plain {
            return Ok(found);
        }
        let lost = || GraphError::Invalid(format!("`{}` is not defined yet", self.graph.value_name(v)));
        let image = self.orders[v.0].image.ok_or_else(lost)?;
        let name = format!("{}/nhwc", self.graph.value_name(v));
        let made = self.b.node(&name, Transpose { perm: TO_NHWC.to_vec() }, &[image])?;
        self.orders[v.0].plain = Some(made);
        Ok(made)
    }

    /// The value as `[N, C, H, W]`; constants with fewer dimensions get leading sizes of 1 first.
    fn image(&mut self, v: ValueId) -> Result<ValueId, GraphError> {
        if let Some(found) = self.orders[v.0].image {
            return Ok(found);
        }
        let name = format!("{}/nchw", self.graph.value_name(v));
        let turned = self.graph.constant(v).and_then(|c| turned(c));
        let made = match turned {
            Some(t) => self.b.constant(&name, t),
            None => {
                let plain = self.plain(v)?;
                self.b.node(&name, Transpose { perm: TO_NCHW.to_vec() }, &[plain])?
            }
        };
        self.orders[v.0].image = Some(made);
        Ok(made)
    }
}

fn turned(t: &Tensor) -> Option<Tensor> {
    let mut shape = vec![1; 4usize.checked_sub(t.shape().len())?];
    shape.extend_from_slice(t.shape());
    t.reshaped(&shape)?.transposed(&TO_NCHW)
}
