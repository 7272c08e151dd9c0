//! Conv.

use super::{NCHW, window};
use crate::frontend::onnx::node::{NodeContext, Reason};
use crate::graph::op::Conv2d;

pub(super) fn conv(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, weight) = (n.input(0)?, n.input(1)?);
    let shape = n.ty(weight).shape();
    let Some(&[_, _, kh, kw]) = shape.as_deref() else {
        return Err(
            format!("only convolutions over height and width are supported, its weights are {}", n.ty(weight)).into()
        );
    };
    if n.sizes::<2>("kernel_shape", 0).is_ok_and(|k| k != [0, 0] && k != [kh, kw]) {
        return Err("its kernel_shape is not that of its weights".into());
    }
    let w = window(n, &n.ty(data).clone(), [kh, kw])?;
    let groups = usize::try_from(n.int("group").unwrap_or(1)).map_err(|_| "its group must not be negative")?;
    let weight = n.transposed("weight", weight, &[0, 2, 3, 1])?;
    let mut operands = vec![data, weight];
    if n.has_input(2) {
        operands.push(n.input(2)?);
    }
    let (strides, pads, dilations) = (w.strides, w.pads, w.dilations);
    let op = Conv2d { strides, pads, dilations, groups, layout: NCHW, data_zero_point: 0, weight_zero_point: 0 };
    let v = n.node("", op, &operands)?;
    n.output(v)
}
