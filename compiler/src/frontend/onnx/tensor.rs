//! Constants of ONNX files.

use super::external;
use super::proto::{SparseTensorProto, TensorProto};
use crate::frontend::room::Room;
use crate::graph::op::rank_in_bounds;
use crate::graph::{DType, Tensor, TensorData, TensorType};
use std::path::Path;

/// Numbers of half and double precision in the format.
pub(super) const HALF: i32 = 10;
pub(super) const DOUBLE: i32 = 11;

/// The graph's element type for a type number of the format; half and double precision become single.
pub(super) fn dtype(data_type: i32) -> Result<DType, String> {
    match data_type {
        1 | HALF | DOUBLE => Ok(DType::F32),
        2 => Ok(DType::U8),
        3 => Ok(DType::I8),
        6 => Ok(DType::I32),
        7 => Ok(DType::I64),
        9 => Ok(DType::Bool),
        0 => Err("its element type is missing".into()),
        n => {
            let name = usize::try_from(n).ok().and_then(|n| NAMES.get(n)).copied().unwrap_or("unknown");
            let known = "use FLOAT, UINT8, INT8, INT32, INT64 or BOOL, or FLOAT16 or DOUBLE, which become FLOAT";
            Err(format!("element type {name} (number {n}) is not supported; {known}"))
        }
    }
}

/// Element types by their numbers in the format.
const NAMES: [&str; 27] = [
    "UNDEFINED",
    "FLOAT",
    "UINT8",
    "INT8",
    "UINT16",
    "INT16",
    "INT32",
    "INT64",
    "STRING",
    "BOOL",
    "FLOAT16",
    "DOUBLE",
    "UINT32",
    "UINT64",
    "COMPLEX64",
    "COMPLEX128",
    "BFLOAT16",
    "FLOAT8E4M3FN",
    "FLOAT8E4M3FNUZ",
    "FLOAT8E5M2",
    "FLOAT8E5M2FNUZ",
    "UINT4",
    "INT4",
    "FLOAT4E2M1",
    "FLOAT8E8M0",
    "UINT2",
    "INT2",
];

/// Reads a constant; `folders` can hold its external data file.
pub(super) fn tensor(t: &TensorProto, folders: &[&Path]) -> Result<Tensor, String> {
    read(t, folders).map_err(|reason| format!("constant `{}`: {reason}", t.name))
}

fn shape(dims: &[i64]) -> Result<Vec<usize>, String> {
    rank_in_bounds(dims.len()).map_err(|e| e.to_string())?;
    dims.iter().map(|&n| usize::try_from(n).map_err(|_| format!("its size {n} is negative"))).collect()
}

fn read(t: &TensorProto, folders: &[&Path]) -> Result<Tensor, String> {
    let d = dtype(t.data_type)?;
    let shape = shape(&t.dims)?;
    if let Some(part) = t.segment {
        let (begin, end) = (part.begin, part.end);
        return Err(format!("it is only a segment, elements {begin} to {end}; write the whole tensor into the file"));
    }
    let lists = [t.float_data.len(), t.int32_data.len(), t.int64_data.len(), t.double_data.len()];
    let given = [
        ("in another file", t.data_location == 1),
        ("as raw bytes", !t.raw_data.is_empty()),
        ("as a list", lists.iter().any(|&len| len > 0)),
    ];
    let mut given = given.into_iter().filter_map(|(how, is)| is.then_some(how));
    if let (Some(one), Some(other)) = (given.next(), given.next()) {
        return Err(format!("its data are given twice, {one} and {other}; remove one of them"));
    }
    let external;
    let raw = if t.data_location == 1 {
        let count = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        let width = match t.data_type {
            HALF => 2,
            DOUBLE => 8,
            _ => d.size_bytes(),
        };
        let size = count.and_then(|n| n.checked_mul(width)).ok_or("its shape is too large")?;
        external = external::read(t, folders, size as u64)?;
        &external
    } else {
        &t.raw_data
    };
    let misfit = || format!("its data do not fit its shape {shape:?}");
    if !raw.is_empty() {
        let floats: Vec<f32> = match t.data_type {
            HALF if raw.len().is_multiple_of(2) => {
                raw.chunks_exact(2).map(|b| half::f16::from_le_bytes([b[0], b[1]]).to_f32()).collect()
            }
            DOUBLE if raw.len().is_multiple_of(8) => {
                let word = |b: &[u8]| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]) as f32;
                raw.chunks_exact(8).map(word).collect()
            }
            _ => return Tensor::from_bytes(d, &shape, raw).ok_or_else(misfit),
        };
        return Tensor::new(&shape, floats).ok_or_else(misfit);
    }
    let ints = &t.int32_data;
    let made = match t.data_type {
        1 => Tensor::new(&shape, t.float_data.clone()),
        HALF => Tensor::new(&shape, ints.iter().map(|&b| half::f16::from_bits(b as u16).to_f32()).collect()),
        DOUBLE => Tensor::new(&shape, t.double_data.iter().map(|&x| x as f32).collect()),
        2 => Tensor::new(&shape, ints.iter().map(|&x| x as u8).collect()),
        3 => Tensor::new(&shape, ints.iter().map(|&x| x as i8).collect()),
        6 => Tensor::new(&shape, ints.clone()),
        7 => Tensor::new(&shape, t.int64_data.clone()),
        _ => Tensor::new(&shape, ints.iter().map(|&x| x != 0).collect()),
    };
    made.ok_or_else(misfit)
}

