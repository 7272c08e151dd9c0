//! `bilinear_u8`: resizes images of unsigned bytes, interpolating in floats.

use super::check;
use crate::graph::{DType, Dim, OpError, Tensor, TensorType};

operator! {
    /// Resizes an image `[N,H,W,C]` as TFLite's uint8 kernel does; the i8 data are unsigned bytes less 128.
    ///
    /// Operands: data; then for each row of the result the index of the row before it (i32), of the row after it (i32),
    /// and the distance from the row before it (f32); then the same for each column. The four neighbors are weighted
    /// and summed in f32 in a fixed order, `offset` is added, and the sum is truncated.
    BilinearU8 = "bilinear_u8"(data, row_before, row_after, row_distance, column_before, column_after, column_distance) {
        /// Added before truncation.
        offset: f32 = 0.0,
    }
}

impl BilinearU8 {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 7, 7)?;
        let data = inputs[0];
        check::dtype("data", data, &[DType::I8])?;
        check::rank("data", data, 4)?;
        if !(0.0..1.0).contains(&self.offset) {
            return Err(OpError::attribute("offset", format!("must be from 0 to below 1, found {}", self.offset)));
        }
        let mut dims = data.dims.clone();
        for (d, first) in [(1, 1), (2, 4)] {
            if check::known_dim("data", data, d)? == 0 {
                return Err(OpError::operand("data", "a non-empty image", data));
            }
            check::rank("places", inputs[first], 1)?;
            let size = Dim::Fixed(check::known_dim("places", inputs[first], 0)?);
            for (i, dtype) in [DType::I32, DType::I32, DType::F32].into_iter().enumerate() {
                check::vector("places", inputs[first + i], dtype, &size)?;
            }
            dims[d] = size;
        }
        Ok(TensorType { dtype: DType::I8, dims })
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let types: Vec<_> = inputs.iter().map(|t| t.ty()).collect();
        let shape = check::known("data", &self.infer(&types.iter().collect::<Vec<_>>())?)?;
        let from = inputs[0].shape();
        let x = inputs[0].as_slice::<i8>()?;
        let [y0, y1] = [inputs[1].as_slice::<i32>()?, inputs[2].as_slice::<i32>()?];
        let [x0, x1] = [inputs[4].as_slice::<i32>()?, inputs[5].as_slice::<i32>()?];
        let (dy, dx) = (inputs[3].as_slice::<f32>()?, inputs[6].as_slice::<f32>()?);
        let place = |v: i32, size: usize| i64::from(v).clamp(0, size as i64 - 1) as usize;
        Ok(Tensor::from_fn(&shape, |i| {
            let (c, w) = (i % shape[3], i / shape[3] % shape[2]);
            let (h, n) = (i / shape[3] / shape[2] % shape[1], i / shape[3] / shape[2] / shape[1]);
            let at = |y: i32, z: i32| {
                let (y, z) = (place(y, from[1]), place(z, from[2]));
                f32::from(i16::from(x[((n * from[1] + y) * from[2] + z) * from[3] + c]) + 128)
            };
            let (v, u) = (dy[h], dx[w]);
            let sum = at(y0[h], x0[w]) * (1.0 - v) * (1.0 - u)
                + at(y1[h], x0[w]) * v * (1.0 - u)
                + at(y0[h], x1[w]) * (1.0 - v) * u
                + at(y1[h], x1[w]) * v * u;
            ((sum + self.offset) as i32 - 128).clamp(-128, 127) as i8
        }))
    }
}
