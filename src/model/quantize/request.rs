//! From a float model and samples to an int8 file and a report: what the command line and Python do.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::files::{self, Unfinished};
use tilewright_runtime::tensor;

use super::{Compiled, Data, Feeding, Prepared, QuantizeOptions, Report, accuracy};
use crate::device::DEFAULT_HW;
use crate::model::picture::Preprocess;
use crate::model::{Datum, ImportOptions, ModelFile};

/// What `quantize` was asked for.
pub struct QuantizeRequest<'a> {
    /// The float model.
    pub file: &'a ModelFile,
    /// The ONNX file to write.
    pub output: &'a Path,
    /// How to quantize.
    pub options: QuantizeOptions,
    /// Number of crops of each picture.
    pub crops: Option<usize>,
    /// How pictures become inputs, and the text that says so.
    pub preprocess: Option<(Preprocess, &'a str)>,
    /// The samples.
    pub calibrate: Data,
    /// Data to measure the accuracy on, their correct classes, and the name of the classes in messages.
    pub labeled: Option<(Data, tensor::Tensor, String)>,
}

/// How a file is read if these are the shapes of its samples.
pub type Importing<'a> = dyn Fn(&[Datum]) -> Result<ImportOptions> + 'a;

/// A quantized model whose file has its temporary name.
pub struct Finished {
    /// The report as JSON.
    pub json: Value,
    /// The report as text.
    pub text: String,
    written: Unfinished,
    output: String,
}

impl Finished {
    /// Gives the file its name.
    ///
    /// # Errors
    /// The file, and why it cannot be written.
    pub fn finish(self) -> Result<()> {
        self.written.finish().with_context(|| format!("cannot write {}", self.output))
    }
}

impl QuantizeRequest<'_> {
    /// Checks the path of the output, before anything is computed. `option` is what gave it.
    ///
    /// # Errors
    /// What is wrong and what to do.
    pub fn check_output(option: &str, file: &ModelFile, output: &Path) -> Result<(), String> {
        let name = output.display();
        if files::same(output, file) {
            return Err(format!("{option} {name} is the model itself; give another file"));
        }
        if output.extension().is_some_and(|ending| !ending.eq_ignore_ascii_case("onnx")) {
            return Err(format!("{option} {name} has the wrong extension; the result is ONNX, so use .onnx"));
        }
        files::check_writable(output).map_err(|error| format!("cannot write {name}: {error}"))
    }

    /// Quantizes the model. `import` says how the file is read if these are the shapes of the samples; `told` is called
    /// with what is done, how much of it, and how much there is.
    ///
    /// # Errors
    /// Data that do not fit, or why the model cannot be quantized; no file is left.
    pub fn run(self, import: &Importing, told: &mut dyn FnMut(&str, usize, usize)) -> Result<Finished> {
        let QuantizeRequest { file, output, options, crops, preprocess, calibrate, labeled } = self;
        let (given, keys) = preprocess.unzip();
        let preprocess = file.preprocess(given.as_ref());
        let feeding = Feeding { file, crops, preprocess: &preprocess, keys };
        let data = feeding.checked(calibrate)?;
        let prepared = Prepared::read(file, import(&data.shapes()?)?)?;
        let samples = feeding.samples(&prepared, data)?;
        let labeled = match labeled {
            Some((data, labels, name)) => {
                let samples = feeding.samples(&prepared, data)?;
                let labels = prepared.labels(&labels, &name, samples.len())?;
                Some((samples, labels))
            }
            None => None,
        };
        let engine = Compiled::new(&HwConfig::load(DEFAULT_HW)?);
        let quantized = prepared.quantize(&samples, &options, &engine, told)?;
        let written = prepared.write(output, &quantized, &samples[0], &engine)?;
        let mut accuracies = None;
        if let Some((samples, labels)) = &labeled {
            let mut measure = |graph, what: &str| {
                accuracy(graph, &engine, samples, labels, &mut |done| told(what, done, samples.len()))
            };
            let float = measure(prepared.graph(), "float accuracy")?;
            accuracies = Some((float, measure(&quantized.graph, "quantized accuracy")?));
        }
        let report = Report { options: &options, samples: samples.len(), quantized: &quantized, accuracies };
        let output = output.display().to_string();
        Ok(Finished { json: report.json(file.display(), &output), text: report.text(), written, output })
    }
}
