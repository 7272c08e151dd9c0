//! The likeliest classes of an output, by name.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use tilewright::model::classes::{self, Guess};
use tilewright_runtime::artifact::Manifest;
use tilewright_runtime::tensor::Tensor;

/// Class names that match the model's output.
pub struct Names(Vec<String>);

impl Names {
    /// The names in `file`; without a file, the model's own names if they match its output.
    pub fn of(file: Option<&Path>, manifest: &Manifest) -> Result<Option<Names>> {
        let output = manifest.outputs.first().map(|id| manifest.values[id.0 as usize].shape.as_slice());
        let shape = output.unwrap_or(&[]);
        if let Some(file) = file {
            let names = classes::read(file)?;
            classes::check(&names, shape, &file.display().to_string())?;
            return Ok(Some(Names(names)));
        }
        let own = &manifest.about.class_names;
        let fit = !own.is_empty() && classes::check(own, shape, "the model").is_ok();
        Ok(fit.then(|| Names(own.clone())))
    }

    /// The likeliest classes for each sample.
    pub fn answers(&self, output: &Tensor, manifest: &Manifest, top: usize) -> Vec<Vec<Guess>> {
        let edge = manifest.about.outputs.first().cloned().unwrap_or_default();
        classes::likeliest(output, self.0.len(), &edge, top)
    }

    /// The answers as JSON.
    pub fn json(&self, answers: &[Vec<Guess>]) -> Value {
        let guess = |g: &Guess| json!({ "class": g.class, "name": self.0[g.class], "probability": g.probability });
        answers.iter().map(|row| row.iter().map(guess).collect::<Vec<_>>()).collect()
    }
}

/// The answers as text, one per line, with the names of the pictures if they are known.
pub fn text(report: &Value, pictures: &[String]) -> String {
    let mut text = String::new();
    for (index, row) in report.as_array().into_iter().flatten().enumerate() {
        let guess = |g: &Value| {
            let percent = 100.0 * g["probability"].as_f64().unwrap_or(0.0);
            format!("{} {percent:.1} %", g["name"].as_str().unwrap_or(""))
        };
        let list: Vec<String> = row.as_array().into_iter().flatten().map(guess).collect();
        let whose = pictures.get(index).map(|file| format!("{file}: ")).unwrap_or_default();
        text += &format!("answer        {whose}{}\n", list.join(", "));
    }
    text
}
