//! NumPy's `.npy` and `.npz` files.
//!
//! Reading accepts every version of the format, both byte orders and both element orders, and returns row-major
//! little-endian tensors. Writing produces version 1.0, as NumPy does.

mod header;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use crate::tensor::{DType, Tensor, byte_len, shape_text};
use header::Header;

/// Errors of a `.npy` or `.npz` file.
#[derive(Debug, thiserror::Error)]
pub enum NpyError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The content is not an array that this reader supports.
    #[error("{path} is not a usable NumPy file: {reason}; write it with numpy.save or numpy.savez")]
    Malformed {
        /// The file, and for an archive the member.
        path: String,
        /// What is wrong.
        reason: String,
    },
}

/// Reads a `.npy` file.
///
/// # Errors
/// [`NpyError::Read`] if there is no such file, [`NpyError::Malformed`] if it holds no array of numbers.
pub fn read(path: &Path) -> Result<Tensor, NpyError> {
    let bytes = fs::read(path).map_err(|source| NpyError::Read { path: path.to_path_buf(), source })?;
    parse(&bytes).map_err(|reason| NpyError::Malformed { path: path.display().to_string(), reason })
}

/// Reads a `.npy` file as one unnamed array, or a `.npz` file as its named arrays in the order of the archive.
///
/// # Errors
/// As [`read`]; the content decides which of the two it is, not the name.
pub fn read_any(path: &Path) -> Result<Vec<(Option<String>, Tensor)>, NpyError> {
    let bytes = fs::read(path).map_err(|source| NpyError::Read { path: path.to_path_buf(), source })?;
    let malformed = |path: String, reason: String| NpyError::Malformed { path, reason };
    if !bytes.starts_with(b"PK") {
        let tensor = parse(&bytes).map_err(|reason| malformed(path.display().to_string(), reason))?;
        return Ok(vec![(None, tensor)]);
    }
    let archive_error = |e: zip::result::ZipError| malformed(path.display().to_string(), e.to_string());
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(archive_error)?;
    let mut arrays = Vec::with_capacity(archive.len());
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(archive_error)?;
        let name = member.name().to_string();
        let place = || format!("{}, array {name}", path.display());
        let content = inflate(&mut member).map_err(|reason| malformed(place(), reason))?;
        let tensor = parse(&content).map_err(|reason| malformed(place(), reason))?;
        arrays.push((Some(name.strip_suffix(".npy").unwrap_or(&name).to_string()), tensor));
    }
    Ok(arrays)
}

/// Unpacks an array of an archive, but no more bytes than its header asks for, because few compressed bytes can expand
/// to many.
fn inflate(member: &mut impl Read) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let mut upto = |content: &mut Vec<u8>, len: usize| {
        let more = len.saturating_sub(content.len()) as u64;
        member.by_ref().take(more).read_to_end(content).map(drop).map_err(|e| e.to_string())
    };
    upto(&mut content, header::FIXED)?;
    let start = header::data_start(&content)?;
    upto(&mut content, start)?;
    let Header { dtype, shape, .. } = header::parse(&content)?.0;
    let wanted = byte_len(dtype, &shape).ok_or_else(|| format!("shape {} overflows", shape_text(&shape)))?;
    let end = start.saturating_add(wanted);
    upto(&mut content, end.saturating_add(1))?;
    if content.len() > end {
        return Err(format!("more bytes of data than the {wanted} that {dtype} of shape {} needs", shape_text(&shape)));
    }
    Ok(content)
}

/// Writes a tensor as a `.npy` file, first to a temporary file next to it, so that no partial file is left behind.
///
/// # Errors
/// [`NpyError::Write`] if the folder does not exist or cannot be written.
pub fn write(path: &Path, tensor: &Tensor) -> Result<(), NpyError> {
    crate::files::write_whole(path, &[&encode(tensor)])
        .map_err(|source| NpyError::Write { path: path.to_path_buf(), source })
}

/// The bytes of a `.npy` file before its elements.
pub fn encode_header(dtype: DType, shape: &[usize]) -> Vec<u8> {
    header::encode(dtype, shape)
}

/// The bytes of a `.npy` file that holds `tensor`.
pub fn encode(tensor: &Tensor) -> Vec<u8> {
    let mut bytes = encode_header(tensor.dtype, &tensor.shape);
    bytes.extend_from_slice(&tensor.bytes);
    bytes
}

/// Reads the bytes of a `.npy` file.
///
/// # Errors
/// The reason, as text, if they hold no array of numbers.
pub fn parse(bytes: &[u8]) -> Result<Tensor, String> {
    let (Header { dtype, big_endian, fortran_order, shape }, data) = header::parse(bytes)?;
    let wanted = byte_len(dtype, &shape).ok_or_else(|| format!("shape {} overflows", shape_text(&shape)))?;
    if data.len() != wanted {
        return Err(format!(
            "{} bytes of data, but {dtype} of shape {} needs {wanted}",
            data.len(),
            shape_text(&shape)
        ));
    }
    let mut bytes = data.to_vec();
    if big_endian && dtype.size() > 1 {
        bytes.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
    if fortran_order && shape.len() > 1 && !bytes.is_empty() {
        bytes = to_row_major(&bytes, dtype, &shape);
    }
    Ok(Tensor { dtype, shape, bytes: bytes.into() })
}

fn to_row_major(bytes: &[u8], dtype: DType, shape: &[usize]) -> Vec<u8> {
    let size = dtype.size();
    let mut strides = vec![size; shape.len()];
    for axis in 1..shape.len() {
        strides[axis] = strides[axis - 1] * shape[axis - 1];
    }
    let mut index = vec![0; shape.len()];
    let mut result = Vec::with_capacity(bytes.len());
    while result.len() < bytes.len() {
        let at: usize = index.iter().zip(&strides).map(|(i, s)| i * s).sum();
        result.extend_from_slice(&bytes[at..at + size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    result
}
