//! Front ends: model files to graphs.
//!
//! Each format has a reader of its own, a registry with one function for each operator, and gives a verified [`Graph`].
//! TFLite networks keep `[N, H, W, C]` and arrive in integer form; ONNX networks keep `[N, C, H, W]`, and their
//! quantized groups are made integer by the passes. Nothing here panics on a damaged file.

mod error;
mod kind;
pub mod onnx;
mod sizes;
mod sources;
pub mod tflite;

pub use error::{ImportError, UnsupportedNode};
pub use sizes::Sizes;
pub use sources::Sources;

use crate::graph::{Graph, TensorType};
use std::collections::BTreeSet;
use std::path::Path;
use tilewright_runtime::artifact::About;

/// What a person does about a file that is no model.
const FORMATS: &str = "give a .tflite or an .onnx file";

/// A format that models are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// TensorFlow Lite's.
    Tflite,
    /// ONNX.
    Onnx,
}

impl Format {
    /// The format that the bytes are of, by their beginning.
    pub fn of_bytes(bytes: &[u8]) -> Option<Format> {
        if tflite::is_tflite(bytes) {
            return Some(Format::Tflite);
        }
        onnx::is_onnx(bytes).then_some(Format::Onnx)
    }

    /// The format of a file: that of its bytes, and where those tell nothing that of its name.
    ///
    /// # Errors
    /// What the file looks like, where it is no model's.
    pub fn of_file(bytes: &[u8], path: &Path) -> Result<Format, &'static str> {
        if let Some(format) = Format::of_bytes(bytes) {
            return Ok(format);
        }
        if let Some(kind) = kind::other(bytes) {
            return Err(kind);
        }
        let suffix = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        match suffix.as_str() {
            "tflite" => Ok(Format::Tflite),
            "onnx" => Ok(Format::Onnx),
            _ => Err("a file of unknown kind"),
        }
    }
}

/// Options of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Sizes for dimensions that the file leaves open.
    pub sizes: Sizes,
    /// Domains of ONNX operators that are functions of the program; an operator's full name, such as
    /// `my.domain.Normalize`, is the function's.
    pub packed: BTreeSet<String>,
}

impl From<Sizes> for ImportOptions {
    fn from(sizes: Sizes) -> ImportOptions {
        ImportOptions { sizes, ..ImportOptions::default() }
    }
}

impl From<&Sizes> for ImportOptions {
    fn from(sizes: &Sizes) -> ImportOptions {
        sizes.clone().into()
    }
}

impl From<&ImportOptions> for ImportOptions {
    fn from(options: &ImportOptions) -> ImportOptions {
        options.clone()
    }
}

/// Reads a model file; the content decides its format, the name only where the content cannot.
///
/// # Errors
/// When the file cannot be read, is damaged, or has operators that are not supported, all of which are listed.
pub fn import(path: &Path) -> Result<Graph, ImportError> {
    import_with(path, Sizes::default())
}

/// The same with options.
///
/// # Errors
/// As [`import`], and where the sizes do not suit the file.
pub fn import_with(path: &Path, options: impl Into<ImportOptions>) -> Result<Graph, ImportError> {
    Ok(import_traced(path, options)?.0)
}

/// The same, with what the file calls the graph's values.
///
/// # Errors
/// As [`import_with`].
pub fn import_traced(path: &Path, options: impl Into<ImportOptions>) -> Result<(Graph, Sources), ImportError> {
    let options = options.into();
    let (bytes, file, format) = read(path)?;
    match format {
        Format::Tflite => {
            let (graph, sources) = tflite::import_traced(&bytes, &file)?;
            Ok((options.sizes.bind(graph, &file)?, sources))
        }
        Format::Onnx => {
            let resolved = path.canonicalize().ok();
            let folders: Vec<&Path> =
                [Some(path), resolved.as_deref()].into_iter().filter_map(|p| p?.parent()).collect();
            onnx::import_traced(&bytes, &file, &folders, &options)
        }
    }
}

/// A model's inputs, with the sizes that its file leaves open.
///
/// # Errors
/// When the file cannot be read or is damaged.
pub fn open_inputs(path: &Path) -> Result<Vec<(String, TensorType)>, ImportError> {
    let (bytes, file, format) = read(path)?;
    match format {
        Format::Tflite => {
            let graph = tflite::import(&bytes, &file)?;
            Ok(graph.inputs().map(|(name, v)| (name.to_string(), graph.ty(v).clone())).collect())
        }
        Format::Onnx => onnx::open_inputs(&bytes, &file),
    }
}

/// Whether a model has constants in other files than its own.
pub fn has_external_data(bytes: &[u8]) -> bool {
    onnx::is_onnx(bytes) && onnx::has_external_data(bytes)
}

/// A file's bytes, its name for messages, and its format.
fn read(path: &Path) -> Result<(Vec<u8>, String, Format), ImportError> {
    let file = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|source| ImportError::Read { file: file.clone(), source })?;
    let unknown = |kind| ImportError::malformed(&file, format!("it looks like {kind}; {FORMATS}"));
    let format = Format::of_file(&bytes, path).map_err(unknown)?;
    Ok((bytes, file, format))
}

/// What a model's file says of its inputs and outputs; a damaged description counts as none, since the import judges
/// the file.
///
/// # Errors
/// Where the file cannot be read.
pub fn about(path: &Path) -> Result<About, ImportError> {
    let bytes = std::fs::read(path).map_err(|source| ImportError::Read { file: path.display().to_string(), source })?;
    let found = match Format::of_file(&bytes, path) {
        Ok(Format::Tflite) => tflite::about(&bytes),
        Ok(Format::Onnx) => onnx::about(&bytes),
        Err(_) => None,
    };
    Ok(found.unwrap_or_default())
}

#[cfg(test)]
mod tests;
