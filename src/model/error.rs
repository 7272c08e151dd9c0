//! Errors between a model file and its artifact.

use std::path::PathBuf;

use super::compile::CompileError;
use super::uploaded::UploadError;
use tilewright_compiler::frontend::ImportError;
use tilewright_compiler::passes::PassError;
use tilewright_compiler::tune::TuneError;
use tilewright_hw::device::DeviceError;
use tilewright_runtime::session::SessionError;

/// Why a model could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file cannot be imported.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A pass failed.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// The graph does not compile.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The CPU's times could not be measured.
    #[error("measuring the CPU's times: {0}")]
    Measure(#[from] SessionError),
    /// A log of `tune` cannot be used.
    #[error("{}: {reason}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The model cannot be tuned.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// The device that judges plans fails.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The server on whose CPU code is measured fails.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// An artifact does not have the model for given shapes.
    #[error("{file} {reason}")]
    Shapes {
        /// The artifact.
        file: String,
        /// What is missing, and what to do.
        reason: String,
    },
    /// A given schedule cannot be used.
    #[error("{}: {reason}", path.display())]
    Schedule {
        /// The file, or the folder of the files.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}
