//! The artifact: one file that holds a compiled model.
//!
//! ```text
//! offset 0   magic "TILEWRGT"
//!        8   format version, u32
//!       12   zero, u32
//!       16   bytes of the manifest, u64
//!       24   SHA-256 of the manifest
//!       56   zero, u64
//!       64   manifest, JSON, then zeros up to a multiple of 64
//!        …   blobs, each at a multiple of 64 from the file's start, zeros between them
//! ```
//! All numbers are little-endian. The manifest gives offset, length and SHA-256 of every blob. Nothing is used before
//! its checksum is verified, because damaged code bytes look like intact ones.
//!
//! Parameters can be in a file of their own ([`parameters`]); the manifest then names the file and its checksum.

mod about;
mod apart;
mod dims;
mod error;
mod form;
mod header;
mod layers;
mod manifest;
mod memory;
pub mod parameters;
mod shapes;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::ISA_VERSION;
use tilewright_hw::layout::LAYOUT_VERSION;

use crate::buffer::{ALIGN, AlignedBytes};
use crate::loader::CpuModule;
pub use about::{About, Edge, Normalization};
pub use dims::{Bucket, Dim, OpenValue, Rows};
pub use error::ArtifactError;
use header::{HEADER_BYTES, hex};
pub use layers::{InsnLayers, LayerEnd, LayerRun};
pub use manifest::{
    AccelStep, BlobId, BlobInfo, Counted, CpuTarget, Hardware, Image, MOST_STEPS, Manifest, NodeCost, NodeInfo,
    Packing, Place, Source, Step, StepKind, TensorPlace, ValueId, ValueInfo,
};
pub use memory::DeviceNeed;
pub use parameters::{ParametersAt, ParametersFile};
pub use shapes::Larger;

const MAGIC: &[u8; 8] = b"TILEWRGT";
/// Version of the file format; change it when an older reader would misread a file.
pub const FORMAT_VERSION: u32 = 1;
/// Version of a file whose parameters are in another one, which older readers do not look for.
pub const FORMAT_VERSION_APART: u32 = 2;

/// A compiled model: the manifest and its blobs.
#[derive(Debug, Clone)]
pub struct Artifact {
    /// Path of the file, for messages.
    pub path: String,
    /// Description of the contents.
    pub manifest: Manifest,
    /// Copies of an artifact share them, and artifacts for other shapes of its model can ([`Artifact::sharing`]).
    blobs: Vec<Arc<AlignedBytes>>,
    /// The code of CPU steps, if it is in the program and not in the blobs.
    linked: Option<Arc<CpuModule>>,
}

impl Artifact {
    /// Creates an artifact that is not in a file; `path` names it in messages. The manifest's list of blobs is
    /// regenerated.
    ///
    /// # Errors
    /// [`ArtifactError::Damaged`] if the manifest refers to something that does not exist.
    pub fn new(path: &str, mut manifest: Manifest, blobs: Vec<Vec<u8>>) -> Result<Artifact, ArtifactError> {
        manifest.blobs = describe(&blobs);
        manifest.parameters = None;
        let blobs = blobs.iter().map(|bytes| Arc::new(AlignedBytes::copy_of(bytes))).collect();
        let artifact = Artifact { path: path.to_string(), manifest, blobs, linked: None };
        artifact.check()?;
        Ok(artifact)
    }

    /// A copy with other bytes in one of its blobs, for experiments with programs, weights and code.
    ///
    /// # Errors
    /// [`ArtifactError::Damaged`] if the manifest refers to something that does not exist.
    pub fn with_blob(&self, id: BlobId, bytes: Vec<u8>) -> Result<Artifact, ArtifactError> {
        let mut blobs: Vec<Vec<u8>> = self.blobs.iter().map(|blob| blob.to_vec()).collect();
        if let Some(blob) = blobs.get_mut(id.0 as usize) {
            *blob = bytes;
        }
        Artifact::new(&self.path, self.manifest.clone(), blobs)
    }

    /// The same blobs with another manifest, for example one with fewer steps.
    ///
    /// # Errors
    /// [`ArtifactError::Damaged`] if the manifest refers to something that does not exist.
    pub fn with_manifest(&self, manifest: Manifest) -> Result<Artifact, ArtifactError> {
        let artifact = Artifact { manifest, ..self.clone() };
        artifact.check()?;
        Ok(artifact)
    }

