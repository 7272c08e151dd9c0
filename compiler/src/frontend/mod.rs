//! Front ends: model files to graphs.
//!
//! Each format has a reader of its own, a registry with one function for each operator, and gives a verified [`Graph`].
//! TFLite networks keep `[N, H, W, C]` and arrive in integer form; ONNX networks keep `[N, C, H, W]`, and their quantized
//! groups are made integer by the passes. Nothing here panics on a damaged file.

mod error;
mod kind;
pub mod onnx;
mod sizes;
mod sources;
pub mod tflite;

pub use error::{ImportError, UnsupportedNode};
pub use sizes::Sizes;
pub use sources::Sources;

use crate::graph::Graph;
use std::path::Path;
use tilewright_runtime::artifact::About;

/// What a person does about a file that is no model.
const FORMATS: &str = "give a .tflite or an .onnx file";

/// What a file looks like that is no model, where that can be told.
pub fn other_kind(bytes: &[u8]) -> Option<&'static str> {
    kind::other(bytes)
}

/// Reads a model file; the content decides its format, the name only where the content cannot.
///
/// # Errors
/// When the file cannot be read, is damaged, or has operators that are not supported, all of which are listed.
pub fn import(path: &Path) -> Result<Graph, ImportError> {
    import_sized(path, &Sizes::default())
}

/// The same with sizes for dimensions that the file leaves open.
///
/// # Errors
/// As [`import`], and where the sizes do not suit the file.
pub fn import_sized(path: &Path, sizes: &Sizes) -> Result<Graph, ImportError> {
    Ok(import_traced(path, sizes)?.0)
}

/// The same, with what the file calls the graph's values.
///
/// # Errors
/// As [`import_sized`].
pub fn import_traced(path: &Path, sizes: &Sizes) -> Result<(Graph, Sources), ImportError> {
    let file = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|source| ImportError::Read { file: file.clone(), source })?;
    let of_tflite = tflite::is_tflite(&bytes);
    if let (Some(kind), false) = (kind::other(&bytes), of_tflite) {
        return Err(ImportError::malformed(&file, format!("it looks like {kind}; {FORMATS}")));
    }
    if of_tflite || path.extension().is_some_and(|e| e.eq_ignore_ascii_case("tflite")) {
        let (graph, sources) = tflite::import_traced(&bytes, &file)?;
        return Ok((sizes.bind(graph, &file)?, sources));
    }
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("onnx")) {
        let resolved = path.canonicalize().ok();
        let folders: Vec<&Path> = [Some(path), resolved.as_deref()].into_iter().filter_map(|p| p?.parent()).collect();
        return onnx::import_traced(&bytes, &file, &folders, sizes);
    }
    Err(ImportError::malformed(&file, format!("its format is not known; {FORMATS}")))
}

/// What a model's file says of its inputs and outputs; a damaged description counts as none, since the import judges the
/// file.
///
/// # Errors
/// Where the file cannot be read.
pub fn about(path: &Path) -> Result<About, ImportError> {
    let bytes = std::fs::read(path).map_err(|source| ImportError::Read { file: path.display().to_string(), source })?;
    let found = if tflite::is_tflite(&bytes) { tflite::about(&bytes) } else { onnx::about(&bytes) };
    Ok(found.unwrap_or_default())
}

#[cfg(test)]
mod tests;
