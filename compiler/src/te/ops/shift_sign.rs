//! `shift_sign`: unsigned bytes as signed ones and back.

use crate::graph::DType;
use crate::te::{Builder, TensorRef};

/// `x - 128` of u8, `x + 128` of i8, in the other type.
pub fn shift_sign(b: &mut Builder, x: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute("shift_sign", out, |i| {
        let v = x.at(i).cast(DType::I32);
        if x.dtype == DType::U8 { (v - 128).cast(DType::I8) } else { (v + 128).cast(DType::U8) }
    })
}
