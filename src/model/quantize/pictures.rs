//! Samples from the pictures of a folder, each cropped several times.

use std::path::{Path, PathBuf};

use image::{DynamicImage, GenericImageView};
use tilewright_compiler::graph::TensorType;
use tilewright_runtime::artifact::{Edge, ValueInfo};
use tilewright_runtime::tensor::{DType, Tensor};

use crate::model::picture::{self, PictureError, Preprocess};

/// Why a folder cannot give samples.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder cannot be read.
    #[error("cannot read {folder}: {source}")]
    Read {
        /// The folder.
        folder: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The folder has no pictures.
    #[error("{folder} has no pictures; put .png, .jpg, .webp, .bmp or .gif files there, or give a .npy or .npz file")]
    Empty {
        /// The folder.
        folder: String,
    },
    /// Pictures work only for a model with one input.
    #[error("{folder} has pictures for one input, but the model has {count}; give a .npz file with an array for each")]
    Inputs {
        /// The folder.
        folder: String,
        /// Inputs of the model.
        count: usize,
    },
    /// The samples need too much memory.
    #[error(
        "{pictures} pictures with {crops} crops each need {bytes} bytes of samples, but the limit is {}; use fewer \
         --crops or pictures",
        MOST_BYTES
    )]
    Large {
        /// Number of pictures.
        pictures: usize,
        /// Samples per picture.
        crops: usize,
        /// Bytes of all samples.
        bytes: usize,
    },
    /// A picture cannot be read, or does not fit the model.
    #[error(transparent)]
    Picture(#[from] PictureError),
}

/// Most bytes of samples, since all of them are in memory.
const MOST_BYTES: usize = 4 << 30;
/// Smallest side of a crop, as a fraction of the picture's shorter side.
const LEAST: f64 = 0.4;

/// The pictures of a folder, sorted by name, as an array for the model's only input. Each picture is used `crops`
/// times: once whole, as `preprocess` crops it, and as squares of random size and position, every other one mirrored.
/// The result is the same for every call.
///
/// # Errors
/// [`FolderError`], which names the folder or the picture.
pub fn folder(
    folder: &Path,
    crops: usize,
    preprocess: &Preprocess,
    inputs: &[(&str, &TensorType)],
    edge: &Edge,
) -> Result<Tensor, FolderError> {
    let named = || folder.display().to_string();
    let files = list(folder)?;
    let &[(name, ty)] = inputs else {
        return Err(FolderError::Inputs { folder: named(), count: inputs.len() });
    };
    let dtype = DType::from_name(ty.dtype.name()).unwrap_or(DType::F32);
    let value = ValueInfo::new(name, dtype, ty.shape().unwrap_or_default());
    let bytes = value.bytes().saturating_mul(files.len()).saturating_mul(crops.max(1));
    if bytes > MOST_BYTES {
        return Err(FolderError::Large { pictures: files.len(), crops, bytes });
    }
    let mut seed = Seed(0x9e37_79b9_7f4a_7c15);
    let mut cut = Vec::with_capacity(files.len() * crops);
    for file in &files {
        let whole = picture::read(file)?;
        cut.extend((1..crops.max(1)).map(|k| square(&whole, k, &mut seed)));
        cut.push(whole);
    }
    Ok(preprocess.tensor(&cut, &value, edge)?)
}

/// The shape of a folder's first picture, `[1, H, W, C]`, which determines the sizes of a model's open dimensions.
///
/// # Errors
/// [`FolderError`], which names the folder or the picture.
pub fn folder_shape(folder: &Path) -> Result<Vec<usize>, FolderError> {
    let first = list(folder)?.swap_remove(0);
    let (width, height) = picture::read(&first)?.dimensions();
    Ok(vec![1, height as usize, width as usize, 3])
}

/// The pictures of a folder, sorted by name; at least one.
fn list(folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let named = || folder.display().to_string();
    let failed = |source| FolderError::Read { folder: named(), source };
    let entries = std::fs::read_dir(folder).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|e| e.path()).filter(|p| picture::is_picture(p)).collect();
    files.sort();
    if files.is_empty() {
        return Err(FolderError::Empty { folder: named() });
    }
    Ok(files)
}

/// A random square of a picture, mirrored if `k` is odd.
fn square(whole: &DynamicImage, k: usize, seed: &mut Seed) -> DynamicImage {
    let (width, height) = whole.dimensions();
    let side = f64::from(width.min(height)) * (LEAST + (1.0 - LEAST) * seed.next());
    let side = (side as u32).max(1);
    let mut place = |room: u32| (f64::from(room + 1) * seed.next()) as u32;
    let cut = whole.crop_imm(place(width - side), place(height - side), side, side);
    if k % 2 == 1 { cut.fliph() } else { cut }
}

/// A generator of numbers in `[0, 1)`, the same in every run.
struct Seed(u64);

impl Seed {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}
