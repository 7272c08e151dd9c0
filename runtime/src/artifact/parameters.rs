//! Parameters in a file of their own, so that code can be replaced without them and several artifacts can share them.
//!
//! ```text
//! offset 0   magic "TILEWPAR"
//!        8   format version, u32
//!       12   zero, u32
//!       16   bytes of the contents, u64
//!       24   SHA-256 of the contents
//!       56   zero, u64
//!       64   contents: blobs, each at a multiple of 64 from the file's start, zeros between them
//! ```
//! All numbers are little-endian. The manifest of the artifact says where each blob is.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::ArtifactError;
use super::header::{HEADER_BYTES, hex};

pub(super) const MAGIC: &[u8; 8] = b"TILEWPAR";
/// Version of the format of files of parameters.
pub const PARAMETERS_VERSION: u32 = 1;

/// The file of parameters that an artifact needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParametersFile {
    /// Its name, without a folder.
    pub file: String,
    /// SHA-256 of its contents, hexadecimal.
    pub sha256: String,
}

/// Where the file of parameters of an artifact is.
#[derive(Debug, Clone, Copy)]
pub enum ParametersAt<'a> {
    /// In the folder of this file, the artifact, under the name that the artifact gives.
    Beside(&'a Path),
    /// At this path.
    File(&'a Path),
    /// In memory: the bytes of the file.
    Bytes(&'a [u8]),
    /// Nowhere; artifacts that need one are refused.
    Nowhere,
}

impl ParametersAt<'_> {
    /// The bytes of the file of parameters, whose checksum is right. `path` is the artifact's.
    pub(super) fn load(&self, path: &str, wanted: &ParametersFile) -> Result<Cow<'_, [u8]>, ArtifactError> {
        let read = |place: PathBuf| -> Result<(String, Cow<'_, [u8]>), ArtifactError> {
            let file = place.display().to_string();
            match fs::read(&place) {
                Ok(bytes) => Ok((file, bytes.into())),
                Err(source) => Err(ArtifactError::NoParameters { path: path.into(), file, source }),
            }
        };
        let (file, bytes) = match self {
            ParametersAt::Beside(artifact) => {
                let plain = Path::new(&wanted.file).file_name().is_some_and(|name| *name == *wanted.file);
                if !plain {
                    let what = format!("{:?}, its file of parameters, is not the name of a file", wanted.file);
                    return Err(ArtifactError::Damaged { path: path.into(), what });
                }
                read(artifact.with_file_name(&wanted.file))?
            }
            ParametersAt::File(place) => read(place.to_path_buf())?,
            ParametersAt::Bytes(bytes) => (format!("the file {} in memory", wanted.file), (*bytes).into()),
            ParametersAt::Nowhere => {
                return Err(ArtifactError::ParametersApart { path: path.into(), file: wanted.file.clone() });
            }
        };
        check(path, &file, &bytes, wanted)?;
        Ok(bytes)
    }
}

/// Checks that `bytes` are a whole file of parameters, and the wanted one.
fn check(path: &str, file: &str, bytes: &[u8], wanted: &ParametersFile) -> Result<(), ArtifactError> {
    let damaged = |what: &str| ArtifactError::Damaged { path: file.to_string(), what: what.to_string() };
    if !bytes.starts_with(MAGIC) {
        return Err(ArtifactError::ForeignParameters { path: file.to_string() });
    }
    let (header, contents) =
        bytes.split_at_checked(HEADER_BYTES).ok_or_else(|| damaged("it ends inside its header"))?;
    let (version, len) = (u32::from_le_bytes([header[8], header[9], header[10], header[11]]), &header[16..24]);
    if version != PARAMETERS_VERSION {
        let (what, known) = ("parameters", PARAMETERS_VERSION);
        return Err(ArtifactError::Version { path: file.to_string(), what, found: version, known });
    }
    if len != (contents.len() as u64).to_le_bytes() {
        return Err(damaged("its length differs from the one in its header"));
    }
    // The header's checksum tells another model's file from a damaged one.
    let told = hex(&header[24..56]);
    if told != wanted.sha256 {
        let start = |sum: &str| sum.get(..16).and_then(|sum| u64::from_str_radix(sum, 16).ok()).unwrap_or_default();
        let (path, file) = (path.to_string(), file.to_string());
        return Err(ArtifactError::OtherParameters { path, file, found: start(&told), wanted: start(&wanted.sha256) });
    }
    if Sha256::digest(contents)[..] != header[24..56] {
        return Err(damaged("the checksum of its contents differs"));
    }
    Ok(())
}
