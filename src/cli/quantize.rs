//! `quantize`: converts a float model to int8 and writes it as ONNX.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;
use tilewright::device::DEFAULT_HW;
use tilewright::model::ModelFile;
use tilewright::model::inference;
use tilewright::model::picture::Preprocess;
use tilewright::model::quantize::{
    self, Compiled, Method, MethodChoice, Prepared, QuantizeOptions, Quantized, Scaling, WeightBits,
};
use tilewright_compiler::graph::Tensor;
use tilewright_compiler::quantize::range;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::tensor::Tensor as Array;
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
    /// The float model (.onnx, .tflite, zoo:NAME)
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
        if files::same(&self.output, &self.file) {
            bail!("--output {} is the model itself; give another file", self.output.display());
        }
        if self.output.extension().is_some_and(|ending| !ending.eq_ignore_ascii_case("onnx")) {
            bail!("--output {} has the wrong extension; the result is ONNX, so use .onnx", self.output.display());
        }
        for path in [Some(&self.output), self.report.as_ref()].into_iter().flatten() {
            files::check_writable(path).with_context(|| format!("cannot write {}", path.display()))?;
        }
        let preprocess = self.preprocess()?;
        if self.crops.is_some() && !self.calibrate.is_dir() {
            bail!("--crops is for a folder of pictures, but {} is not a folder", self.calibrate.display());
        }
        let data = Data::read(&self.calibrate)?;
        let model = Prepared::read(&self.file, self.import.options(&data.shapes()?)?)?;
        let samples = self.samples(&model, data, &preprocess)?;
        let labeled = match (&self.eval, &self.labels) {
            (Some(data), Some(labels)) => {
                let samples = self.samples(&model, Data::read(data)?, &preprocess)?;
                let labels = model.labels(&npy::read(labels)?, &labels.display().to_string(), samples.len())?;
                Some((samples, labels))
            }
            _ => None,
        };
        let engine = Compiled::new(&HwConfig::load(DEFAULT_HW)?);
        let options = QuantizeOptions {
            method,
            per_channel: !self.per_tensor,
            weight_bits: if self.weights == 7 { WeightBits::Seven } else { WeightBits::Eight },
            keep_float: self.keep_float.clone(),
            weak_db: self.weak,
            bias_correction: self.bias_correction,
            equalize: self.equalize,
        };
        let mut shown = Shown::default();
        let quantized = model.quantize(&samples, &options, &engine, &mut |what, done, of| shown.at(what, done, of))?;
        let cannot = |path: &Path| format!("cannot write {}", path.display());
        let written = model.write(&self.output, &quantized, &samples[0], &engine)?;
        let mut accuracies = None;
        if let Some((samples, labels)) = &labeled {
            let of = samples.len();
            let mut measure = |graph, what: &str| {
                quantize::accuracy(graph, &engine, samples, labels, &mut |done| shown.at(what, done, of))
            };
            let float = measure(model.graph(), "float accuracy")?;
            accuracies = Some((float, measure(&quantized.graph, "quantized accuracy")?));
        }
        drop(shown);
        let report = report(&self, &options, samples.len(), &quantized, accuracies);
        if let Some(path) = &self.report {
            files::write_whole(path, &[format!("{report:#}\n").as_bytes()]).with_context(|| cannot(path))?;
        }
        written.finish().with_context(|| cannot(&self.output))?;
        let text = table(&quantized, accuracies) + &format!("written       {}\n", self.output.display());
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

    /// How arrays of bytes become floats: by `--preprocess`, else by the model file.
    fn scaling(&self, preprocess: &Preprocess) -> Result<Scaling> {
        if let Some(key) = preprocess_keys(self.preprocess.as_deref()).find(|key| !["mean", "scale"].contains(key)) {
            bail!("--preprocess {key} is for pictures; arrays accept only mean and scale");
        }
        super::run::scaling(preprocess, &self.file.about()?)
    }

    fn preprocess(&self) -> Result<Preprocess> {
        let given = self.preprocess.as_deref().map(|text| text.parse().map_err(|e| anyhow!("--preprocess: {e}")));
        Ok(self.file.preprocess(given.transpose()?.as_ref()))
    }

    fn samples(&self, model: &Prepared, data: Data, preprocess: &Preprocess) -> Result<Vec<Vec<Tensor>>> {
        let inputs = model.inputs();
        let (path, arrays, scaling) = match data {
            Data::Pictures(path) => {
                let edge = self.file.about()?.inputs.first().cloned().unwrap_or_default();
                let crops = usize::from(self.crops.unwrap_or(1));
                let array = quantize::folder(path, crops, preprocess, &inputs, &edge)?;
                (path, vec![(None, array)], Scaling::NONE)
            }
            Data::Arrays(path, arrays) => (path, arrays, self.scaling(preprocess)?),
        };
        quantize::samples(&inputs, arrays, scaling).with_context(|| path.display().to_string())
    }
}

