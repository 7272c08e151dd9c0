//! The registry: operators that can be imported, one function each.

mod conv;
mod elementwise;
mod pool;
mod quantize;
mod shape;

use super::quant::Activation;
use super::{NodeContext, Reason, schema};
use crate::graph::op::{Clip, Relu};
use crate::graph::{DType, ValueId};

type Import = fn(&mut NodeContext) -> Result<(), Reason>;

/// The schema's number of an operator and the function that imports it.
const REGISTRY: &[(i32, Import)] = &[
    (0, elementwise::add),
    (1, pool::average_pool_2d),
    (3, conv::conv_2d),
    (4, conv::depthwise_conv_2d),
    (6, quantize::dequantize),
    (9, conv::fully_connected),
    (17, pool::max_pool_2d),
    (19, elementwise::relu),
    (20, elementwise::relu_n1_to_1),
    (21, elementwise::relu6),
    (22, shape::reshape),
    (25, quantize::softmax),
    (34, shape::pad),
    (39, shape::transpose),
    (40, pool::mean),
    (114, quantize::quantize),
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
        n => Err(format!("padding number {n} is not known").into()),
    }
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
