//! Operators of the domain `com.microsoft`, which ONNX Runtime's optimizer and its tools write.
//!
//! Source: ONNX Runtime's list of contributed operators. Those with integers are in `quantize` and `integer`.

mod attention;
mod embedding;
mod weights;

pub(super) use attention::{attention, multi_head, quantized, rotary};
pub(super) use embedding::embed;
pub(super) use weights::matmul_n_bits;

use super::{conv, gemm};
use crate::frontend::onnx::context::Named;
use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::norm::{self, Affine};
use crate::frontend::semantic::product::matrices;
use crate::graph::ValueId;
use crate::graph::op::{Clip, Unary, UnaryKind};

/// The activation that an attribute names, with its parameters; without one, the value itself.
fn activated(n: &mut NodeContext, v: ValueId, parameters: &[Option<f32>]) -> Result<ValueId, Reason> {
    let Some(name) = n.word("activation").filter(|name| !name.is_empty()) else { return Ok(v) };
    let or = |i: usize, default: f32| parameters.get(i).copied().flatten().unwrap_or(default);
    let (kind, alpha, beta) = match name.as_str() {
        "Clip" => return n.node("", Clip { lo: or(0, f32::MIN), hi: or(1, f32::MAX) }, &[v]),
        "HardSigmoid" => (UnaryKind::HardSigmoid, or(0, 0.2), or(1, 0.5)),
        "LeakyRelu" => (UnaryKind::LeakyRelu, or(0, 0.01), 0.0),
        "Relu" => return n.node("", Clip { lo: 0.0, hi: f32::INFINITY }, &[v]),
        "Sigmoid" => (UnaryKind::Sigmoid, 0.0, 0.0),
        "Tanh" => (UnaryKind::Tanh, 0.0, 0.0),
        _ => {
            let all = "Clip, HardSigmoid, LeakyRelu, Relu, Sigmoid or Tanh";
            return Err(format!("unknown activation `{name}`; use {all}").into());
        }
    };
    n.node("", Unary { kind, alpha, beta }, &[v])
}

/// A convolution, a tensor that is added to it, and an activation.
pub(in crate::frontend::onnx) fn fused_conv(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, weight) = (n.plain(0)?, n.input(1)?);
    let (bias, more) = (n.optional(2)?, n.optional(3)?);
    let mut v = conv::convolution(n, data, weight, bias)?;
    if let Some(more) = more {
        v = n.add("sum", v, more)?;
    }
    let parameters: Vec<_> = n.list("activation_params").unwrap_or_default().iter().copied().map(Some).collect();
    let v = activated(n, v, &parameters)?;
    n.output(v)
}

pub(in crate::frontend::onnx) fn fused_gemm(n: &mut NodeContext) -> Result<(), Reason> {
    let (a, b) = (n.plain(0)?, n.input(1)?);
    let c = n.optional(2)?;
    let v = gemm::product(n, a, b, c)?;
    let parameters = ["activation_alpha", "activation_beta"].map(|name| n.float(name));
    let v = activated(n, v, &parameters)?;
    n.output(v)
}

/// `alpha * a * b`, where operands can be transposed: their last two dimensions, or with `transBatchA` and `transBatchB`
/// the others against the one before the last.
pub(in crate::frontend::onnx) fn fused_matmul(n: &mut NodeContext) -> Result<(), Reason> {
    let mut operands = [n.plain(0)?, n.input(1)?];
    for (v, [inner, batch]) in operands.iter_mut().zip([["transA", "transBatchA"], ["transB", "transBatchB"]]) {
        let rank = n.ty(*v).rank();
        let mut perm: Vec<usize> = (0..rank).collect();
        if n.int(batch).unwrap_or(0) != 0 && rank > 2 {
            perm[..rank - 1].rotate_left(1);
        }
        if n.int(inner).unwrap_or(0) != 0 && rank > 1 {
            perm.swap(rank - 2, rank - 1);
        }
        if !perm.is_sorted() {
            *v = n.transposed("transpose", *v, &perm)?;
        }
    }
    let [a, b] = operands;
    let alpha = n.float("alpha").unwrap_or(1.0);
    let a = gemm::scaled(n, "a", a, alpha)?;
    let v = matrices(n, a, b)?;
    n.output(v)
}

/// Gelu of a sum.
pub(in crate::frontend::onnx) fn bias_gelu(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, bias) = (n.plain(0)?, n.plain(1)?);
    let v = n.add("sum", data, bias)?;
    let v = n.unary("", UnaryKind::Gelu, v)?;
    n.output(v)
}

/// The approximation of Gelu by tanh, of a sum.
pub(in crate::frontend::onnx) fn fast_gelu(n: &mut NodeContext) -> Result<(), Reason> {
    let mut v = n.plain(0)?;
    if let Some(bias) = n.optional(1)? {
        v = n.add("sum", v, bias)?;
    }
    let v = n.unary("", UnaryKind::GeluTanh, v)?;
    n.output(v)
}

/// Data with what is added before a normalization: the skipped part, and a bias that is an operand.
fn skipped(n: &mut NodeContext, bias: usize) -> Result<ValueId, Reason> {
    let (data, skip) = (n.plain(0)?, n.plain(1)?);
    let bias = n.optional(bias)?;
    let v = n.add("sum", data, skip)?;
    match bias {
        Some(bias) => n.add("sum/bias", v, bias),
        None => Ok(v),
    }
}

fn epsilon(n: &NodeContext) -> f32 {
    n.float("epsilon").unwrap_or(1e-12)
}

fn last_axis(n: &NodeContext, v: ValueId) -> Result<usize, Reason> {
    n.axis(-1, n.ty(v).rank())
}

pub(in crate::frontend::onnx) fn skip_layer(n: &mut NodeContext) -> Result<(), Reason> {
    let sum = skipped(n, 4)?;
    let by = Affine { scale: n.plain(2)?, bias: n.optional(3)? };
    let (axis, epsilon) = (last_axis(n, sum)?, epsilon(n));
    let [v, mean, factor] = norm::layer(n, sum, axis, by, epsilon)?;
    n.outputs(&[v, mean, factor, sum])
}

pub(in crate::frontend::onnx) fn skip_rms(n: &mut NodeContext) -> Result<(), Reason> {
    let sum = skipped(n, 3)?;
    let (axis, scale, epsilon) = (last_axis(n, sum)?, n.plain(2)?, epsilon(n));
    let v = norm::rms(n, sum, axis, scale, epsilon)?;
    let unused = || Named::LeftOut(format!("node `{}` ({})", n.name(), n.proto.op_type));
    let meanings = vec![Named::Value(v), unused(), unused(), Named::Value(sum)];
    n.output_meanings(meanings)
}

pub(in crate::frontend::onnx) fn rms(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let axis = n.axis_attribute(-1, n.ty(data).rank())?;
    let (scale, epsilon) = (n.plain(1)?, n.float("epsilon").unwrap_or(1e-5));
    let v = norm::rms(n, data, axis, scale, epsilon)?;
    n.outputs_first(v)
}
