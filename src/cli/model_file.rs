//! A model file on the command line: a path, or a network of the zoo.

use std::path::{Path, PathBuf};

use tilewright::model::picture::Preprocess;
use tilewright::model::zoo::{self, Entry};
use tilewright_runtime::artifact::{About, Edge};
use tilewright_sim::rtl::default_cache_dir;

/// Path of a model, and its zoo entry if it has one.
#[derive(Debug, Clone)]
pub struct ModelFile {
    /// The argument as the user wrote it.
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

impl ModelFile {
    /// Parses an argument; extracts a zoo network into the cache.
    pub fn parse(text: &str) -> Result<ModelFile, String> {
        let Some(name) = text.strip_prefix(zoo::PREFIX) else {
            return Ok(ModelFile { text: text.to_string(), path: text.into(), entry: None });
        };
        let entry = zoo::find(name).map_err(|e| e.to_string())?;
        let cache = default_cache_dir().map_err(|e| e.to_string())?;
        let path = entry.extract(&cache).map_err(|e| e.to_string())?;
        Ok(ModelFile { text: text.to_string(), path, entry: Some(entry) })
    }

    /// The argument as the user wrote it, for messages.
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
    pub fn sample_shapes(&self) -> Vec<(Option<String>, Vec<usize>)> {
        super::run::Given::read(&[], self.entry).map(|given| given.shapes()).unwrap_or_default()
    }

    /// The file's own description, completed by the zoo entry.
    pub fn about(&self) -> anyhow::Result<About> {
        let mut about = tilewright::model::about(&self.path)?;
        let Some(entry) = self.entry else { return Ok(about) };
        if !entry.class_names.is_empty() {
            about.class_names = tilewright::model::classes::names(entry.class_names);
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