/// Samples, before the model's inputs are known.
enum Data<'p> {
    Pictures(&'p Path),
    Arrays(&'p Path, Vec<(Option<String>, Array)>),
}

impl Data<'_> {
    fn read(path: &Path) -> Result<Data<'_>> {
        Ok(if path.is_dir() { Data::Pictures(path) } else { Data::Arrays(path, npy::read_any(path)?) })
    }

    /// Shapes that determine the sizes of the model's open dimensions.
    fn shapes(&self) -> Result<Vec<(Option<String>, Vec<usize>)>> {
        Ok(match self {
            Data::Arrays(_, arrays) => inference::shapes(arrays),
            Data::Pictures(folder) => vec![(None, quantize::folder_shape(folder)?)],
        })
    }
}

/// The keys of a `--preprocess` text.
fn preprocess_keys(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.into_iter().flat_map(|text| text.split(',')).filter_map(|pair| pair.split_once('=')).map(|(key, _)| key.trim())
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

fn report(
    args: &Quantize,
    options: &QuantizeOptions,
    samples: usize,
    quantized: &Quantized,
    accuracies: Option<(f64, f64)>,
) -> serde_json::Value {
    let finite = |x: f64| x.is_finite().then_some(x);
    let layers: Vec<_> = quantized
        .layers
        .iter()
        .map(|l| {
            json!({ "name": l.name, "op": l.op, "scale": l.params.scale, "zero_point": l.params.zero_point,
                    "method": l.method.name(), "sqnr_db": finite(l.sqnr_db) })
        })
        .collect();
    let weak: Vec<_> = quantized
        .weak
        .iter()
        .map(|w| {
            json!({ "name": w.name, "sqnr_db": finite(w.sqnr_db), "outputs_db": w.outputs_db.and_then(|db| finite(db.0)),
                    "outputs_db_in_floats": w.outputs_db.and_then(|db| finite(db.1)) })
        })
        .collect();
    let stay: Vec<_> = quantized.float_nodes.iter().map(|(name, op)| json!({ "name": name, "op": op })).collect();
    json!({
        "model": args.file.display().to_string(),
        "output": args.output.display().to_string(),
        "method": options.method.name(),
        "per_channel": options.per_channel,
        "weight_bits": options.weight_bits.number(),
        "bias_correction": options.bias_correction,
        "equalized": quantized.equalized.map(|e| {
            json!({ "pairs": e.pairs, "before_db": finite(e.before_db), "after_db": finite(e.after_db), "kept": e.kept() })
        }),
        "samples": samples,
        "layers": layers,
        "output_sqnr_db": quantized.output_db.iter().map(|x| finite(*x)).collect::<Vec<_>>(),
        "weak": weak,
        "float_nodes": stay,
        "accuracy_float": accuracies.map(|a| a.0),
        "accuracy_quantized": accuracies.map(|a| a.1),
    })
}

fn table(quantized: &Quantized, accuracies: Option<(f64, f64)>) -> String {
    // Names are not shortened, because --keep-float needs the whole name.
    let wide = quantized.layers.iter().map(|l| l.name.chars().count()).max().unwrap_or_default().max(48);
    let mut text = format!(
        "{:<wide$}  {:<16} {:>11} {:>5}  {:<10} {:>7}\n",
        "layer", "operator", "scale", "zero", "method", "SQNR dB"
    );
    // No noise: "exact". No signal: "lost".
    let decibels = |x: f64| match x {
        x if x.is_finite() => format!("{x:.1}"),
        f64::NEG_INFINITY => "lost".to_string(),
        _ => "exact".to_string(),
    };
    for l in &quantized.layers {
        let (scale, zero) = (l.params.scale, l.params.zero_point);
        text += &format!(
            "{:<wide$}  {:<16} {scale:>11.4e} {zero:>5}  {:<10} {:>7}\n",
            l.name,
            l.op,
            l.method.name(),
            decibels(l.sqnr_db)
        );
    }
    for db in &quantized.output_db {
        text += &format!("output        SQNR {} dB\n", decibels(*db));
    }
    if let Some(e) = &quantized.equalized {
        let (before, after) = (decibels(e.before_db), decibels(e.after_db));
        let kept = if e.kept() { "kept" } else { "not kept" };
        text += &format!(
            "equalization  {} pairs of layers, output SQNR {before} dB without, {after} dB with: {kept}\n",
            e.pairs
        );
    }
    for w in &quantized.weak {
        let brings = w.outputs_db.map(|(before, after)| {
            let (before, after) = (decibels(before), decibels(after));
            format!("; with --keep-float {} the outputs have {after} dB instead of {before} dB", w.name)
        });
        text += &format!("weak          {}: SQNR {} dB{}\n", w.name, decibels(w.sqnr_db), brings.unwrap_or_default());
    }
    if !quantized.float_nodes.is_empty() {
        let names: Vec<String> =
            quantized.float_nodes.iter().take(8).map(|(name, op)| format!("{name} ({op})")).collect();
        let more = quantized.float_nodes.len().saturating_sub(8);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        text += &format!("stays float   {}{more}\n", names.join(", "));
    }
    if let Some((float, int8)) = accuracies {
        let (a, b) = (100.0 * float, 100.0 * int8);
        text += &format!("accuracy      float {a:.2} %, quantized {b:.2} %, loss {:.2} points\n", a - b);
    }
    text
}
