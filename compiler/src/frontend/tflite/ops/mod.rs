//! The registry: operators that can be imported, each with its import function.

mod activation;
mod control;
mod conv;
mod elementwise;
mod logic;
mod matmul;
mod movement;
pub(super) mod options;
mod pool;
mod quantize;
mod reduce;
mod resize;
mod shape;
mod transpose_conv;

use super::quant::Activation;
use super::{NodeContext, names};
use crate::frontend::reason::Reason;
use crate::frontend::semantic::window::same_padding;
use crate::graph::op::{Clip, Relu};
use crate::graph::{DType, ValueId};

type Import = fn(&mut NodeContext) -> Result<(), Reason>;

/// The schema's number of an operator, the function that imports it, the types of its data and further requirements.
const REGISTRY: &[(i32, Import, &str, &str)] = &[
    (0, elementwise::add, "float, 8 bits, 16 bits, INT32", "no fused activation on INT32"),
    (1, pool::average_pool_2d, "float, 8 bits, 16 bits", "same scale and zero point for data and result"),
    (2, movement::concatenation, "all", "8-bit parts can have other scales than the result"),
    (3, conv::conv_2d, "float, 8 bits, 16 bits; weights of 8 bits with float data", "groups are supported"),
    (4, conv::depthwise_conv_2d, "float, 8 bits, 16 bits; weights of 8 bits with float data", ""),
    (
        5,
        movement::depth_to_space,
        "float, 8 bits, 16 bits",
        "4 dimensions; same scale and zero point for data and result",
    ),
    (6, quantize::dequantize, "8 bits, 16 bits, FLOAT16", "8-bit weights are converted to floats"),
    (8, activation::floor, "float", ""),
    (
        9,
        conv::fully_connected,
        "float, 8 bits, 16 bits; weights of 8 bits with float data",
        "weights in the format DEFAULT",
    ),
    (11, activation::l2_normalization, "float", "over the last dimension, no fused activation"),
    (14, activation::logistic, "float, 8 bits, 16 bits", ""),
    (17, pool::max_pool_2d, "float, 8 bits, 16 bits", "same scale and zero point for data and result"),
    (18, elementwise::mul, "float, 8 bits, 16 bits, INT32, INT64", "no fused activation on INT32 and INT64"),
    (19, elementwise::relu, "float, 8 bits, 16 bits", ""),
    (20, elementwise::relu_n1_to_1, "float, 8 bits, 16 bits", ""),
    (21, elementwise::relu6, "float, 8 bits, 16 bits", ""),
    (22, shape::reshape, "all", "same scale and zero point for data and result"),
    (
        23,
        resize::bilinear,
        "float, 8 bits, 16 bits",
        "4 dimensions, up to 65,536 rows and columns; same scale and zero point for data and result",
    ),
    (25, quantize::softmax, "float, 8 bits, 16 bits", "over the last dimension"),
    (
        26,
        movement::space_to_depth,
        "float, 8 bits, 16 bits",
        "4 dimensions; same scale and zero point for data and result",
    ),
    (28, activation::tanh, "float, 8 bits, 16 bits", ""),
    (34, shape::pad, "float, 8 bits, 16 bits, INT32, INT64", "same scale and zero point for data and result"),
    (36, movement::gather, "all", "`batch_dims` must be 0; same scale and zero point for data and result"),
    (37, movement::batch_to_space, "all", "same scale and zero point for data and result"),
    (38, movement::space_to_batch, "float, 8 bits, 16 bits", "same scale and zero point for data and result"),
    (39, shape::transpose, "all", "same scale and zero point for data and result"),
    (40, pool::mean, "float, 8 bits, 16 bits", ""),
    (41, elementwise::sub, "float, 8 bits, 16 bits, INT32, INT64", "no fused activation on INT32 and INT64"),
    (42, elementwise::div, "float, INT32", "no fused activation on INT32"),
    (43, movement::squeeze, "all", "same scale and zero point for data and result"),
    (45, movement::strided_slice, "all", "`offset` must be 0; same scale and zero point for data and result"),
    (47, activation::exp, "float, 8 bits", ""),
    (
        48,
        reduce::top_k,
        "float, 8 bits, 16 bits, INT32, INT64",
        "up to 64 elements; same scale and zero point for data and result",
    ),
    (49, movement::split, "all", ""),
    (50, activation::log_softmax, "float", ""),
    (53, logic::cast, "float, INT32, INT64, BOOL, bytes without a scale", ""),
    (54, activation::prelu, "float, 8 bits", ""),
    (
        55,
        elementwise::maximum,
        "float, 8 bits, 16 bits, INT32, INT64",
        "same scale and zero point for operands and result",
    ),
    (56, reduce::arg_max, "float, 8 bits, 16 bits, INT32", "over one dimension"),
    (
        57,
        elementwise::minimum,
        "float, 8 bits, 16 bits, INT32, INT64",
        "same scale and zero point for operands and result",
    ),
    (58, logic::less, "float, 8 bits, INT32, INT64", "8-bit operands with scales below 1"),
    (59, activation::neg, "float, INT32, INT64", ""),
    (60, shape::pad, "float, 8 bits, 16 bits, INT32, INT64", "same scale and zero point for data and result"),
    (61, logic::greater, "float, 8 bits, INT32, INT64", "8-bit operands with scales below 1"),
    (62, logic::greater_equal, "float, 8 bits, INT32, INT64", "8-bit operands with scales below 1"),
    (63, logic::less_equal, "float, 8 bits, INT32, INT64", "8-bit operands with scales below 1"),
    (64, logic::select, "all", "same scale and zero point for operands and result"),
    (65, movement::slice, "all", "same scale and zero point for data and result"),
    (66, activation::sin, "float", ""),
    (67, transpose_conv::transpose_conv, "float, 8 bits, 16 bits", ""),
    (69, movement::tile, "all", "same scale and zero point for data and result"),
    (70, movement::expand_dims, "all", "same scale and zero point for data and result"),
    (71, logic::equal, "all", "8-bit operands with scales below 1"),
    (72, logic::not_equal, "all", "8-bit operands with scales below 1"),
    (73, activation::log, "float, 8 bits", ""),
    (74, reduce::sum, "float, 8 bits, INT32, INT64", ""),
    (75, activation::sqrt, "float", ""),
    (76, activation::rsqrt, "float, 8 bits", ""),
    (77, shape::shape, "all", ""),
    (78, elementwise::pow, "float", ""),
    (79, reduce::arg_min, "float, 8 bits, 16 bits, INT32", "over one dimension"),
    (81, reduce::product, "float, INT32, INT64", "over up to 64 elements of each dimension"),
    (82, reduce::reduce_max, "float, 8 bits, 16 bits, INT32, INT64", "same scale and zero point for data and result"),
    (83, movement::pack, "all", "same scale and zero point for data and result"),
    (84, logic::or, "BOOL", ""),
    (85, reduce::one_hot, "float, INT32, INT64, BOOL", ""),
    (86, logic::and, "BOOL", ""),
    (87, logic::not, "BOOL", ""),
    (88, movement::unpack, "all", ""),
    (89, reduce::reduce_min, "float, 8 bits, 16 bits, INT32, INT64", "same scale and zero point for data and result"),
    (90, elementwise::floor_div, "float", ""),
    (91, reduce::any, "BOOL", ""),
    (92, activation::square, "float", ""),
    (93, shape::zeros_like, "float, INT32, INT64", ""),
    (94, shape::fill, "float, INT32, INT64, BOOL", ""),
    (
        97,
        resize::nearest,
        "float, 8 bits, 16 bits",
        "4 dimensions, up to 65,536 rows and columns; same scale and zero point for data and result",
    ),
    (98, activation::leaky_relu, "float, 8 bits, 16 bits", ""),
    (99, elementwise::squared_difference, "float, 8 bits", ""),
    (100, shape::mirror_pad, "all", "same scale and zero point for data and result"),
    (101, activation::abs, "float, 8 bits, 16 bits, INT32", ""),
    (102, movement::split_v, "all", ""),
    (104, activation::ceil, "float", ""),
    (105, movement::reverse, "all", "same scale and zero point for data and result"),
    (106, reduce::add_n, "float, INT32", ""),
    (107, movement::gather_nd, "all", "same scale and zero point for data and result"),
    (108, activation::cos, "float", ""),
    (110, shape::rank, "all", ""),
    (111, activation::elu, "float, 8 bits", ""),
    (114, quantize::quantize, "float, 8 bits, 16 bits", "result of 8 bits with one scale"),
    (116, activation::round, "float", ""),
    (117, activation::hard_swish, "float, 8 bits", ""),
    (118, control::branch, "all", "the results of both subgraphs have the same types"),
    (119, control::repeated, "all", "tensors keep their shapes; ends after 2^20 steps"),
    (122, movement::scatter_nd, "float, INT32, INT64", "up to 64 updates of one element"),
    (123, logic::select_v2, "all", "same scale and zero point for operands and result"),
    (124, quantize::densify, "float, INT8, INT32", "sparse constants, expanded at import"),
    (126, matmul::batch_matmul, "float, 8 bits, 16 bits", "operands of the same type"),
    (128, reduce::cumulative_sum, "float, INT32, INT64", ""),
    (130, movement::broadcast_to, "all", "same scale and zero point for data and result"),
    (140, reduce::all, "BOOL", ""),
    (150, activation::gelu, "float, 8 bits", ""),
    (152, elementwise::relu_0_to_1, "float, 8 bits, 16 bits", ""),
    (158, activation::sign, "float", ""),
];