    /// The artifact with the code of its CPU steps in the program, in place of its own.
    pub fn with_linked(self, code: CpuModule) -> Artifact {
        Artifact { linked: Some(Arc::new(code)), ..self }
    }

    /// The code of CPU steps that is in the program.
    pub(crate) fn linked(&self) -> Option<&Arc<CpuModule>> {
        self.linked.as_ref()
    }

    /// Whether `bytes` start like an artifact, or are all that is left of one that was cut within its first bytes.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC) || !bytes.is_empty() && MAGIC.starts_with(bytes)
    }

    /// Reads and checks a file. Parameters in a file of their own are looked for in the same folder.
    ///
    /// # Errors
    /// Every variant except [`ArtifactError::OtherHardware`].
    pub fn read(path: &Path) -> Result<Artifact, ArtifactError> {
        Artifact::read_with(path, ParametersAt::Beside(path))
    }

    /// Like [`Artifact::read`], with the place of its parameters, which has no effect if the file has them itself.
    ///
    /// # Errors
    /// As [`Artifact::read`].
    pub fn read_with(path: &Path, parameters: ParametersAt) -> Result<Artifact, ArtifactError> {
        let name = path.display().to_string();
        let bytes = fs::read(path).map_err(|source| ArtifactError::Io { path: name.clone(), source })?;
        Artifact::decode_with(&name, &bytes, parameters)
    }

    /// Reads and checks the bytes of a file; `path` names them in messages.
    ///
    /// # Errors
    /// As [`Artifact::read`], and [`ArtifactError::ParametersApart`] if parameters are in a file of their own.
    pub fn decode(path: &str, bytes: &[u8]) -> Result<Artifact, ArtifactError> {
        Artifact::decode_with(path, bytes, ParametersAt::Nowhere)
    }

    /// Like [`Artifact::decode`], with the place of its parameters, which has no effect if `bytes` have them.
    ///
    /// # Errors
    /// As [`Artifact::read`].
    pub fn decode_with(path: &str, bytes: &[u8], parameters: ParametersAt) -> Result<Artifact, ArtifactError> {
        let path = path.to_string();
        if !Artifact::is_one(bytes) {
            return Err(ArtifactError::Foreign { path });
        }
        let damaged = |what: &str| ArtifactError::Damaged { path: path.clone(), what: what.to_string() };
        let header = bytes.get(..HEADER_BYTES).ok_or_else(|| damaged("it ends inside its header"))?;
        let u32_at = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let version = u32_at(8);
        if ![FORMAT_VERSION, FORMAT_VERSION_APART].contains(&version) {
            return Err(ArtifactError::Version { path, what: "format", found: version, known: FORMAT_VERSION_APART });
        }
        let len = u64::from(u32_at(16)) | u64::from(u32_at(20)) << 32;
        let text = usize::try_from(len)
            .ok()
            .and_then(|len| bytes.get(HEADER_BYTES..)?.get(..len))
            .ok_or_else(|| damaged("it ends inside its manifest"))?;
        if Sha256::digest(text)[..] != header[24..56] {
            return Err(damaged("the manifest's checksum differs"));
        }
        let manifest: Manifest =
            serde_json::from_slice(text).map_err(|e| damaged(&format!("the manifest cannot be parsed: {e}")))?;
        for (what, found, known) in [
            ("instruction set", manifest.isa_version, ISA_VERSION),
            ("memory layout", manifest.layout_version, LAYOUT_VERSION),
        ] {
            if found != known {
                return Err(ArtifactError::Version { path, what, found, known });
            }
        }
        if manifest.parameters.is_some() != (version == FORMAT_VERSION_APART) {
            return Err(damaged("its format version is not that of its contents"));
        }
        let apart = manifest.parameters.as_ref().map(|wanted| parameters.load(&path, wanted)).transpose()?;
        let mut blobs = Vec::with_capacity(manifest.blobs.len());
        for (index, blob) in manifest.blobs.iter().enumerate() {
            let content = usize::try_from(blob.offset)
                .ok()
                .zip(usize::try_from(blob.len).ok())
                .and_then(|(offset, len)| if blob.apart { apart.as_deref()? } else { bytes }.get(offset..)?.get(..len))
                .ok_or_else(|| damaged(&format!("it ends inside blob {index} ({})", blob.name)))?;
            if hex(&Sha256::digest(content)) != blob.sha256 {
                return Err(damaged(&format!("the checksum of blob {index} ({}) differs", blob.name)));
            }
            blobs.push(Arc::new(AlignedBytes::copy_of(content)));
        }
        let artifact = Artifact { path, manifest, blobs, linked: None };
        artifact.check()?;
        Ok(artifact)
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// [`ArtifactError::Io`].
    pub fn write(&self, path: &Path) -> Result<(), ArtifactError> {
        crate::files::write_whole(path, &[&self.encode()])
            .map_err(|source| ArtifactError::Io { path: path.display().to_string(), source })
    }

    /// The bytes of the file, with all parameters.
    pub fn encode(&self) -> Vec<u8> {
        let mut manifest = self.manifest.clone();
        manifest.parameters = None;
        manifest.blobs.iter_mut().for_each(|blob| blob.apart = false);
        self.encode_as(manifest)
    }

    /// The bytes of the file without the blobs that `manifest` says are apart.
    fn encode_as(&self, mut manifest: Manifest) -> Vec<u8> {
        let version = if manifest.parameters.is_some() { FORMAT_VERSION_APART } else { FORMAT_VERSION };
        let apart: Vec<bool> = manifest.blobs.iter().map(|blob| blob.apart).collect();
        let own = || self.blobs.iter().zip(&apart).filter(|(_, apart)| !**apart).map(|(blob, _)| blob);
        // The manifest contains the offsets, which change its length: repeat until it fits before the first blob.
        let mut start = 0;
        let text = loop {
            let mut offset = start;
            for (info, blob) in manifest.blobs.iter_mut().filter(|info| !info.apart).zip(own()) {
                info.offset = offset as u64;
                offset += blob.len().next_multiple_of(ALIGN);
            }
            let text = serde_json::to_vec(&manifest).unwrap_or_default();
            let needed = (HEADER_BYTES + text.len()).next_multiple_of(ALIGN);
            if needed <= start {
                break text;
            }
            start = needed;
        };
        let mut bytes = Vec::with_capacity(start + own().map(|b| b.len() + ALIGN).sum::<usize>());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&version.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&Sha256::digest(&text));
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend_from_slice(&text);
        bytes.resize(start, 0);
        for blob in own() {
            bytes.extend_from_slice(blob);
            bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
        }
        bytes
    }

    /// A blob's bytes, aligned to [`ALIGN`].
    pub fn blob(&self, id: BlobId) -> &[u8] {
        // `check` has verified every id of the manifest.
        self.blobs.get(id.0 as usize).map_or(&[], |bytes| bytes)
    }

    /// Bytes of all blobs.
    pub fn blob_bytes(&self) -> usize {
        self.blobs.iter().map(|bytes| bytes.len()).sum()
    }

    /// Checks that the artifact's accelerator code fits `config`. An artifact without accelerator code fits every
    /// configuration.
    ///
    /// # Errors
    /// [`ArtifactError::OtherHardware`].
    pub fn check_hardware(&self, config: &HwConfig) -> Result<(), ArtifactError> {
        match &self.manifest.hardware {
            Some(hardware) if hardware.hash != config.hash() => Err(ArtifactError::OtherHardware {
                path: self.path.clone(),
                found: hardware.name.clone(),
                found_hash: hardware.hash,
                wanted: config.name.clone(),
                wanted_hash: config.hash(),
            }),
            _ => Ok(()),
        }
    }

    fn check(&self) -> Result<(), ArtifactError> {
        let damaged = |what: String| ArtifactError::Damaged { path: self.path.clone(), what };
        let lens: Vec<usize> = self.blobs.iter().map(|bytes| bytes.len()).collect();
        for manifest in self.manifest.of_each_shape() {
            manifest.check(&lens).map_err(damaged)?;
        }
        self.manifest.check_variants().map_err(damaged)
    }
}

fn describe(blobs: &[Vec<u8>]) -> Vec<BlobInfo> {
    blobs
        .iter()
        .enumerate()
        .map(|(index, bytes)| BlobInfo {
            name: format!("blob{index}"),
            offset: 0,
            len: bytes.len() as u64,
            sha256: hex(&Sha256::digest(bytes)),
            apart: false,
        })
        .collect()
}
