//! Arrays and pictures given for a model's inputs.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use tilewright_runtime::artifact::{About, Larger, ValueInfo};
use tilewright_runtime::npy;
use tilewright_runtime::session::TensorRef;
use tilewright_runtime::tensor::{DType, Tensor};

use super::build::Datum;
use super::inference::{self, Scaling};
use super::picture::{self, Preprocess};
use super::zoo::{Entry, Sample};

/// An array or a picture for an input.
enum Content {
    Array(Tensor),
    Picture(Box<image::DynamicImage>),
}

/// The input data, read but not yet preprocessed.
#[derive(Default)]
pub struct Given {
    list: Vec<(Option<String>, Content)>,
    /// Input names given in the arguments, not in files.
    asked: Vec<String>,
    /// Paths of the array files.
    arrays: Vec<String>,
    /// Paths of the picture files.
    pub pictures: Vec<String>,
    /// Whether the data is a sample of the zoo.
    pub sample: bool,
    /// Whether missing inputs are filled with random data.
    made_up: bool,
}

/// Argument that asks for random data; to read a file of this name, write `./random`.
const MADE_UP: &str = "random";

/// Splits an argument of the form `[NAME=]FILE`. An existing file with an equals sign in its name is read as a file.
pub fn name_and_path(argument: &str) -> (Option<String>, &str) {
    match argument.split_once('=') {
        Some((name, path)) if !Path::new(argument).exists() => (Some(name.to_string()), path),
        _ => (None, argument),
    }
}

/// Reads the arrays of a `.npy` or `.npz` file with their names. With a name given, the file must have one array.
pub fn arrays(name: Option<&str>, path: &str) -> Result<Vec<(Option<String>, Tensor)>> {
    let mut found = npy::read_any(Path::new(path))?;
    if let Some(name) = name {
        if found.len() != 1 {
            bail!("{path} has {} arrays, but input {name} needs one", found.len());
        }
        found[0].0 = Some(name.to_string());
    }
    Ok(found)
}

impl Given {
    /// Arrays of the program, each with the name of its input; without a name, it is for the next one.
    pub fn of_arrays(arrays: Vec<(Option<String>, Tensor)>) -> Given {
        let asked = arrays.iter().filter_map(|(name, _)| name.clone()).collect();
        let list = arrays.into_iter().map(|(name, tensor)| (name, Content::Array(tensor))).collect();
        Given { list, asked, ..Given::default() }
    }

    /// Random data for all inputs.
    pub fn random() -> Given {
        Given { made_up: true, ..Given::default() }
    }

    /// Reads the files of `[NAME=]FILE` arguments, where `random` asks for random data. Without arguments, reads the
    /// sample of the zoo network, if there is one.
    pub fn read(arguments: &[String], entry: Option<&Entry>) -> Result<Given> {
        let mut given = Given::default();
        for argument in arguments {
            if argument == MADE_UP {
                given.made_up = true;
                continue;
            }
            let (name, path) = name_and_path(argument);
            if picture::is_picture(Path::new(path)) {
                given.list.push((name, Content::Picture(Box::new(picture::read(Path::new(path))?))));
                given.pictures.push(path.to_string());
                continue;
            }
            picture::check_format(Path::new(path))?;
            let found = arrays(name.as_deref(), path)?;
            given.arrays.push(path.to_string());
            given.asked.extend(name);
            given.list.extend(found.into_iter().map(|(name, tensor)| (name, Content::Array(tensor))));
        }
        if let (true, Some(entry)) = (arguments.is_empty(), entry) {
            given.sample = true;
            given.list.push((
                None,
                match entry.sample {
                    Sample::Array(bytes) => Content::Array(npy::parse(bytes).map_err(anyhow::Error::msg)?),
                    Sample::Picture(name, bytes) => {
                        given.pictures.push(name.to_string());
                        Content::Picture(Box::new(picture::decode(bytes, name)?))
                    }
                },
            ));
        }
        Ok(given)
    }

    /// Whether no data is given.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Fails if `--preprocess` is given but no input uses it.
    pub fn check(&self, preprocess: Option<&Preprocess>) -> Result<()> {
        let Some(preprocess) = preprocess.filter(|_| self.pictures.is_empty()) else { return Ok(()) };
        let bytes = |(_, content): &(_, Content)| matches!(content, Content::Array(t) if t.dtype == DType::U8);
        if !self.list.iter().any(bytes) {
            bail!(
                "--preprocess is for pictures and u8 arrays, but no --input is one; give a .png, .jpg, .webp, .bmp or \
                 .gif file, or a u8 array"
            );
        }
        if !preprocess.is_of_numbers() {
            bail!("arrays accept only --preprocess mean=M,scale=S; the other keys are for pictures");
        }
        Ok(())
    }

