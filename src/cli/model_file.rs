//! A model's file on the command line: a path, or a network of the zoo.

use std::path::{Path, PathBuf};

use tilewright::model::picture::Preprocess;
use tilewright::model::zoo::{self, Entry};
use tilewright_runtime::artifact::{About, Edge};
use tilewright_sim::rtl::default_cache_dir;

/// Where a model is, and what the zoo knows of it.
#[derive(Debug, Clone)]
pub struct ModelFile {
    /// The person's own words.
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
    /// Reads an argument; a network of the zoo is put into the cache.
    pub fn parse(text: &str) -> Result<ModelFile, String> {
        let Some(name) = text.strip_prefix(zoo::PREFIX) else {
            return Ok(ModelFile { text: text.to_string(), path: text.into(), entry: None });
        };
        let entry = zoo::find(name).map_err(|e| e.to_string())?;
        let cache = default_cache_dir().map_err(|e| e.to_string())?;
        let path = entry.extract(&cache).map_err(|e| e.to_string())?;
        Ok(ModelFile { text: text.to_string(), path, entry: Some(entry) })
    }

    /// The person's own words for it, for messages.
    pub fn display(&self) -> &str {
        &self.text
    }

    /// The zoo's entry.
    pub fn entry(&self) -> Option<&'static Entry> {
        self.entry
    }

    /// How pictures are prepared: what is asked for, and else what the zoo knows.
    pub fn preprocess(&self, asked: Option<&Preprocess>) -> Preprocess {
        let own = self.entry.map(Entry::preprocess).unwrap_or_default();
        asked.map_or(own.clone(), |asked| asked.over(&own))
    }

    /// Shapes of the zoo's sample, for dimensions that the model leaves open.
    pub fn sample_shapes(&self) -> Vec<(Option<String>, Vec<usize>)> {
        super::run::Given::read(&[], self.entry).map(|given| given.shapes()).unwrap_or_default()
    }

    /// What the file says of itself, completed by what the zoo knows.
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
