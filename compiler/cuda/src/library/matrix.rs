//! Memory layouts of factors as matrices, and tensors that pack factors into such layouts.

use std::collections::HashMap;

use tilewright_compiler::te::{Axis, Combiner, DType, Definition, Expr, Name, Tensor};
use tilewright_runtime::cuda::{Lie, Numbers};

use super::factor::{Digits, Operand};

/// A factor as a batch of matrices in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix {
    /// The tensor.
    pub tensor: Name,
    /// The layout of the elements.
    pub lie: Lie,
    /// Elements from one matrix of the batch to the next.
    pub stride: i64,
    /// Steps of a sum, including those that are only padding.
    pub steps: i64,
}

/// Floats of 16 bits in 16 bytes: with rows of a multiple of it, the library has its fast kernels.
pub const HALVES: i64 = 8;

/// Returns a factor as matrices in its own memory, if a library accepts that layout.
///
/// For bytes, a library requires signed ones with steps next to each other, rows of a multiple of 4, and a number of
/// columns that is a multiple of 4. Floats of 16 bits are copied where their rows are not aligned for fast kernels.
pub fn direct(
    operand: &Operand,
    results: &Digits,
    steps: &Digits,
    batch: &Digits,
    numbers: Numbers,
    columns: bool,
) -> Option<Matrix> {
    let place = &operand.place;
    if !operand.given || place.constant != 0 {
        return None;
    }
    let (mut of_results, of_steps, stride) = (results.step(place)?, steps.step(place)?, batch.step(place)?);
    let (count, depth) = (results.count(), steps.count());
    if count == 1 {
        // There is no next one.
        of_results = depth;
    }
    let lie = if of_steps == 1 && of_results >= depth {
        Lie::Steps(of_results as u64)
    } else if of_results == 1 && of_steps >= count {
        Lie::Results(of_steps as u64)
    } else {
        return None;
    };
    if numbers == Numbers::I8 {
        let fits = matches!(lie, Lie::Steps(next) if next % 4 == 0)
            && operand.dtype() == DType::I8
            && depth % 4 == 0
            && stride % 4 == 0
            && (!columns || count % 4 == 0);
        if !fits {
            return None;
        }
    }
    let (Lie::Steps(next) | Lie::Results(next)) = lie;
    let aligned = |n: i64| n % HALVES == 0;
    if numbers == Numbers::F16 && !(aligned(next as i64) && aligned(stride)) && depth.max(count) >= HALVES {
        return None;
    }
    (stride >= 0).then(|| Matrix { tensor: operand.tensor.clone(), lie, stride, steps: depth })
}

fn axis(name: &str, letter: &str, extent: i64) -> (Axis, Expr) {
    let var: Name = format!("{name}.{letter}").into();
    (Axis { var: var.clone(), extent }, Expr::Var(var))
}

/// Returns a tensor of a factor's elements, padded with zeros: `[batch, count, filled]` with the steps next to each other,
/// or `[batch, filled, count]` with the results next to each other.
pub fn pack(operand: &Operand, digits: [&Digits; 3], [count, filled]: [i64; 2], lie: Lie, name: &str) -> Tensor {
    let [batch, results, steps] = digits;
    let ((b, bv), (r, rv), (k, kv)) = (axis(name, "b", batch.count()), axis(name, "r", count), axis(name, "k", filled));
    let mut values = HashMap::new();
    batch.decode(&bv, &mut values);
    results.decode(&rv, &mut values);
    steps.decode(&kv, &mut values);
    let mut value = operand.element(&values);
    let dtype = value.dtype();
    let zero = if dtype == DType::F32 { Expr::f32(0.0) } else { Expr::Int(0, dtype) };
    for (at, there, all) in [(kv, steps.count(), filled), (rv, results.count(), count)] {
        if there < all {
            value = at.lt(Expr::int(there)).select(value, zero.clone());
        }
    }
    let axes = match lie {
        Lie::Steps(_) => vec![b, r, k],
        Lie::Results(_) => vec![b, k, r],
    };
    Tensor { name: name.into(), dtype, axes, definition: Definition::Compute(value) }
}

/// Returns a tensor `[batch, results]` with the sums over a factor's steps, in i32.
pub fn sums(operand: &Operand, digits: [&Digits; 3], name: &str) -> Tensor {
    let [batch, results, steps] = digits;
    let ((b, bv), (r, rv), (k, kv)) =
        (axis(name, "b", batch.count()), axis(name, "r", results.count()), axis(name, "k", steps.count()));
    let mut values = HashMap::new();
    batch.decode(&bv, &mut values);
    results.decode(&rv, &mut values);
    steps.decode(&kv, &mut values);
    let value = operand.element(&values).cast(DType::I32);
    let definition =
        Definition::Reduce { axes: vec![k], combiner: Combiner::Sum, init: Expr::Int(0, DType::I32), value };
    Tensor { name: name.into(), dtype: DType::I32, axes: vec![b, r], definition }
}