    /// What the arrays and the first picture of each input say for the import: their shapes determine the sizes of the
    /// model's open dimensions, and short lists can be constants.
    pub fn data(&self) -> Vec<Datum> {
        let mut pictured = HashSet::new();
        let shape = |(name, content): &(Option<String>, Content)| match content {
            Content::Array(tensor) => Some(Datum::of(name.clone(), tensor)),
            Content::Picture(image) => {
                let (width, height) = (image.width() as usize, image.height() as usize);
                pictured.insert(name.clone()).then(|| (name.clone(), vec![1, height, width, 3]).into())
            }
        };
        self.list.iter().filter_map(shape).collect()
    }

    /// Pads the arrays to larger shapes of the inputs.
    ///
    /// # Errors
    /// If an input has a picture, or no array.
    pub fn pad(&mut self, model: &[&ValueInfo], larger: &Larger) -> Result<()> {
        let mut arrays = Vec::new();
        for (name, content) in std::mem::take(&mut self.list) {
            match content {
                Content::Array(tensor) => arrays.push((name, tensor)),
                Content::Picture(_) => bail!("pictures are not padded to a larger shape; give them one by one"),
            }
        }
        let ordered = inference::ordered(model, arrays, None)?;
        let refs: Vec<TensorRef> = ordered.iter().map(TensorRef::from).collect();
        let padded = larger.pad(&refs).into_iter().zip(model);
        self.list = padded.map(|(tensor, value)| (Some(value.name.clone()), Content::Array(tensor))).collect();
        Ok(())
    }

    /// Preprocesses pictures and returns the inputs of each run.
    pub fn runs(self, model: &[&ValueInfo], about: &About, preprocess: &Preprocess) -> Result<Vec<Vec<Tensor>>> {
        let known = || model.iter().map(|value| value.name.as_str()).collect::<Vec<_>>().join(", ");
        if let Some(name) = self.asked.iter().find(|name| model.iter().all(|value| value.name != **name)) {
            bail!("the model has no input {name}; it has {}", known());
        }
        let mut arrays: Vec<(Option<String>, Tensor)> = Vec::new();
        let mut pictures: Vec<Vec<image::DynamicImage>> = vec![Vec::new(); model.len()];
        for (name, content) in self.list {
            match content {
                Content::Array(tensor) => arrays.push((name, tensor)),
                Content::Picture(image) => {
                    let place = match &name {
                        Some(name) => model.iter().position(|value| value.name == *name),
                        None if model.len() == 1 => Some(0),
                        None => {
                            bail!("the model has several inputs: {}; say which one is the picture: NAME=FILE", known())
                        }
                    };
                    let Some(place) = place else {
                        bail!("the model has no input {}; it has {}", name.unwrap_or_default(), known());
                    };
                    pictures[place].push(*image);
                }
            }
        }
        for ((list, value), index) in pictures.iter().zip(model).zip(0..) {
            if !list.is_empty() {
                let edge = about.inputs.get(index).cloned().unwrap_or_default();
                arrays.push((Some(value.name.clone()), preprocess.tensor(list, value, &edge)?));
            }
        }
        let bytes = arrays.iter().any(|(_, t)| t.dtype == DType::U8) && model.iter().any(|v| v.dtype == DType::F32);
        let scaling = if bytes { scaling(preprocess, about)? } else { Scaling::NONE };
        let rest = self.made_up.then(|| inference::made_up(model));
        let arranged = inference::arrange(model, arrays, rest, (scaling, &about.inputs));
        if self.arrays.is_empty() {
            return Ok(arranged?);
        }
        arranged.with_context(|| self.arrays.join(", "))
    }
}

/// How arrays of bytes become floats: by `--preprocess`, else by the model file.
pub fn scaling(preprocess: &Preprocess, about: &About) -> Result<Scaling> {
    let own = about.inputs.first().and_then(|edge| edge.normalization.as_ref());
    let one = |asked: Option<&[f32]>, own: Option<&Vec<f32>>, what: &str, else_: f32| -> Result<f32> {
        match asked.or(own.map(Vec::as_slice)) {
            None => Ok(else_),
            Some([first, rest @ ..]) if rest.iter().all(|x| x == first) => Ok(*first),
            Some(_) => {
                bail!("arrays of bytes need one {what} for all channels; give floats, or --preprocess {what}=NUMBER")
            }
        }
    };
    Ok(Scaling {
        mean: one(preprocess.mean(), own.map(|n| &n.mean), "mean", 0.0)?,
        scale: one(preprocess.scale(), own.map(|n| &n.scale), "scale", 1.0)?,
    })
}
