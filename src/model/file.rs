//! A model by its name: the path of a file, or a network of the zoo.

use std::path::{Path, PathBuf};

use tilewright_runtime::artifact::{About, Edge};
use tilewright_sim::rtl::default_cache_dir;

use super::build::{Datum, about};
use super::classes;
use super::error::ModelError;
use super::picture::Preprocess;
use super::zoo::{self, Entry};

/// Path of a model, and its zoo entry if it has one.
#[derive(Debug, Clone)]
pub struct ModelFile {
    /// The name as the user wrote it.
    text: String,
    path: PathBuf,
    entry: Option<&'static Entry>,
}

impl std::ops::Deref for ModelFile {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl From<&Path> for ModelFile {
    fn from(path: &Path) -> ModelFile {
        ModelFile { text: path.display().to_string(), path: path.into(), entry: None }
    }
}

impl ModelFile {
    /// Parses a name; extracts a zoo network into the cache.
    ///
    /// # Errors
    /// A text, if the zoo has no such network or it cannot be extracted.
    pub fn parse(text: &str) -> Result<ModelFile, String> {
        let Some(name) = text.strip_prefix(zoo::PREFIX) else {
            return Ok(Path::new(text).into());
        };
        let entry = zoo::find(name).map_err(|e| e.to_string())?;
        let cache = default_cache_dir().map_err(|e| e.to_string())?;
        let path = entry.extract(&cache).map_err(|e| e.to_string())?;
        Ok(ModelFile { text: text.to_string(), path, entry: Some(entry) })
    }

    /// The name as the user wrote it, for messages.
    pub fn display(&self) -> &str {
        &self.text
    }

    /// The zoo entry, if the model is from the zoo.
    pub fn entry(&self) -> Option<&'static Entry> {
        self.entry
    }

    /// How pictures are prepared: `asked`, completed by the zoo entry's own settings.
    pub fn preprocess(&self, asked: Option<&Preprocess>) -> Preprocess {
        let own = self.entry.map(Entry::preprocess).unwrap_or_default();
        asked.map_or(own.clone(), |asked| asked.over(&own))
    }

    /// Shapes of the zoo sample, for the model's open dimensions.
    pub fn sample_shapes(&self) -> Vec<Datum> {
        self.entry.and_then(Entry::sample_shape).map(|shape| vec![(None, shape).into()]).unwrap_or_default()
    }

    /// The file's own description, completed by the zoo entry.
    ///
    /// # Errors
    /// [`ModelError::Import`] if the file cannot be read.
    pub fn about(&self) -> Result<About, ModelError> {
        let mut about = about(&self.path)?;
        let Some(entry) = self.entry else { return Ok(about) };
        if !entry.class_names.is_empty() {
            about.class_names = classes::names(entry.class_names);
        }
        if about.inputs.is_empty() {
            about.inputs.push(Edge::default());
        }
        let preprocess = entry.preprocess();
        about.inputs[0].normalization = preprocess.normalization();
        about.inputs[0].bgr = preprocess.is_bgr();
        Ok(about)
    }
}
