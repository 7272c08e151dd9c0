//! Why an artifact cannot be used.

/// Why an artifact cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Not an artifact.
    #[error("{path} is not a Tilewright artifact; make one with: tilewright compile MODEL -o FILE")]
    Foreign {
        /// The file.
        path: String,
    },
    /// A version that this program does not support.
    #[error(
        "{path} has {what} version {found}, but this program has {known}; compile the model again with this program"
    )]
    Version {
        /// The file.
        path: String,
        /// Which version.
        what: &'static str,
        /// The file's version.
        found: u32,
        /// The program's version.
        known: u32,
    },
    /// A checksum or the structure is wrong.
    #[error("{path} is damaged: {what}; copy it again, or compile the model again")]
    Damaged {
        /// The file.
        path: String,
        /// Part and reason.
        what: String,
    },
    /// The file with its parameters cannot be read.
    #[error(
        "{path} keeps its parameters in {file}, which cannot be read: {source}; copy that file there, or give its path \
         (--params, tw_artifact_open_with)"
    )]
    NoParameters {
        /// The file.
        path: String,
        /// Where its parameters were looked for.
        file: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// An artifact in memory without its parameters.
    #[error("{path} keeps its parameters in a file {file}; open it together with the bytes of that file")]
    ParametersApart {
        /// The artifact.
        path: String,
        /// Name of the file with its parameters.
        file: String,
    },
    /// Not a file of parameters.
    #[error("{path} is not a file of parameters; `tilewright compile --params FILE` writes one next to the artifact")]
    ForeignParameters {
        /// The file.
        path: String,
    },
    /// The parameters of another artifact.
    #[error(
        "{file} has other parameters (checksum {found:016x}) than those that {path} was compiled with (checksum {wanted:016x}); \
         use the file that was written together with it, or compile the model again with --params"
    )]
    OtherParameters {
        /// The artifact.
        path: String,
        /// The file of parameters.
        file: String,
        /// The first eight bytes of the file's checksum.
        found: u64,
        /// The same of the checksum that the artifact names.
        wanted: u64,
    },
    /// Compiled for other hardware.
    #[error(
        "{path} was compiled for configuration {found} ({found_hash:016x}), but the device has {wanted} ({wanted_hash:016x}); \
         run it without --hw to use its own configuration, or compile the model again for the device's configuration"
    )]
    OtherHardware {
        /// The file.
        path: String,
        /// Configuration of the artifact.
        found: String,
        /// Its hash.
        found_hash: u64,
        /// Configuration of the device.
        wanted: String,
        /// Its hash.
        wanted_hash: u64,
    },
}
