//! The graph's operators as tensor expressions, one file each. They compute the same as the graph's reference
//! evaluation.
//!
//! Each function appends to a [`Builder`], so that adjacent operators can share one program ([`program`]). A [`Call`]
//! appends one operator that is given by its name, as `.te` files do; [`operators`] lists the names.

mod add;
mod avg_pool2d;
mod bilinear_u8;
mod blocked;
mod clip;
mod compute;
mod conv2d;
mod conv_transpose2d;
mod dense;
mod dequantize;
mod elementwise;
mod fours;
mod hybrid;
mod lanes;
mod layer_norm;
mod library;
mod lookup;
mod matmul;
mod max_pool2d;
mod movement;
mod narrow;
mod pad;
mod qadd;
mod qmatmul;
mod qmul;
mod quantize;
mod reduce;
mod requantize;
mod reshape;
mod shift_sign;
mod softmax;
mod sum_pool2d;
#[cfg(test)]
mod tests;
mod transpose;
mod window;

pub use library::{Call, CallError, Library, Operator, operators};

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use thiserror::Error;

use super::{Builder, Expr, Func, Program, TensorRef};
use crate::graph::op::Layout;
use crate::graph::{DType, Graph, NodeId, Op, ValueId};

/// Why an operator has no tensor expression.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum OpsError {
    /// A size is symbolic but must be known.
    #[error(
        "node {node} ({op}): value {value} has a symbolic size; give the sizes that the model leaves open with --bind or --shape"
    )]
    Symbolic {
        /// The node's name.
        node: String,
        /// Its operator.
        op: &'static str,
        /// The value.
        value: String,
    },
    /// A value is too large for any machine's memory.
    #[error("node {node} ({op}): value {value} of type {ty} is larger than any memory; check the model's shapes")]
    Size {
        /// The node's name.
        node: String,
        /// Its operator.
        op: &'static str,
        /// The value.
        value: String,
        /// Its type.
        ty: String,
    },
    /// A node is a constant and has no computation.
    #[error("node {node} is a constant, which needs no computation; leave it out of the nodes")]
    Constant {
        /// The node's name.
        node: String,
    },
    /// An output is not computed by the given nodes.
    #[error("value {value} is not computed by the given nodes")]
    Output {
        /// The value.
        value: String,
    },
}

/// Format of products with constant weights for vector processors: the weights are packed in blocks of output channels,
/// and the results have whole blocks of channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// Output channels per block.
    pub channels: i64,
    /// In sums of four byte products, whether data stay signed. Otherwise they are made unsigned.
    pub signed: bool,
}

/// A program, with the graph values of its inputs and outputs in order.
#[derive(Debug, Clone, PartialEq)]
pub struct RegionProgram {
    /// The tensor expression.
    pub program: Program,
    /// Values that it reads.
    pub inputs: Vec<ValueId>,
    /// Values that it computes.
    pub outputs: Vec<ValueId>,
}

/// Returns the tensor expression that computes the values `outputs` with the given nodes, in topological order.
///
/// # Errors
/// [`OpsError`] for a symbolic or too large size, a constant among the nodes, or an output that no node computes.
pub fn program(graph: &Graph, name: &str, nodes: &[NodeId], outputs: &[ValueId]) -> Result<RegionProgram, OpsError> {
    program_in_blocks(graph, name, nodes, outputs, &|_| None)
}

/// The same as [`program`], but with products in blocks if `blocks` returns some for the node. It can do so for nodes
/// that [`takes_blocks`] accepts.
///
/// # Errors
/// The same as [`program`].
pub fn program_in_blocks(
    graph: &Graph,
    name: &str,
    nodes: &[NodeId],
    outputs: &[ValueId],
    blocks: &dyn Fn(NodeId) -> Option<Blocks>,
) -> Result<RegionProgram, OpsError> {
    let mut b = Builder::new(name);
    let mut values: HashMap<ValueId, TensorRef> = HashMap::new();
    let mut inputs = Vec::new();
    let shape = |node: NodeId, v: ValueId| -> Result<Vec<i64>, OpsError> {
        let symbolic = || OpsError::Symbolic {
            node: graph.node(node).name.clone(),
            op: graph.node(node).op.name(),
            value: graph.value_name(v).to_string(),
        };
        let shape = graph.ty(v).shape().ok_or_else(symbolic)?;
        // Loops and indices count in i64, and sums of a few sizes must not overflow it either.
        let bytes = shape.iter().try_fold(8usize, |n, &d| n.checked_mul(d.max(1)));
        if bytes.is_none_or(|n| n as u64 > 1 << 48) {
            return Err(OpsError::Size {
                node: graph.node(node).name.clone(),
                op: graph.node(node).op.name(),
                value: graph.value_name(v).to_string(),
                ty: graph.ty(v).to_string(),
            });
        }
        Ok(shape.into_iter().map(|n| n as i64).collect())
    };
    for &id in nodes {
        let node = graph.node(id);
        for &v in &node.inputs {
            if let Entry::Vacant(entry) = values.entry(v) {
                entry.insert(b.input(&format!("in{}", inputs.len()), graph.ty(v).dtype, &shape(id, v)?));
                inputs.push(v);
            }
        }
        let args: Vec<TensorRef> = node.inputs.iter().map(|v| values[v].clone()).collect();
        let out = shape(id, node.output())?;
        let in_blocks = blocks(id).and_then(|blocks| build_in_blocks(&mut b, &node.op, &args, &out, blocks));
        let t = in_blocks
            .or_else(|| build(&mut b, &node.op, &args, &out))
            .ok_or_else(|| OpsError::Constant { node: node.name.clone() })?;
        values.insert(node.output(), t);
    }
    let mut results = Vec::new();
    for v in outputs {
        match values.get(v) {
            Some(t) if !inputs.contains(v) => results.push(t.clone()),
            _ => return Err(OpsError::Output { value: graph.value_name(*v).to_string() }),
        }
    }
    Ok(RegionProgram { program: b.finish(&results), inputs, outputs: outputs.to_vec() })
}

