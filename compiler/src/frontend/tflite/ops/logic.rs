//! Comparisons, truth values, choices and conversions.

use super::expect;
use crate::frontend::reason::Reason;
use crate::frontend::tflite::quant::per_tensor;
use crate::frontend::tflite::{NodeContext, dtype};
use crate::graph::op::{BinaryKind, Cast, Gather, Select, UnaryKind};
use crate::graph::{DType, Tensor, ValueId};
use tilewright_hw::num::{quantize_multiplier, scale_double};

/// Two operands to compare.
fn compared(n: &mut NodeContext, types: &[DType]) -> Result<[ValueId; 2], Reason> {
    let both = [n.input(0)?, n.input(1)?];
    if expect(n, both[0], types)? != DType::I8 {
        return Ok(both);
    }
    Ok([scaled(n, 0, both[0])?, scaled(n, 1, both[1])?])
}

/// A byte as the kernels compare it: its real value times 256, as an integer, so that bytes with small scales can be
/// equal that are not the same.
fn scaled(n: &mut NodeContext, i: usize, v: ValueId) -> Result<ValueId, Reason> {
    let q = per_tensor(n.input_info(i)?)?;
    if q.scale >= 1.0 {
        return Err(format!("its operand {i} has scale {}, which must be below 1, as in TFLite", q.scale).into());
    }
    let (multiplier, shift) = quantize_multiplier(f64::from(q.scale));
    let real = |byte: usize| scale_double((byte as i32 - 128 - q.zero_point) * 256, multiplier, shift);
    let name = ["a", "b"][i];
    let table = n.table(&format!("{name}/table"), &[256], real)?;
    let index = n.cast(&format!("{name}/index"), v, DType::I32)?;
    let first = n.made(&format!("{name}/first"), Tensor::scalar(128));
    let index = n.add(&format!("{name}/place"), index, first)?;
    n.node(&format!("{name}/scaled"), Gather { axis: 0 }, &[table, index])
}

fn comparison(n: &mut NodeContext, kind: BinaryKind, turned: bool) -> Result<(), Reason> {
    let [a, b] = compared(n, &[DType::F32, DType::I8, DType::I32, DType::I64])?;
    let [a, b] = if turned { [b, a] } else { [a, b] };
    let v = n.binary("", kind, a, b)?;
    n.output(v)
}

pub(super) fn less(n: &mut NodeContext) -> Result<(), Reason> {
    comparison(n, BinaryKind::Less, false)
}

pub(super) fn less_equal(n: &mut NodeContext) -> Result<(), Reason> {
    comparison(n, BinaryKind::LessEqual, false)
}

pub(super) fn greater(n: &mut NodeContext) -> Result<(), Reason> {
    comparison(n, BinaryKind::Less, true)
}

pub(super) fn greater_equal(n: &mut NodeContext) -> Result<(), Reason> {
    comparison(n, BinaryKind::LessEqual, true)
}

pub(super) fn equal(n: &mut NodeContext) -> Result<(), Reason> {
    let [a, b] = compared(n, &[DType::F32, DType::I8, DType::I32, DType::I64, DType::Bool])?;
    let v = n.binary("", BinaryKind::Equal, a, b)?;
    n.output(v)
}

pub(super) fn not_equal(n: &mut NodeContext) -> Result<(), Reason> {
    let [a, b] = compared(n, &[DType::F32, DType::I8, DType::I32, DType::I64, DType::Bool])?;
    let equal = n.binary("equal", BinaryKind::Equal, a, b)?;
    let v = n.unary("", UnaryKind::Not, equal)?;
    n.output(v)
}

pub(super) fn and(n: &mut NodeContext) -> Result<(), Reason> {
    truths(n, BinaryKind::And)
}

pub(super) fn or(n: &mut NodeContext) -> Result<(), Reason> {
    truths(n, BinaryKind::Or)
}

fn truths(n: &mut NodeContext, kind: BinaryKind) -> Result<(), Reason> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    expect(n, a, &[DType::Bool])?;
    let v = n.binary("", kind, a, b)?;
    n.output(v)
}

pub(super) fn not(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    expect(n, data, &[DType::Bool])?;
    let v = n.unary("", UnaryKind::Not, data)?;
    n.output(v)
}

/// A condition with one dimension chooses among the outermost slices, as SELECT has it.
pub(super) fn select(n: &mut NodeContext) -> Result<(), Reason> {
    let condition = n.input(0)?;
    let rank = n.input_info(1)?.shape.len();
    let condition = match n.shape(condition)?.as_slice() {
        &[outer] if rank > 1 => {
            let mut shape = vec![1; rank];
            shape[0] = outer;
            n.reshape("condition", condition, &shape)?
        }
        _ => condition,
    };
    chosen(n, condition)
}

/// SELECT_V2: all three operands broadcast.
pub(super) fn select_v2(n: &mut NodeContext) -> Result<(), Reason> {
    let condition = n.input(0)?;
    chosen(n, condition)
}

fn chosen(n: &mut NodeContext, condition: ValueId) -> Result<(), Reason> {
    let (a, b) = (n.input(1)?, n.input(2)?);
    if matches!(n.ty(a).dtype, DType::I8 | DType::I16) && n.output_info()?.quantization.is_some() {
        let to = n.result()?;
        if per_tensor(n.input_info(1)?)? != to || per_tensor(n.input_info(2)?)? != to {
            return Err("operands and result must have the same scale and zero point".into());
        }
    }
    let v = n.node("", Select {}, &[condition, a, b])?;
    n.output(v)
}

/// A conversion between element types; quantized bytes are converted by DEQUANTIZE and QUANTIZE alone.
pub(super) fn cast(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    for info in [n.input_info(0)?, n.output_info()?] {
        if info.quantization.is_some() && matches!(dtype(info)?, DType::I8 | DType::U8 | DType::I16) {
            return Err(
                format!("tensor `{}` is quantized; supported are other integers, floats and BOOL", info.name).into()
            );
        }
    }
    let dtype = dtype(n.output_info()?)?;
    let v = if n.ty(data).dtype == dtype { data } else { n.node("", Cast { dtype }, &[data])? };
    n.output(v)
}