/// The function that imports an operator.
pub(super) fn find(code: i32) -> Option<Import> {
    REGISTRY.iter().find(|row| row.0 == code).map(|row| row.1)
}

/// Names of the operators that can be imported.
pub(super) fn names() -> Vec<String> {
    REGISTRY.iter().map(|row| names::operator_name(row.0, "")).collect()
}

/// Names of the operators that can be imported, with the types of their data and further requirements.
pub(super) fn described() -> Vec<[String; 3]> {
    REGISTRY.iter().map(|row| [names::operator_name(row.0, ""), row.2.into(), row.3.into()]).collect()
}

/// Padding of one dimension, before and after, for a padding code of the schema.
fn padding(code: i8, size: usize, kernel: usize, stride: usize, dilation: usize) -> Result<(usize, usize), Reason> {
    match code {
        0 => same_padding(size, kernel, stride, dilation, false),
        1 => Ok((0, 0)),
        n => Err(format!("attribute padding is number {n}; supported are SAME, VALID").into()),
    }
}

/// Converts an axis, which can be negative, to a dimension.
fn axis(what: &str, v: i64, rank: usize) -> Result<usize, Reason> {
    let all = i64::try_from(rank).unwrap_or(0);
    let at = if v < 0 { v.saturating_add(all) } else { v };
    let found = usize::try_from(at).ok().filter(|&a| a < rank);
    found.ok_or_else(|| Reason(format!("its {what} must be in range for {rank} dimensions, found {v}")))
}

