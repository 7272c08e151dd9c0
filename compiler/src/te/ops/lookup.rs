//! `lookup`: a function of one byte, given as a table.

use crate::graph::DType;
use crate::te::{Builder, TensorRef};

/// Appends `table[x + 128]`.
pub fn lookup(b: &mut Builder, x: &TensorRef, table: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute("lookup", out, |i| table.at(&[x.at(i).cast(DType::I64) + 128]))
}
