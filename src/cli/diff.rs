//! `diff`: compares a model's values on two devices, or on one device with arrays.

use anyhow::{Context, Result, bail};
use tilewright::device::load_hw;
use tilewright::device::{self, DeviceKind};
use tilewright::examine::diff::{self, DiffRequest, Model, Right, Tolerance};
use tilewright::model::ModelFile;
use tilewright::model::given::Given;
use tilewright::model::inference;
use tilewright::model::picture::Preprocess;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::Artifact;
use tilewright_runtime::tensor::Tensor;

use super::compilation::Compilation;
use super::run::refuse;
use super::{Hw, ParamsOption, Verdict, progress, read_file, write_or_print};

/// Arguments of `diff`.
#[derive(clap::Args)]
pub struct Diff {
    /// A model (.onnx, .pt2, .tflite, zoo:NAME), or an artifact (compiled with --keep-values, to compare values inside its
    /// layers)
    #[arg(value_parser = ModelFile::parse)]
    file: ModelFile,
    #[arg(
        long,
        default_value = "fsim",
        value_name = "DEVICE",
        help = format!("One side: {}", device::names(device::Spec::keeps_values))
    )]
    a: DeviceKind,
    #[arg(
        long,
        default_value = "cpu",
        value_name = "DEVICE|npz:FILE|dir:DIR",
        help = format!(
            "The other side: {}; arrays named after values (npz:FILE); or a folder that run --dump-tensors wrote \
             (dir:DIR)",
            device::names(device::Spec::keeps_values)
        )
    )]
    b: Right,
    #[command(flatten)]
    hw: Hw,
    /// Hardware configuration of the other side, if it differs
    #[arg(long, value_name = "NAME|FILE.toml")]
    hw_b: Option<String>,
    #[command(flatten)]
    compilation: Compilation,
    #[command(flatten)]
    params: ParamsOption,
    /// Data for an input: a .npy file, a .npz file with an array for each input, or a picture; without it, inputs are
    /// random
    #[arg(long, value_name = "[NAME=]FILE")]
    input: Vec<String>,
    /// How pictures become inputs: the same keys as for run
    #[arg(long, value_name = "KEY=VALUE,…")]
    preprocess: Option<Preprocess>,
    /// Largest allowed difference: steps between integers (1), a fraction of the greatest magnitude between floats
    /// (1e-4), or both (1,1e-4)
    #[arg(long, default_value = "0", value_name = "STEPS|REL")]
    tolerance: Tolerance,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

impl Diff {
    pub fn run(self) -> Result<Verdict> {
        let bytes = read_file(&self.file)?;
        let given = Given::read(&self.input, self.file.entry())?;
        given.check(self.preprocess.as_ref())?;
        let shapes = given.data();
        let artifact = if Artifact::is_one(&bytes) {
            let unused = self.compilation.given();
            if !unused.is_empty() {
                bail!("{} is for compiling, but {} is already compiled", unused.join(", "), self.file.display());
            }
            Some(self.params.decode(&self.file, self.file.display(), &bytes)?)
        } else {
            refuse(&[(self.params.is_given(), "--params")], "for artifacts; a model file has its parameters itself")?;
            None
        };
        let hw_a = self.config(artifact.as_ref())?;
        let hw_b = self.hw_b.as_deref().map(|name| load_hw(name).context("--hw-b")).transpose()?;
        let compile = |kind: DeviceKind, config: &HwConfig, keep: bool| {
            Ok(self.compilation.compile(&self.file, config, kind, keep, &shapes)?.0)
        };
        let sources = std::cell::OnceCell::new();
        let knows = |name: &str| {
            if sources.get().is_none() {
                let _ = sources.set(self.compilation.sources(&self.file, &shapes)?);
            }
            Ok(sources.get().is_some_and(|sources| sources.knows(name)))
        };
        let model = match &artifact {
            Some(artifact) => Model::Artifact(artifact),
            None => {
                let ordinary = !self.compilation.keeps_values();
                Model::Compiled { compile: &compile, knows: &knows, ordinary }
            }
        };
        let given = std::cell::RefCell::new(Some(given));
        let runs = |artifact: &Artifact| self.runs(artifact, given.take().unwrap_or_default());
        let request = DiffRequest {
            name: self.file.display(),
            a: self.a,
            hw_a: &hw_a,
            b: &self.b,
            hw_b: hw_b.as_ref(),
            tolerance: self.tolerance,
        };
        let mut bar = None;
        let report = diff::diff(&model, &runs, &request, &progress::tell, &mut |done, all| {
            bar.get_or_insert_with(|| progress::Progress::new("run", all)).at(done);
        });
        if let Some(bar) = bar {
            bar.end();
        }
        let report = report?;
        let text = if self.json { format!("{}\n", report.json()) } else { report.text() };
        write_or_print(None, text.as_bytes())?;
        Ok(if report.is_equal() { Verdict::Fine } else { Verdict::No })
    }

    /// Inputs of each run: those given, else random ones.
    fn runs(&self, artifact: &Artifact, given: Given) -> Result<Vec<Vec<Tensor>>> {
        let model = artifact.manifest.input_values();
        if given.is_empty() {
            if !model.is_empty() {
                super::say("using random inputs; give real ones with --input");
            }
            return Ok(vec![inference::made_up(&model)]);
        }
        let preprocess = self.file.preprocess(self.preprocess.as_ref());
        given.runs(&model, &artifact.manifest.about, &preprocess)
    }

    fn config(&self, artifact: Option<&Artifact>) -> Result<HwConfig> {
        match artifact.and_then(|artifact| artifact.manifest.hardware.as_ref()) {
            Some(hardware) if self.hw.is_default() => Ok(HwConfig::parse(&hardware.name, &hardware.toml)?),
            _ => self.hw.load(),
        }
    }
}
