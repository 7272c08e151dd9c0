//! `quantize`: converts a float model to int8 and writes it as ONNX.

use std::path::PathBuf;

use anyhow::{Context, Error, Result, anyhow, bail};
use tilewright::model::ModelFile;
use tilewright::model::quantize::{Data, Method, MethodChoice, QuantizeOptions, QuantizeRequest, WeightBits};
use tilewright_compiler::quantize::range;
use tilewright_runtime::{files, npy};

use super::{Progress, Verdict};

/// How ranges of activations are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Ranges {
    /// For each tensor, the method below with the least error at the network's outputs
    Auto,
    /// The smallest and largest values seen
    MinMax,
    /// All but the rarest values; see --percentile
    Percentile,
    /// The range with the least mean square error
    Mse,
    /// The range that keeps most of the distribution (Kullback-Leibler)
    Entropy,
}

/// Arguments of `quantize`.
#[derive(clap::Args)]
pub struct Quantize {
    /// The float model (.onnx, .pt2, .tflite, zoo:NAME)
    #[arg(value_parser = ModelFile::parse)]
    file: ModelFile,
    /// Samples of the model's inputs, best 100 or more: a .npy file, a .npz file with an array for each input, or a
    /// folder of pictures (.png, .jpg, .webp, .bmp, .gif)
    #[arg(long, value_name = "FILE|DIR")]
    calibrate: PathBuf,
    /// How often each picture of a folder is used: first whole, then as squares of random size and position [default:
    /// 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    crops: Option<u16>,
    /// The ONNX file to write
    #[arg(short, long, value_name = "OUT.onnx")]
    output: PathBuf,
    /// How to find the ranges of activations
    #[arg(long, value_enum, default_value = "auto")]
    method: Ranges,
    /// Percentage of values that --method percentile keeps [default: 99.99]
    #[arg(long, value_name = "PERCENT")]
    percentile: Option<f64>,
    /// Bits of the weights; 7 avoids saturation in runtimes that add two products in 16 bits
    #[arg(long, value_name = "BITS", default_value_t = 8, value_parser = clap::value_parser!(u8).range(7..=8))]
    weights: u8,
    /// Keep a node in floats, by its name in the layer table or the report; can be given several times
    #[arg(long, value_name = "NODE")]
    keep_float: Vec<String>,
    /// List layers with a signal-to-noise ratio below this many decibels, and the gain from keeping each in floats
    #[arg(long, value_name = "DECIBELS", default_value_t = 10.0)]
    weak: f64,
    /// Use one scale for all weights of a layer instead of one per output channel
    #[arg(long)]
    per_tensor: bool,
    /// Correct each bias by the shift of the layer's mean that rounding its weights causes
    #[arg(long)]
    bias_correction: bool,
    /// Scale channels between layers so that they share ranges well; kept only if the outputs improve
    #[arg(long)]
    equalize: bool,
    /// How pictures become inputs, as KEY=VALUE separated by commas, the same keys as for run; for arrays of bytes,
    /// mean=M and scale=S convert to floats: (byte - M) / S
    #[arg(long, value_name = "KEY=VALUE,…")]
    preprocess: Option<String>,
    /// Labeled data, in the form of --calibrate, to compare the accuracy of both models on
    #[arg(long, value_name = "FILE", requires = "labels")]
    eval: Option<PathBuf>,
    /// Correct classes for --eval, a .npy file of integers
    #[arg(long, value_name = "FILE.npy", requires = "eval")]
    labels: Option<PathBuf>,
    /// Write the report as a JSON file
    #[arg(long, value_name = "FILE.json")]
    report: Option<PathBuf>,
    #[command(flatten)]
    import: super::compilation::ImportArgs,
}

impl Quantize {
    pub fn run(self) -> Result<Verdict> {
        let method = self.method()?;
        if self.report.as_ref().is_some_and(|report| files::same(report, &self.output)) {
            bail!("--report and --output both name {}; give two different files", self.output.display());
        }
        QuantizeRequest::check_output("--output", &self.file, &self.output).map_err(Error::msg)?;
        if let Some(path) = &self.report {
            files::check_writable(path).with_context(|| format!("cannot write {}", path.display()))?;
        }
        let given = self.preprocess.as_deref().map(|text| text.parse().map_err(|e| anyhow!("--preprocess: {e}")));
        let labeled = match (&self.eval, &self.labels) {
            (Some(data), Some(labels)) => Some((Data::read(data)?, npy::read(labels)?, labels.display().to_string())),
            _ => None,
        };
        let request = QuantizeRequest {
            file: &self.file,
            output: &self.output,
            options: QuantizeOptions {
                method,
                per_channel: !self.per_tensor,
                weight_bits: if self.weights == 7 { WeightBits::Seven } else { WeightBits::Eight },
                keep_float: self.keep_float.clone(),
                weak_db: self.weak,
                bias_correction: self.bias_correction,
                equalize: self.equalize,
            },
            crops: self.crops.map(usize::from),
            preprocess: given.transpose()?.zip(self.preprocess.as_deref()),
            calibrate: Data::read(&self.calibrate)?,
            labeled,
        };
        let mut shown = Shown::default();
        let done = request.run(&|data| self.import.options(data), &mut |what, done, of| shown.at(what, done, of))?;
        drop(shown);
        if let Some(path) = &self.report {
            let report = format!("{:#}\n", done.json);
            let cannot = || format!("cannot write {}", path.display());
            files::write_whole(path, &[report.as_bytes()]).with_context(cannot)?;
        }
        let text = format!("{}written       {}\n", done.text, self.output.display());
        done.finish()?;
        super::write_or_print(None, text.as_bytes())?;
        Ok(Verdict::Fine)
    }

    fn method(&self) -> Result<MethodChoice> {
        if self.percentile.is_some() && self.method != Ranges::Percentile {
            bail!("--percentile is for --method percentile");
        }
        Ok(MethodChoice::All(match self.method {
            Ranges::Auto => return Ok(MethodChoice::Auto),
            Ranges::MinMax => Method::MinMax,
            Ranges::Percentile => {
                Method::Percentile(range::percentage(self.percentile.unwrap_or(99.99)).context("--percentile")?)
            }
            Ranges::Mse => Method::Mse,
            Ranges::Entropy => Method::Entropy,
        }))
    }
}

/// Progress of several kinds of work, one after another.
#[derive(Default)]
struct Shown {
    now: Option<(String, Progress)>,
}

impl Shown {
    fn at(&mut self, what: &str, done: usize, of: usize) {
        if self.now.as_ref().is_none_or(|(name, _)| name != what) {
            self.now = Some((what.to_string(), Progress::new(what, of)));
        }
        if let Some((_, progress)) = &mut self.now {
            progress.at(done);
        }
    }
}
