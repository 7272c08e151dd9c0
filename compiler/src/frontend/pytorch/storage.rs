//! Tensors in storages: elements at strides from an offset.

use super::schema::{Scalar, TensorMeta};
use crate::graph::{DType, Tensor, strides_of};
use std::collections::BTreeMap;
use tilewright_runtime::tensor::NarrowFloat;

/// Greatest number of dimensions of a stored tensor.
const MOST_DIMENSIONS: usize = 16;

/// The tensor that lies in a storage's bytes, little-endian. Half precision becomes single.
pub(super) fn tensor(meta: &TensorMeta, bytes: &[u8]) -> Result<Tensor, String> {
    let dtype = meta.dtype.dtype()?;
    if meta.layout != TensorMeta::STRIDED {
        return Err("sparse tensors are not supported".into());
    }
    let known = |list: &[super::schema::Size]| {
        let list = list.iter().map(|size| usize::try_from(size.known(&BTreeMap::new())?).ok());
        list.collect::<Option<Vec<usize>>>().ok_or("its sizes and strides must be numbers of at least 0")
    };
    let (shape, strides) = (known(&meta.sizes)?, known(&meta.strides)?);
    let offset = known(meta.storage_offset.as_slice())?.first().copied().unwrap_or(0);
    if shape.len() != strides.len() || shape.len() > MOST_DIMENSIONS {
        return Err(format!("its {} sizes and {} strides do not suit", shape.len(), strides.len()));
    }
    let width = meta.dtype.size_bytes();
    let most = shape.iter().try_fold(1usize, |n, d| n.checked_mul((*d).max(1)));
    most.filter(|most| *most <= 1 << 40).ok_or("it is too large")?;
    let count: usize = shape.iter().product();
    // The last element that is read must be there, and no element may be read so often that the tensor is much larger than
    // its storage.
    let last =
        shape.iter().zip(&strides).try_fold(offset, |at, (d, s)| at.checked_add(d.saturating_sub(1).checked_mul(*s)?));
    let there = bytes.len() / width.max(1);
    if count > 0 && last.is_none_or(|last| last >= there) {
        return Err(format!("its {} bytes are too few for {shape:?}", bytes.len()));
    }
    if count > there.saturating_mul(16).max(1 << 16) {
        return Err(format!("its {} bytes are too few for {shape:?}", bytes.len()));
    }
    let plain = strides_of(&shape);
    let contiguous = count == 0 || shape.iter().zip(&strides).zip(&plain).all(|((d, s), p)| *d == 1 || s == p);
    let gathered;
    let own: &[u8] = if contiguous {
        &bytes[offset.saturating_mul(width).min(bytes.len())..][..if count == 0 { 0 } else { count * width }]
    } else {
        let mut all = Vec::with_capacity(count * width);
        for i in 0..count {
            let places = shape.iter().zip(&plain).zip(&strides);
            let at = offset + places.map(|((d, p), s)| i / p % d * s).sum::<usize>();
            all.extend_from_slice(&bytes[at * width..][..width]);
        }
        gathered = all;
        &gathered
    };
    let made = match meta.dtype {
        Scalar::Known { float: Some(float), .. } => halves(float, &shape, own),
        Scalar::Known { dtype: DType::Bool, .. } if own.iter().any(|b| *b > 1) => None,
        _ => Tensor::from_bytes(dtype, &shape, own),
    };
    made.ok_or_else(|| format!("its bytes are not {} elements of type {dtype}", count))
}

/// Floats of 16 bits in single precision.
fn halves(float: NarrowFloat, shape: &[usize], bytes: &[u8]) -> Option<Tensor> {
    let halves = bytes.chunks_exact(2).map(|b| [b[0], b[1]]);
    let list = match float {
        NarrowFloat::F16 => halves.map(|b| half::f16::from_le_bytes(b).to_f32()).collect(),
        NarrowFloat::Bf16 => halves.map(|b| half::bf16::from_le_bytes(b).to_f32()).collect(),
        _ => return None,
    };
    Tensor::new(shape, list)
}
