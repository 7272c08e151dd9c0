//! Front ends: model files to graphs.
//!
//! [`FORMATS`] is the table of formats. Each has a reader of its own and a registry with one function for each operator,
//! which builds the operator's meaning with [`semantic`], and gives a verified [`Graph`].
//! TFLite networks keep `[N, H, W, C]` and arrive in integer form; ONNX networks keep `[N, C, H, W]`, and their
//! quantized groups are made integer by the passes. Nothing here panics on a damaged file.

mod counted;
mod error;
mod format;
mod kind;
pub mod onnx;
mod packed_bits;
pub mod pytorch;
mod reason;
mod room;
mod semantic;
mod sizes;
mod sources;
pub mod tflite;

pub use error::{ImportError, UnsupportedNode};
pub use format::{FORMATS, Format, ModelFile, format_of, known_formats};
pub use sizes::{Datum, Sizes};
pub use sources::Sources;

use crate::graph::{Graph, Tensor, TensorType};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tilewright_runtime::artifact::About;

/// Options of an import.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportOptions {
    /// Sizes for dimensions that the file leaves open.
    pub sizes: Sizes,
    /// Values of inputs, by name: the graph is for these alone. Other inputs take theirs from the data in `sizes` where an
    /// operator needs them as constants.
    pub values: BTreeMap<String, Tensor>,
    /// Domains of ONNX operators that are functions of the program; an operator's full name, such as
    /// `my.domain.Normalize`, is the function's.
    pub packed: BTreeSet<String>,
}

impl ImportOptions {
    /// Whether the options give a shape, data or a value for an input of this name.
    pub(super) fn gives(&self, input: &str) -> bool {
        self.values.contains_key(input) || self.sizes.names(input)
    }
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

/// Reads a model file; the content decides its format.
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
    let mut options = options.into();
    let (bytes, name) = read(path)?;
    let file = ModelFile { bytes: &bytes, name: &name, path };
    let format = recognized(&file)?;
    loop {
        match format.import(&file, &options) {
            Err(ImportError::NeedsValue { inputs, node }) => {
                let at_hand = values_at_hand(format, &file, &options)?;
                let known: BTreeMap<_, _> = at_hand.into_iter().filter(|(name, _)| inputs.contains(name)).collect();
                let is_given = inputs.iter().all(|name| options.values.contains_key(name));
                if known.len() < inputs.len() || is_given {
                    return Err(ImportError::NeedsValue { inputs, node });
                }
                options.values.extend(known);
            }
            done => return done,
        }
    }
}

/// The values of inputs for which data are at hand.
fn values_at_hand(
    format: &dyn Format,
    file: &ModelFile,
    options: &ImportOptions,
) -> Result<BTreeMap<String, Tensor>, ImportError> {
    let open = format.open_inputs(file, options)?;
    let types: Vec<(&str, &TensorType)> = open.iter().map(|(name, ty)| (name.as_str(), ty)).collect();
    Ok(options.sizes.values(&types))
}

/// A model's inputs, with the sizes that its file leaves open.
///
/// # Errors
/// When the file cannot be read or is damaged.
pub fn open_inputs(path: &Path) -> Result<Vec<(String, TensorType)>, ImportError> {
    let (bytes, name) = read(path)?;
    let file = ModelFile { bytes: &bytes, name: &name, path };
    recognized(&file)?.open_inputs(&file, &ImportOptions::default())
}

/// Whether a model has constants in other files than its own.
pub fn has_external_data(bytes: &[u8]) -> bool {
    format_of(bytes).is_ok_and(|format| format.has_external_data(bytes))
}

/// A file's bytes, and its name for messages.
fn read(path: &Path) -> Result<(Vec<u8>, String), ImportError> {
    let file = path.display().to_string();
    match std::fs::read(path) {
        Ok(bytes) => Ok((bytes, file)),
        Err(source) => Err(ImportError::Read { file, source }),
    }
}

fn recognized(file: &ModelFile) -> Result<&'static dyn Format, ImportError> {
    let unknown = |kind| format!("it looks like {kind}; models are read from {} files", known_formats());
    format_of(file.bytes).map_err(|kind| ImportError::malformed(file.name, unknown(kind)))
}

/// What a model's file says of its inputs and outputs; a damaged description counts as none, since the import judges
/// the file.
///
/// # Errors
/// Where the file cannot be read.
pub fn about(path: &Path) -> Result<About, ImportError> {
    let (bytes, _) = read(path)?;
    Ok(format_of(&bytes).ok().and_then(|format| format.about(&bytes)).unwrap_or_default())
}

#[cfg(test)]
mod tests;