/// Checks that a factor has a multiplier and a shift.
fn fixed(what: &str, v: f32) -> Result<f32, Reason> {
    if v.is_finite() {
        return Ok(v);
    }
    Err(format!("its {what} gives a factor of {v}, which must be finite").into())
}

/// A size from the options; it must not be negative.
fn size(what: &str, v: i32) -> Result<usize, Reason> {
    usize::try_from(v).map_err(|_| Reason(format!("its {what} must not be negative, found {v}")))
}

/// Adds the activation of a float node.
fn activate(n: &mut NodeContext, v: ValueId, act: Activation) -> Result<ValueId, Reason> {
    let (lo, hi) = act.bounds();
    match act {
        Activation::None => Ok(v),
        Activation::Relu => n.node("", Relu {}, &[v]),
        _ => n.node("", Clip { lo, hi }, &[v]),
    }
}

/// The name suffix of a float node in front of its activation.
fn before(act: Activation, suffix: &'static str) -> &'static str {
    if act == Activation::None { "" } else { suffix }
}

/// Fails unless the value has one of these types; returns its type.
fn expect(n: &NodeContext, v: ValueId, allowed: &[DType]) -> Result<DType, Reason> {
    let ty = n.ty(v);
    if allowed.contains(&ty.dtype) {
        return Ok(ty.dtype);
    }
    let names: Vec<_> = allowed.iter().map(|d| d.name()).collect();
    Err(format!("its data must be of type {}, found {ty}", names.join(" or ")).into())
}
