//! `shift_sign`: converts unsigned bytes to signed ones and back.

use crate::graph::DType;
use crate::te::{Builder, TensorRef};

/// Appends `x - 128` for u8, or `x + 128` for i8, in the other type.
pub fn shift_sign(b: &mut Builder, x: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute("shift_sign", out, |i| {
        let v = x.at(i).cast(DType::I32);
        if x.dtype == DType::U8 { (v - 128).cast(DType::I8) } else { (v + 128).cast(DType::U8) }
    })
}
