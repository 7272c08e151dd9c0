//! Prepares the float network for quantization: folds what can be folded, and converts images to `[N, C, H, W]`.

use super::{QuantizeError, layout};
use crate::graph::op::Gather;
use crate::graph::{DType, Graph, NodeId, Op, Tensor};
use crate::passes::{self, Pass, Patch, View, pipelines};

/// Folds constants, scales, biases and padding into convolutions and matrix products, and converts images to ONNX's
/// order.
///
/// # Errors
/// [`QuantizeError::AlreadyQuantized`], [`QuantizeError::OpenShape`], [`QuantizeError::NothingToQuantize`].
pub fn prepare(graph: Graph) -> Result<Graph, QuantizeError> {
    let run = |g, list: &[Box<dyn Pass>]| passes::run(g, list, passes::Options::default());
    let (graph, _) = run(graph, &pipelines::float_passes())?;
    refuse_integers(&graph)?;
    let graph = layout::to_nchw(&graph)?;
    let mut list = pipelines::float_passes();
    list.push(Box::new(Nearest));
    let (graph, _) = run(graph, &list)?;
    for v in (0..graph.value_count()).map(crate::graph::ValueId) {
        if graph.ty(v).element_count().is_none() {
            let (value, shape) = (graph.value_name(v).to_string(), graph.ty(v).to_string());
            return Err(QuantizeError::OpenShape { value, shape });
        }
    }
    Ok(graph)
}

fn refuse_integers(graph: &Graph) -> Result<(), QuantizeError> {
    let byte = |d: DType| matches!(d, DType::I8 | DType::U8);
    if let Some((name, v)) = graph.inputs().find(|(_, v)| byte(graph.ty(*v).dtype)) {
        let op = format!("an input of {}", graph.ty(v));
        return Err(QuantizeError::AlreadyQuantized { node: name.to_string(), op });
    }
    let integer = |op: &Op| matches!(op, Op::Quantize(_) | Op::HybridConv2d(_) | Op::HybridDense(_));
    let mut nodes = graph.nodes().map(|(_, n)| n);
    let found = nodes.find(|n| integer(&n.op) || !matches!(n.op, Op::Constant(_)) && byte(graph.ty(n.output()).dtype));
    found.map_or(Ok(()), |n| Err(QuantizeError::AlreadyQuantized { node: n.name.clone(), op: n.op.name().to_string() }))
}

/// Rewrites a nearest-neighbor resampling along a dimension to a `gather`, which only moves elements.
#[derive(Debug)]
struct Nearest;

impl Pass for Nearest {
    fn name(&self) -> &'static str {
        "nearest"
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        let node = view.graph.node(at);
        let Op::Resample(r) = &node.op else { return None };
        let (index, weight) = (view.graph.constant(node.inputs[1])?, view.graph.constant(node.inputs[2])?);
        let ones = weight.as_slice::<f32>().ok()?.iter().all(|&w| w == 1.0);
        if !ones || index.shape().get(1) != Some(&1) {
            return None;
        }
        let index = Tensor::vector(index.as_slice::<i32>().ok()?.iter().map(|&i| i64::from(i)).collect());
        let mut p = Patch::new("gather");
        let index = p.constant(&format!("{}/index", node.name), index);
        let v = p.node(&node.name, Gather { axis: r.axis }, &[node.inputs[0].into(), index]);
        Some(p.replace(node.output(), v))
    }
}
