//! Constants of ONNX files.

use super::proto::TensorProto;
use crate::graph::op::rank_in_bounds;
use crate::graph::{DType, Tensor, TensorData};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path};

/// Numbers of half and double precision in the format.
pub(super) const HALF: i32 = 10;
pub(super) const DOUBLE: i32 = 11;

/// The element type of a number of the format, as the graph holds it; half and double precision become single.
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
            let known = "FLOAT, UINT8, INT8, INT32, INT64 and BOOL are, and FLOAT16 and DOUBLE in single precision";
            Err(format!("element type {name} (number {n}) is not supported; {known}"))
        }
    }
}

/// Element types by their numbers in the format.
const NAMES: [&str; 24] = [
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
];

/// The value of a constant; `folder` is where the data of a file beside the model are.
pub(super) fn tensor(t: &TensorProto, folder: Option<&Path>) -> Result<Tensor, String> {
    read(t, folder).map_err(|reason| format!("constant `{}`: {reason}", t.name))
}

fn read(t: &TensorProto, folder: Option<&Path>) -> Result<Tensor, String> {
    let d = dtype(t.data_type)?;
    rank_in_bounds(t.dims.len()).map_err(|e| e.to_string())?;
    let size = |&n: &i64| usize::try_from(n).map_err(|_| format!("its size {n} is negative"));
    let shape = t.dims.iter().map(size).collect::<Result<Vec<_>, _>>()?;
    let external;
    let raw = if t.data_location == 1 {
        let count = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        let width = if t.data_type == DOUBLE { 8 } else { d.size_bytes() };
        let most = count.and_then(|n| n.checked_mul(width)).ok_or("its shape is too large")?;
        external = external_data(t, folder, most as u64 + 1)?;
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

/// The bytes of a constant in a file beside the model, at most so many.
fn external_data(t: &TensorProto, folder: Option<&Path>, most: u64) -> Result<Vec<u8>, String> {
    let get = |key: &str| t.external_data.iter().find(|e| e.key == key).map(|e| e.value.as_str());
    let number = |key: &str| get(key).map(|v| v.parse::<u64>().map_err(|_| format!("its {key} `{v}` is no number")));
    let folder = folder.ok_or("its data are in another file, which cannot be found from here")?;
    let name = get("location").ok_or("its data are in another file that is not named")?;
    let inside = Path::new(name).components().all(|c| matches!(c, Component::Normal(_)));
    if !inside || name.is_empty() {
        return Err(format!("its data file `{name}` must lie in the model's folder"));
    }
    let path = folder.join(name);
    let failed = |e: std::io::Error| format!("cannot read its data from {}: {e}", path.display());
    // A link may lead out of the folder as well.
    if !path.canonicalize().map_err(failed)?.starts_with(folder.canonicalize().map_err(failed)?) {
        return Err(format!("its data file `{name}` must lie in the model's folder"));
    }
    let mut file = std::fs::File::open(&path).map_err(failed)?;
    file.seek(SeekFrom::Start(number("offset").transpose()?.unwrap_or(0))).map_err(failed)?;
    let length = number("length").transpose()?;
    let mut bytes = Vec::new();
    file.take(length.unwrap_or(most).min(most)).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Unsigned bytes as signed ones, 128 less; other tensors as they are.
pub(super) fn shifted(t: Tensor) -> Tensor {
    match t.data() {
        TensorData::U8(v) => Tensor::from_fn(t.shape(), |i| (v[i] ^ 0x80) as i8),
        _ => t,
    }
}
