//! Samples for a quantization, from files, folders of pictures, or arrays of the program.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tilewright_compiler::graph::Tensor;
use tilewright_runtime::npy;
use tilewright_runtime::tensor::Tensor as Array;

use super::{Prepared, Scaling, folder, folder_shape, samples};
use crate::model::picture::Preprocess;
use crate::model::{Datum, ModelFile, given, inference};

/// Samples, before the model's inputs are known.
pub enum Data {
    /// A folder of pictures.
    Pictures(PathBuf),
    /// Arrays by the names of their inputs, and what messages call them.
    Arrays(String, Vec<(Option<String>, Array)>),
}

impl Data {
    /// Reads a folder of pictures, or the arrays of a `.npy` or `.npz` file.
    ///
    /// # Errors
    /// Why the file cannot be read.
    pub fn read(path: &Path) -> Result<Data> {
        let arrays = if path.is_dir() { None } else { Some(npy::read_any(path)?) };
        Ok(match arrays {
            None => Data::Pictures(path.into()),
            Some(arrays) => Data::Arrays(path.display().to_string(), arrays),
        })
    }

    /// Shapes that determine the sizes of the model's open dimensions.
    ///
    /// # Errors
    /// Why a picture cannot be read.
    pub fn shapes(&self) -> Result<Vec<Datum>> {
        Ok(match self {
            Data::Arrays(_, arrays) => inference::data(arrays),
            Data::Pictures(folder) => vec![(None, folder_shape(folder)?).into()],
        })
    }
}

/// The keys of a `--preprocess` text.
fn preprocess_keys(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.into_iter().flat_map(|text| text.split(',')).filter_map(|pair| pair.split_once('=')).map(|(key, _)| key.trim())
}

/// How data become samples of a model.
pub struct Feeding<'a> {
    /// The model.
    pub file: &'a ModelFile,
    /// How often each picture of a folder is used.
    pub crops: Option<usize>,
    /// How pictures and bytes become inputs.
    pub preprocess: &'a Preprocess,
    /// The text of `--preprocess`, if it was given.
    pub keys: Option<&'a str>,
}

impl Feeding<'_> {
    /// Passes data on that go with the options.
    ///
    /// # Errors
    /// If `--crops` is given, but no folder.
    pub fn checked(&self, data: Data) -> Result<Data> {
        match (&data, self.crops) {
            (Data::Arrays(name, _), Some(_)) => {
                bail!("--crops is for a folder of pictures, but {name} is not a folder")
            }
            _ => Ok(data),
        }
    }

    /// The samples: each has a tensor for every input of the model.
    ///
    /// # Errors
    /// Data that do not match the model's inputs.
    pub fn samples(&self, model: &Prepared, data: Data) -> Result<Vec<Vec<Tensor>>> {
        let inputs = model.inputs();
        let (name, arrays, scaling) = match data {
            Data::Pictures(path) => {
                let edge = self.file.about()?.inputs.first().cloned().unwrap_or_default();
                let array = folder(&path, self.crops.unwrap_or(1), self.preprocess, &inputs, &edge)?;
                (path.display().to_string(), vec![(None, array)], Scaling::NONE)
            }
            Data::Arrays(name, arrays) => (name, arrays, self.scaling()?),
        };
        samples(&inputs, arrays, scaling).context(name)
    }

    /// How arrays of bytes become floats: by `--preprocess`, else by the model file.
    fn scaling(&self) -> Result<Scaling> {
        if let Some(key) = preprocess_keys(self.keys).find(|key| !["mean", "scale"].contains(key)) {
            bail!("--preprocess {key} is for pictures; arrays accept only mean and scale");
        }
        given::scaling(self.preprocess, &self.file.about()?)
    }
}
