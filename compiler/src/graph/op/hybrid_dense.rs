//! `hybrid_dense`: a fully connected layer of floats with int8 weights.

use super::{check, extreme};
use crate::graph::{DType, Dim, OpError, Tensor, TensorType};

operator! {
    /// `data [M, K]` (f32) times the transpose of `weight [N, K]` (i8, with `scale [N]`), plus `bias [N]`: f32 `[M,
    /// N]`.
    ///
    /// Each row of the data is quantized to 8 bits by its own range, as in TFLite's hybrid kernels, multiplied as
    /// integers, and scaled back: `bias + sum((q - z) * w) * (s * scale)`.
    ///
    /// - Symmetric: `s = max |x| / 127`, `z = 0`, `q = round(x * (127 / max |x|))`.
    /// - Asymmetric: `s = (hi - lo) / 255`, where `lo..hi` is the range extended to 0; `z` is the integer for 0,
    ///   computed from the end of the range with the smaller rounding error (`128 + |lo| / s` against `127 + hi / s`);
    ///   `q = round(z + x * (1 / s))`.
    ///
    /// Ties go away from zero; a row of zeros gives the bias.
    HybridDense = "hybrid_dense"(data, weight, scale, bias) {
        /// Quantizes by the range of a row instead of by its greatest magnitude.
        asymmetric: bool = false,
    }
}

impl HybridDense {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 4, 4)?;
        let (data, weight) = (inputs[0], inputs[1]);
        check::dtype("data", data, &[DType::F32])?;
        check::dtype("weight", weight, &[DType::I8])?;
        check::rank("data", data, 2)?;
        check::rank("weight", weight, 2)?;
        let w = check::known("weight", weight)?;
        if data.dims[1] != Dim::Fixed(w[1]) {
            return Err(OpError::operand("data", format!("of {} columns, like the weights", w[1]), data));
        }
        check::vector("scale", inputs[2], DType::F32, &Dim::Fixed(w[0]))?;
        check::vector("bias", inputs[3], DType::F32, &Dim::Fixed(w[0]))?;
        Ok(TensorType { dtype: DType::F32, dims: vec![data.dims[0].clone(), Dim::Fixed(w[0])] })
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let (x, w) = (inputs[0].as_slice::<f32>()?, inputs[1].as_slice::<i8>()?);
        let (scale, bias) = (inputs[2].as_slice::<f32>()?, inputs[3].as_slice::<f32>()?);
        let (m, k, n) = (inputs[0].shape()[0], inputs[1].shape()[1], inputs[1].shape()[0]);
        let rows: Vec<(Vec<i32>, f32)> = (0..m).map(|i| quantize_row(&x[i * k..][..k], self.asymmetric)).collect();
        Ok(Tensor::from_fn(&[m, n], |i| {
            let ((q, s), c) = (&rows[i / n], i % n);
            let mac = |acc: i32, (&q, &w): (&i32, &i8)| acc.wrapping_add(q * i32::from(w));
            let acc = q.iter().zip(&w[c * k..][..k]).fold(0, mac);
            bias[c] + acc as f32 * (s * scale[c])
        }))
    }
}

/// A row's integers less their zero point, and their scale.
pub(super) fn quantize_row(row: &[f32], asymmetric: bool) -> (Vec<i32>, f32) {
    let lo = row.iter().fold(0f32, |m, &x| extreme::least(m, x));
    let hi = row.iter().fold(0f32, |m, &x| extreme::greatest(m, x));
    if !asymmetric {
        let range = extreme::greatest(hi, -lo);
        let inverse = if range == 0.0 { 0.0 } else { 127.0 / range };
        let q = |&x: &f32| ((x * inverse).round() as i32).clamp(-127, 127);
        return (row.iter().map(q).collect(), range / 127.0);
    }
    let s = (hi - lo) / 255.0;
    let inverse = if s == 0.0 { 0.0 } else { 1.0 / s };
    let (below, above) = (lo * inverse, hi * inverse);
    let z = if 128.0 - below < 127.0 + above { -128.0 - below } else { 127.0 - above };
    let z = z.round().clamp(-128.0, 127.0);
    let q = |&x: &f32| ((z + x * inverse).round() as i32).clamp(-128, 127) - z as i32;
    (row.iter().map(q).collect(), s)
}
