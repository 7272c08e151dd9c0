//! The registry: operators that can be imported, one function each.

mod activation;
mod conv;
mod elementwise;
mod matmul;
mod movement;
mod pool;
mod quantize;
mod reduce;
mod resize;
mod shape;
mod transpose_conv;

use super::quant::Activation;
use super::{NodeContext, Reason, schema};
use crate::graph::op::{Clip, Relu};
use crate::graph::{DType, ValueId};

type Import = fn(&mut NodeContext) -> Result<(), Reason>;

/// The schema's number of an operator and the function that imports it.
const REGISTRY: &[(i32, Import)] = &[
    (0, elementwise::add),
    (1, pool::average_pool_2d),
    (2, movement::concatenation),
    (3, conv::conv_2d),
    (4, conv::depthwise_conv_2d),
    (5, movement::depth_to_space),
    (6, quantize::dequantize),
    (8, activation::floor),
    (9, conv::fully_connected),
    (14, activation::logistic),
    (17, pool::max_pool_2d),
    (18, elementwise::mul),
    (19, elementwise::relu),
    (20, elementwise::relu_n1_to_1),
    (21, elementwise::relu6),
    (22, shape::reshape),
    (23, resize::bilinear),
    (25, quantize::softmax),
    (26, movement::space_to_depth),
    (28, activation::tanh),
    (34, shape::pad),
    (36, movement::gather),
    (39, shape::transpose),
    (40, pool::mean),
    (41, elementwise::sub),
    (42, elementwise::div),
    (43, movement::squeeze),
    (45, movement::strided_slice),
    (47, activation::exp),
    (49, movement::split),
    (54, activation::prelu),
    (55, elementwise::maximum),
    (56, reduce::arg_max),
    (57, elementwise::minimum),
    (59, activation::neg),
    (60, shape::pad),
    (65, movement::slice),
    (67, transpose_conv::transpose_conv),
    (70, movement::squeeze),
    (73, activation::log),
    (74, reduce::sum),
    (75, activation::sqrt),
    (79, reduce::arg_min),
    (82, reduce::reduce_max),
    (83, movement::pack),
    (88, movement::unpack),
    (89, reduce::reduce_min),
    (97, resize::nearest),
    (98, activation::leaky_relu),
    (99, elementwise::squared_difference),
    (101, activation::abs),
    (102, movement::split_v),
    (111, activation::elu),
    (114, quantize::quantize),
    (117, activation::hard_swish),
    (126, matmul::batch_matmul),
    (150, activation::gelu),
];

/// The function that imports an operator.
pub(super) fn find(code: i32) -> Option<Import> {
    REGISTRY.iter().find(|(c, _)| *c == code).map(|(_, f)| *f)
}

/// Names of the operators that can be imported.
pub(super) fn names() -> Vec<String> {
    REGISTRY.iter().map(|(c, _)| schema::operator_name(*c, "")).collect()
}

/// Pads of one dimension, before and after, for a padding of the schema.
fn padding(code: i8, size: usize, kernel: usize, stride: usize, dilation: usize) -> Result<(usize, usize), Reason> {
    match code {
        0 if stride > 0 => {
            let reach = kernel.saturating_sub(1).saturating_mul(dilation).saturating_add(1);
            let total = (size.div_ceil(stride).max(1) - 1).saturating_mul(stride).saturating_add(reach);
            let total = total.saturating_sub(size);
            Ok((total / 2, total - total / 2))
        }
        0 => Err("its stride must be positive".into()),
        1 => Ok((0, 0)),
        n => Err(format!("attribute padding is number {n}; supported are SAME, VALID").into()),
    }
}

/// A dimension of `rank`; below 0 it counts from the last.
fn axis(what: &str, v: i64, rank: usize) -> Result<usize, Reason> {
    let all = i64::try_from(rank).unwrap_or(0);
    let at = if v < 0 { v.saturating_add(all) } else { v };
    let found = usize::try_from(at).ok().filter(|&a| a < rank);
    found.ok_or_else(|| Reason(format!("its {what} must lie among {rank} dimensions, found {v}")))
}

/// A factor that has a multiplier and a shift.
fn fixed(what: &str, v: f32) -> Result<f32, Reason> {
    if v.is_finite() {
        return Ok(v);
    }
    Err(format!("its {what} gives a factor of {v}, which must be finite").into())
}

/// A size of the options, which must not be negative.
fn size(what: &str, v: i32) -> Result<usize, Reason> {
    usize::try_from(v).map_err(|_| Reason(format!("its {what} must not be negative, found {v}")))
}

/// Adds the activation of a float node, and gives the suffix of the node before it.
fn activate(n: &mut NodeContext, v: ValueId, act: Activation) -> Result<ValueId, Reason> {
    let (lo, hi) = act.bounds();
    match act {
        Activation::None => Ok(v),
        Activation::Relu => n.node("", Relu {}, &[v]),
        _ => n.node("", Clip { lo, hi }, &[v]),
    }
}

/// The name's suffix of a float node before its activation.
fn before(act: Activation, suffix: &'static str) -> &'static str {
    if act == Activation::None { "" } else { suffix }
}

/// Fails unless the value is of one of these types.
fn expect(n: &NodeContext, v: ValueId, allowed: &[DType]) -> Result<DType, Reason> {
    let ty = n.ty(v);
    if allowed.contains(&ty.dtype) {
        return Ok(ty.dtype);
    }
    let names: Vec<_> = allowed.iter().map(|d| d.name()).collect();
    Err(format!("its data must be of type {}, found {ty}", names.join(" or ")).into())
}