/// Returns whether a product can be written in blocks if its second operand is constant.
pub fn takes_blocks(graph: &Graph, node: NodeId) -> bool {
    let n = graph.node(node);
    let Some(dtype) = n.inputs.first().map(|v| graph.ty(*v).dtype) else { return false };
    let sums = |weight_zero_point: i32| dtype == DType::F32 || (dtype == DType::I8 && weight_zero_point == 0);
    match &n.op {
        Op::Conv2d(op) if op.groups > 1 => op.layout == Layout::Nhwc && is_depthwise(graph, node),
        Op::Conv2d(op) => op.layout == Layout::Nhwc && sums(op.weight_zero_point),
        Op::Dense(op) => sums(op.weight_zero_point),
        Op::MatMul(_) => n.inputs.get(1).is_some_and(|w| graph.ty(*w).rank() == 2),
        _ => false,
    }
}

/// Returns whether a node is a product of bytes, to be written in sums of four: four contiguous inputs per instruction.
pub fn in_fours(graph: &Graph, node: NodeId) -> bool {
    let bytes = graph.node(node).inputs.first().is_some_and(|v| graph.ty(*v).dtype == DType::I8);
    bytes && takes_blocks(graph, node) && !is_depthwise(graph, node)
}

/// Returns whether a convolution is depthwise: each output channel sums over one input channel of its own.
pub fn is_depthwise(graph: &Graph, node: NodeId) -> bool {
    let n = graph.node(node);
    let Op::Conv2d(op) = &n.op else { return false };
    let channels = |v: ValueId, axis: usize| graph.ty(v).dims.get(axis).and_then(|d| d.known());
    let axis = op.layout.channel_axis();
    op.groups > 1 && channels(n.inputs[0], axis) == Some(op.groups) && channels(n.output(), axis) == Some(op.groups)
}

fn build_in_blocks(b: &mut Builder, op: &Op, args: &[TensorRef], out: &[i64], blocks: Blocks) -> Option<TensorRef> {
    let [x, w, ..] = args else { return None };
    Some(match op {
        Op::Conv2d(op) if op.groups > 1 => blocked::depthwise(b, op, x, w, args.get(2), out),
        Op::Conv2d(op) if x.dtype == DType::I8 => fours::conv2d(b, op, x, w, out, blocks),
        Op::Conv2d(op) => blocked::conv2d(b, op, x, w, args.get(2), out, blocks),
        Op::Dense(op) if x.dtype == DType::I8 => fours::dense(b, x, w, op.data_zero_point, out, blocks),
        Op::Dense(_) => blocked::dense(b, x, w, args.get(2), out, blocks),
        Op::MatMul(_) => blocked::matmul(b, x, w, out, blocks),
        _ => return None,
    })
}

