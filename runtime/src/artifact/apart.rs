//! Writes the parameters of an artifact to a file of their own.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::header::{HEADER_BYTES, hex};
use super::parameters::{MAGIC, PARAMETERS_VERSION, ParametersFile};
use super::{ALIGN, Artifact, ArtifactError, BlobId, StepKind};
use crate::files::write_together;

impl Artifact {
    /// Blobs with parameters: constants of the host's steps, and the images of constants of accelerator steps, which
    /// also have the micro-ops.
    fn is_parameter(&self, id: BlobId) -> bool {
        let accel = |kind: &StepKind| matches!(kind, StepKind::Accel(accel) if accel.constants == id);
        self.manifest.parts().into_iter().any(|manifest| {
            manifest.values.iter().any(|value| value.constant == Some(id))
                || manifest.steps.iter().any(|step| accel(&step.kind))
        })
    }

    /// The bytes of two files: the artifact without its parameters, and its parameters, which will have the name
    /// `file`.
    pub fn encode_apart(&self, file: &str) -> (Vec<u8>, Vec<u8>) {
        let mut manifest = self.manifest.clone();
        let mut parameters = vec![0; HEADER_BYTES];
        for (index, info) in (0u32..).zip(&mut manifest.blobs) {
            info.apart = self.is_parameter(BlobId(index));
            if info.apart {
                info.offset = parameters.len() as u64;
                parameters.extend_from_slice(self.blob(BlobId(index)));
                parameters.resize(parameters.len().next_multiple_of(ALIGN), 0);
            }
        }
        let (header, contents) = parameters.split_at_mut(HEADER_BYTES);
        let sum = Sha256::digest(&*contents);
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&PARAMETERS_VERSION.to_le_bytes());
        header[16..24].copy_from_slice(&(contents.len() as u64).to_le_bytes());
        header[24..56].copy_from_slice(&sum);
        manifest.parameters = Some(ParametersFile { file: file.to_string(), sha256: hex(&sum) });
        (self.encode_as(manifest), parameters)
    }

    /// Writes the artifact and its parameters as two files, both or none.
    ///
    /// # Errors
    /// [`ArtifactError::Io`].
    pub fn write_apart(&self, path: &Path, parameters: &Path) -> Result<(), ArtifactError> {
        let name = parameters.file_name().unwrap_or_default().to_string_lossy();
        let (own, apart) = self.encode_apart(&name);
        write_together(&[(path.to_path_buf(), own), (parameters.to_path_buf(), apart)])
            .map_err(|(path, source)| ArtifactError::Io { path: path.display().to_string(), source })
    }
}