/// Expands a sparse tensor. Its bytes are subtracted from `room`, the bytes that the import can still allocate.
pub(super) fn dense(t: &SparseTensorProto, folders: &[&Path], room: &mut Room) -> Result<Tensor, String> {
    let name = t.values.as_ref().map(|v| v.name.as_str()).unwrap_or_default();
    expand(t, folders, room).map_err(|reason| format!("sparse constant `{name}`: {reason}"))
}

fn expand(t: &SparseTensorProto, folders: &[&Path], room: &mut Room) -> Result<Tensor, String> {
    let values = read(t.values.as_ref().ok_or("it has no values")?, folders)?;
    let indices = read(t.indices.as_ref().ok_or("it has no indices")?, folders).map_err(|e| format!("indices: {e}"))?;
    let shape = shape(&t.dims)?;
    let &[count] = values.shape() else {
        return Err(format!("its values must have one dimension, found {}", values.ty()));
    };
    let TensorData::I64(at) = indices.data() else {
        return Err(format!("its indices must be of type i64, found {}", indices.ty()));
    };
    let ty = TensorType::new(values.dtype(), &shape);
    let size = ty.element_count().and_then(|n| n.checked_mul(ty.dtype.size_bytes()));
    room.take(size, || format!("expanded it is {ty}"))?;
    let size = size.unwrap_or_default();
    let misfit = || format!("its indices {} do not match {count} values of {} dimensions", indices.ty(), shape.len());
    // The sizes that an index counts in: all elements, or each dimension.
    let sizes = match *indices.shape() {
        [n] if n == count => vec![shape.iter().product()],
        [n, rank] if n == count && rank == shape.len() => shape.clone(),
        _ => return Err(misfit()),
    };
    let steps = crate::graph::strides_of(&sizes);
    let width = values.dtype().size_bytes();
    let (mut bytes, from) = (vec![0; size], values.to_bytes());
    let mut last = None;
    for i in 0..count {
        let mut place = 0;
        for (d, (&size, &step)) in sizes.iter().zip(&steps).enumerate() {
            let index = at[i * sizes.len() + d];
            let inside = usize::try_from(index).ok().filter(|&i| i < size);
            place += inside.ok_or_else(|| format!("its index {index} is out of range for {size} elements"))? * step;
        }
        if last.is_some_and(|last| last >= place) {
            return Err("its indices must be strictly ascending".into());
        }
        last = Some(place);
        bytes[place * width..][..width].copy_from_slice(&from[i * width..][..width]);
    }
    Tensor::from_bytes(values.dtype(), &shape, &bytes).ok_or_else(|| "its shape is too large".into())
}

/// uint8 as int8, 128 less; other tensors unchanged.
pub(super) fn shifted(t: Tensor) -> Tensor {
    match t.data() {
        TensorData::U8(v) => Tensor::from_fn(t.shape(), |i| (v[i] ^ 0x80) as i8),
        _ => t,
    }
}

#[cfg(test)]
mod tests;
