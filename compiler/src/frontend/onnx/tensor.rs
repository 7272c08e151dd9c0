//! Constants of ONNX files.

use super::external;
use super::proto::{SparseTensorProto, TensorProto};
use crate::frontend::packed_bits;
use crate::frontend::room::Room;
use crate::graph::op::rank_in_bounds;
use crate::graph::{DType, Tensor, TensorData, TensorType};
use std::fmt;
use std::path::Path;
use tilewright_runtime::tensor::NarrowFloat;

/// An element type of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Element {
    /// The graph's type that has all of its values.
    pub dtype: DType,
    /// The float type, if it is narrower than the graph's.
    pub float: Option<NarrowFloat>,
    /// Bits of an integer in the file, if it is narrower than a byte.
    pub bits: Option<usize>,
}

impl Element {
    /// A type that the graph has.
    pub fn plain(dtype: DType) -> Element {
        Element { dtype, float: None, bits: None }
    }

    /// Whether the graph's type has other values, too.
    pub fn is_narrow(self) -> bool {
        self.float.is_some() || self.bits.is_some()
    }

    /// The least and the greatest integer.
    pub fn range(self) -> (i64, i64) {
        let (lo, hi) = crate::te::scalar::range(self.dtype);
        match self.bits {
            Some(bits) => (lo >> (8 - bits), hi >> (8 - bits)),
            None => (lo, hi),
        }
    }

    /// Bits of an element in the file.
    fn width(self) -> usize {
        match (self.bits, self.float) {
            (Some(bits), _) => bits,
            (_, Some(NarrowFloat::F4E2m1)) => 4,
            (_, Some(float)) => float.size() * 8,
            _ => self.dtype.size_bytes() * 8,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match (self.float, self.bits) {
            (Some(float), _) => f.write_str(float.name()),
            (_, Some(bits)) => write!(f, "{}{bits}", if self.dtype.is_unsigned() { "u" } else { "i" }),
            _ => write!(f, "{}", self.dtype),
        }
    }
}

/// The element type with a number of the format.
pub(super) fn element(data_type: i32) -> Result<Element, String> {
    use NarrowFloat::*;
    let plain = |dtype| Ok(Element::plain(dtype));
    let narrow = |float| Ok(Element { dtype: DType::F32, float: Some(float), bits: None });
    let part = |dtype, bits| Ok(Element { dtype, float: None, bits: Some(bits) });
    match data_type {
        1 => plain(DType::F32),
        2 => plain(DType::U8),
        3 => plain(DType::I8),
        4 => plain(DType::U16),
        5 => plain(DType::I16),
        6 => plain(DType::I32),
        7 => plain(DType::I64),
        9 => plain(DType::Bool),
        10 => narrow(F16),
        11 => plain(DType::F64),
        12 => plain(DType::U32),
        13 => plain(DType::U64),
        16 => narrow(Bf16),
        17 => narrow(F8E4m3fn),
        18 => narrow(F8E4m3fnuz),
        19 => narrow(F8E5m2),
        20 => narrow(F8E5m2fnuz),
        21 => part(DType::U8, 4),
        22 => part(DType::I8, 4),
        23 => narrow(F4E2m1),
        24 => narrow(F8E8m0),
        25 => part(DType::U8, 2),
        26 => part(DType::I8, 2),
        0 => Err("its element type is missing".into()),
        n => {
            let name = usize::try_from(n).ok().and_then(|n| NAMES.get(n)).copied().unwrap_or("unknown");
            Err(format!("element type {name} (number {n}) is not supported; use integers, floats or BOOL"))
        }
    }
}

/// The number in the format of an element type of the graph.
pub(super) fn number(dtype: DType) -> i32 {
    (1..NAMES.len() as i32).find(|n| element(*n) == Ok(Element::plain(dtype))).unwrap_or(0)
}

/// The graph's element type for a type number of the format.
pub(super) fn dtype(data_type: i32) -> Result<DType, String> {
    element(data_type).map(|element| element.dtype)
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
    let element = element(t.data_type)?;
    let shape = shape(&t.dims)?;
    if let Some(part) = t.segment {
        let (begin, end) = (part.begin, part.end);
        return Err(format!("it is only a segment, elements {begin} to {end}; write the whole tensor into the file"));
    }
    let lists = [t.float_data.len(), t.int32_data.len(), t.int64_data.len(), t.double_data.len(), t.uint64_data.len()];
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
        let bits = count.and_then(|n| n.checked_mul(element.width()));
        let size = bits.ok_or("its shape is too large")?.div_ceil(8);
        external = external::read(t, folders, size as u64)?;
        &external
    } else {
        &t.raw_data
    };
    let misfit = || format!("its data do not fit its shape {shape:?}");
    if !raw.is_empty() {
        return of_bytes(element, &shape, raw).ok_or_else(misfit);
    }
    let ints = &t.int32_data;
    let made = match element.dtype {
        // Elements of less than a byte are packed as in bytes.
        _ if element.width() < 8 => of_bytes(element, &shape, &ints.iter().map(|&x| x as u8).collect::<Vec<_>>()),
        DType::F32 => match element.float {
            None => Tensor::new(&shape, t.float_data.clone()),
            Some(float) => Tensor::new(&shape, ints.iter().map(|&bits| float.widen(bits as u16)).collect()),
        },
        DType::F64 => Tensor::new(&shape, t.double_data.clone()),
        DType::U8 => Tensor::new(&shape, ints.iter().map(|&x| x as u8).collect()),
        DType::I8 => Tensor::new(&shape, ints.iter().map(|&x| x as i8).collect()),
        DType::U16 => Tensor::new(&shape, ints.iter().map(|&x| x as u16).collect()),
        DType::I16 => Tensor::new(&shape, ints.iter().map(|&x| x as i16).collect()),
        DType::I32 => Tensor::new(&shape, ints.clone()),
        DType::I64 => Tensor::new(&shape, t.int64_data.clone()),
        DType::U32 => Tensor::new(&shape, t.uint64_data.iter().map(|&x| x as u32).collect()),
        DType::U64 => Tensor::new(&shape, t.uint64_data.clone()),
        DType::Bool => Tensor::new(&shape, ints.iter().map(|&x| x != 0).collect()),
    };
    made.ok_or_else(misfit)
}

/// A tensor from its bytes in the file; `None` if their number does not fit. Elements of less than a byte fill bytes from
/// their low bits on.
fn of_bytes(element: Element, shape: &[usize], bytes: &[u8]) -> Option<Tensor> {
    let count = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
    let width = element.width();
    if !packed_bits::fill(bytes, width, count) {
        return None;
    }
    let part = |i: usize| packed_bits::unsigned(bytes, width, i);
    match (element.float, element.bits) {
        (Some(float), _) if float.size() == 2 => {
            let word = |i: usize| u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]]);
            Some(Tensor::from_fn(shape, |i| float.widen(word(i))))
        }
        (Some(float), _) => Some(Tensor::from_fn(shape, |i| float.widen(part(i).into()))),
        (_, Some(_)) if element.dtype == DType::I8 => {
            Some(Tensor::from_fn(shape, |i| packed_bits::signed(bytes, width, i)))
        }
        (_, Some(_)) => Some(Tensor::from_fn(shape, part)),
        (None, None) => Tensor::from_bytes(element.dtype, shape, bytes),
    }
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