/// Appends an operator with inferred types, given its operands and the shape of its result. Returns `None` for a
/// constant and for a function of the program.
pub fn build(b: &mut Builder, op: &Op, args: &[TensorRef], out: &[i64]) -> Option<TensorRef> {
    let x = args.first()?;
    Some(match op {
        Op::Constant(_) | Op::Packed(_) | Op::If(_) | Op::Loop(_) => return None,
        Op::Conv2d(op) => conv2d::conv2d(b, op, x, args.get(1)?, args.get(2), out),
        Op::Dense(op) => dense::dense(b, op, x, args.get(1)?, args.get(2), out),
        Op::HybridDense(op) => hybrid::dense(b, op, args, out)?,
        Op::HybridConv2d(op) => hybrid::conv2d(b, op, args, out)?,
        Op::MatMul(_) => matmul::matmul(b, x, args.get(1)?, out),
        Op::Add(_) => add::add(b, x, args.get(1)?, out),
        Op::Unary(op) => elementwise::unary(b, op, x, out),
        Op::Binary(op) => elementwise::binary(b, op, x, args.get(1)?, out),
        Op::Cast(op) => elementwise::cast(b, op.dtype, x, out),
        Op::Narrow(op) => narrow::narrow(b, op, x, out),
        Op::Bitcast(op) => elementwise::bitcast(b, op.dtype, x, out),
        Op::Select(_) => elementwise::select(b, args, out)?,
        Op::Expand(_) => elementwise::expand(b, x, out),
        Op::Reduce(op) => reduce::reduce(b, op, x, out),
        Op::ArgReduce(op) => reduce::arg_reduce(b, op, x, out),
        Op::Concat(op) => movement::concat(b, op, args, out),
        Op::Slice(op) => movement::slice(b, op, x, out),
        Op::Gather(op) => movement::gather(b, op, x, args.get(1)?, out),
        Op::GatherElements(op) => movement::gather_elements(b, op, x, args.get(1)?, out),
        Op::Resample(op) => movement::resample(b, op, args, out)?,
        Op::ConvTranspose2d(op) => conv_transpose2d::conv_transpose2d(b, op, x, args.get(1)?, args.get(2), out),
        Op::QMatMul(op) => qmatmul::qmatmul(b, op, x, args.get(1)?, out),
        Op::QMul(op) => qmul::qmul(b, op, x, args.get(1)?, out),
        Op::QSquaredDifference(op) => qadd::qsquared_difference(b, op, x, args.get(1)?, out),
        Op::Lookup(_) => lookup::lookup(b, x, args.get(1)?, out),
        Op::BilinearU8(op) => bilinear_u8::bilinear_u8(b, op, args, out)?,
        Op::QAdd(op) => qadd::qadd(b, op, x, args.get(1)?, out),
        Op::Relu(_) => clip::relu(b, x, out),
        Op::Clip(op) => clip::clip(b, op, x, out),
        Op::MaxPool2d(op) => max_pool2d::max_pool2d(b, op, x, out),
        Op::AvgPool2d(op) => avg_pool2d::avg_pool2d(b, op, x, out),
        Op::GlobalAvgPool(op) => avg_pool2d::global_avg_pool(b, op, x, out),
        Op::QAvgPool2d(op) => avg_pool2d::qavg_pool2d(b, op, x, out),
        Op::SumPool2d(op) => sum_pool2d::sum_pool2d(b, op, x, out),
        Op::Pad(op) => pad::pad(b, op, x, out),
        Op::Reshape(_) => reshape::reshape(b, x, out),
        Op::Transpose(op) => transpose::transpose(b, op, x, out),
        Op::Softmax(op) => softmax::softmax(b, op, x, out),
        Op::LayerNorm(op) => layer_norm::layer_norm(b, op, args, out)?,
        Op::Quantize(op) => quantize::quantize(b, op, x, out),
        Op::Dequantize(op) => dequantize::dequantize(b, op, x, out),
        Op::Requantize(op) => requantize::requantize(b, op, args, out)?,
        Op::Rescale(op) => requantize::rescale(b, op, x, out),
        Op::Compute(op) => compute::compute(b, op, args)?,
        Op::ShiftSign(_) => shift_sign::shift_sign(b, x, out),
    })
}

/// Short for [`Expr::call`].
fn call(f: Func, args: impl Into<Vec<Expr>>) -> Expr {
    Expr::call(f, args.into())
}

/// Returns the list's value at an index within it, as a tree of selects.
fn table(index: &Expr, values: &[Expr]) -> Expr {
    fn go(index: &Expr, first: usize, values: &[Expr]) -> Expr {
        match values {
            [] => Expr::int(0),
            [one] => one.clone(),
            _ if values.iter().all(|v| v == &values[0]) => values[0].clone(),
            _ => {
                let half = values.len() / 2;
                let below = index.clone().lt(Expr::int((first + half) as i64));
                below.select(go(index, first, &values[..half]), go(index, first + half, &values[half..]))
            }
        }
    }
    go(index, 0, values)
}

/// Returns indices into an operand of `shape` that broadcasts to `out` by NumPy's rules. `axes` are the axes of `out`.
fn broadcast(axes: &[Expr], out: &[i64], shape: &[i64]) -> Vec<Expr> {
    let skip = axes.len() - shape.len();
    let places = axes[skip..].iter().zip(&out[skip..]).zip(shape);
    places.map(|((a, &o), &n)| if n == 1 && o != 1 { Expr::int(0) } else { a.clone() }).collect()
}
