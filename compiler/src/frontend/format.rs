//! The table of formats.

use super::error::ImportError;
use super::onnx::Onnx;
use super::pytorch::Pytorch;
use super::sources::Sources;
use super::tflite::Tflite;
use super::{ImportOptions, kind};
use crate::graph::{Graph, TensorType};
use std::path::Path;
use tilewright_runtime::artifact::About;

/// The formats that models are read from.
pub static FORMATS: [&dyn Format; 3] = [&Onnx, &Pytorch, &Tflite];

/// A model's file.
#[derive(Debug, Clone, Copy)]
pub struct ModelFile<'f> {
    /// What it holds.
    pub bytes: &'f [u8],
    /// Its name in messages.
    pub name: &'f str,
    /// Where it is; data can lie in files beside it.
    pub path: &'f Path,
}

/// A format that models are read from: its front end.
pub trait Format: Sync {
    /// Its name for people, such as `ONNX`.
    fn name(&self) -> &'static str;

    /// How the names of its files usually end, such as `.onnx`. Which format a file is of is known from its content alone.
    fn suffix(&self) -> &'static str;

    /// The page that lists its operators.
    fn page(&self) -> &'static str;

    /// Whether these are a file's bytes, or begin as such a file does.
    fn recognizes(&self, bytes: &[u8]) -> bool;

    /// The graph, and what the file calls its values.
    ///
    /// # Errors
    /// When the file is damaged, when the sizes do not suit it, or when it has operators that are not supported: the error
    /// lists all of these.
    fn import(&self, file: &ModelFile, options: &ImportOptions) -> Result<(Graph, Sources), ImportError>;

    /// The inputs, with the sizes that the file leaves open. The options give the number of tensors of a sequence.
    ///
    /// # Errors
    /// When the file is damaged.
    fn open_inputs(&self, file: &ModelFile, options: &ImportOptions) -> Result<Vec<(String, TensorType)>, ImportError>;

    /// What the file says of its inputs and outputs, as much as can be read.
    fn about(&self, bytes: &[u8]) -> Option<About>;

    /// Whether constants are in other files than the model's own.
    fn has_external_data(&self, _: &[u8]) -> bool {
        false
    }
}

/// The format of a file.
///
/// # Errors
/// What the file looks like, where no format recognizes it.
pub fn format_of(bytes: &[u8]) -> Result<&'static dyn Format, &'static str> {
    let found = FORMATS.iter().find(|format| format.recognizes(bytes));
    found.copied().ok_or_else(|| kind::other(bytes).unwrap_or("a file of unknown kind"))
}

/// The formats as a list for messages: `ONNX (.onnx), PyTorch (.pt2) or TFLite (.tflite)`.
pub fn known_formats() -> String {
    let names: Vec<String> = FORMATS.iter().map(|format| format!("{} ({})", format.name(), format.suffix())).collect();
    match names.as_slice() {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}
