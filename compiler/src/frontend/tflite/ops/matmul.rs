//! BATCH_MATMUL.

use super::expect;
use crate::frontend::reason::Reason;
use crate::frontend::tflite::quant::{Activation, per_tensor};
use crate::frontend::tflite::scaling::{Scaling, requantize};
use crate::frontend::tflite::{NodeContext, wide};
use crate::graph::op::{MatMul, QMatMul, Transpose};
use crate::graph::{DType, ValueId};

pub(super) fn batch_matmul(n: &mut NodeContext) -> Result<(), Reason> {
    let flags = n.op.options.map_or(Ok([0, 0]), |o| Ok::<_, String>([o.i8(0)?, o.i8(1)?]))?;
    let mut operands = [n.input(0)?, n.input(1)?];
    let dtype = expect(n, operands[0], &[DType::F32, DType::I8, DType::I16])?;
    expect(n, operands[1], &[dtype])?;
    for (i, suffix) in ["a", "b"].into_iter().enumerate() {
        if flags[i] != 0 {
            operands[i] = transposed(n, suffix, operands[i])?;
        }
    }
    if dtype == DType::F32 {
        let v = n.node("", MatMul {}, &operands)?;
        return n.output(v);
    }
    let (a, b) = (per_tensor(n.input_info(0)?)?, per_tensor(n.input_info(1)?)?);
    let to = n.result()?;
    // Scales are multiplied in single precision (`GetQuantizedConvolutionMultipler`).
    let factor = f64::from(a.scale * b.scale) / f64::from(to.scale);
    if dtype == DType::I16 {
        let [a, b] = [wide::operand(n, 0, operands[0])?, wide::operand(n, 1, operands[1])?];
        let sums = n.node("matmul", MatMul {}, &[a, b])?;
        let v = wide::requantized(n, sums, None, &[factor], Activation::None)?;
        return n.output(v);
    }
    let op = QMatMul { a_zero_point: a.zero_point, b_zero_point: b.zero_point };
    let acc = n.node("matmul", op, &operands)?;
    let columns = *n.shape(acc)?.last().ok_or("its result has no dimension")?;
    n.reserve_tables(columns)?;
    let axis = n.ty(acc).rank() - 1;
    let depth = n.shape(operands[0])?.last().map_or(0, |&d| i64::try_from(d).unwrap_or(i64::MAX));
    let most = |zero_point: i32| i64::from((127 - zero_point).max(zero_point + 128));
    let sum = depth.saturating_mul(most(a.zero_point) * most(b.zero_point));
    let scaling = Scaling::double(&vec![factor; columns], || vec![sum; columns])?;
    let v = requantize(n, acc, axis, vec![0; columns], scaling, to, Activation::None)?;
    n.output(v)
}

/// Swaps the last two dimensions.
fn transposed(n: &mut NodeContext, suffix: &str, v: ValueId) -> Result<ValueId, Reason> {
    let rank = n.ty(v).rank();
    if rank < 2 {
        return Err("its operands must have 2 or more dimensions".into());
    }
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.swap(rank - 2, rank - 1);
    n.node(&format!("{suffix}_transposed"), Transpose { perm }, &[v])
}
