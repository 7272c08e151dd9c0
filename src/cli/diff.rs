//! `diff`: compares a model's values on two devices, or on one device with arrays.

mod report;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use tilewright::device::load_hw;
use tilewright::device::{self, DeviceKind, Extras};
use tilewright::examine::diff::{Comparison, Other, Outputs, Reference, Side, Tolerance, compare_all, departure};
use tilewright::model::ModelFile;
use tilewright::model::inference;
use tilewright::model::picture::Preprocess;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{Artifact, StepKind};
use tilewright_runtime::tensor::Tensor;

use super::compilation::Compilation;
use super::run::{Given, refuse};
use super::{Hw, ParamsOption, Verdict, progress, read_file, write_or_print};

/// Arguments of `diff`.
#[derive(clap::Args)]
pub struct Diff {
    /// A model (.onnx, .tflite, zoo:NAME), or an artifact (compiled with --keep-values, to compare values inside its
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

/// Value of `--b`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Right {
    Device(DeviceKind),
    Npz(PathBuf),
    Folder(PathBuf),
}

impl std::str::FromStr for Right {
    type Err = String;

    fn from_str(text: &str) -> Result<Right, String> {
        match text.split_once(':') {
            Some(("npz", path)) => Ok(Right::Npz(path.into())),
            Some(("dir", path)) => Ok(Right::Folder(path.into())),
            _ => text
                .parse()
                .map(Right::Device)
                .map_err(|e: device::DeviceNameError| format!("{e}, or npz:FILE or dir:DIR for arrays")),
        }
    }
}

/// The other side, ready to compare.
enum Ready {
    Side(Box<Side>),
    Arrays(Reference),
}

impl Diff {
    pub fn run(self) -> Result<Verdict> {
        let bytes = read_file(&self.file)?;
        let given = Given::read(&self.input, self.file.entry())?;
        given.check(self.preprocess.as_ref())?;
        let shapes = given.shapes();
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
        let hw_a = self.config(None, artifact.as_ref())?;
        if self.hw_b.is_some() && !matches!(self.b, Right::Device(kind) if kind.is_accelerator()) {
            bail!("--hw-b is for an accelerator; leave it out, or give --b fsim, --b csim or --b rtl");
        }
        let hw_b = self.config(self.hw_b.as_deref(), artifact.as_ref())?;
        if let Some(artifact) = &artifact {
            self.check_sides(artifact)?;
        }
        let compile = |kind: DeviceKind, config: &HwConfig, keep: bool| -> Result<Artifact> {
            if let Some(artifact) = &artifact {
                return Ok(artifact.clone());
            }
            Ok(self.compilation.compile(&self.file, config, kind, keep, &shapes)?.0)
        };
        let artifact_a = compile(self.a, &hw_a, true)?;
        let runs = self.runs(&artifact_a, given)?;
        let other = match &self.b {
            Right::Device(kind) => {
                let own = |kind: DeviceKind| (!kind.is_accelerator()).then_some(kind);
                let same = hw_a.hash() == hw_b.hash() && own(*kind) == own(self.a);
                let artifact_b = if same { artifact_a.clone() } else { compile(*kind, &hw_b, true)? };
                Ready::Side(Box::new(side(artifact_b, *kind, &hw_b)?))
            }
            Right::Npz(path) => Ready::Arrays(Reference::from_npz(path, runs.len())?),
            Right::Folder(path) => Ready::Arrays(Reference::from_folder(path, runs.len())?),
        };
        if let Ready::Arrays(arrays) = &other {
            let sources = match &artifact {
                Some(_) => None,
                None => Some(self.compilation.sources(&self.file, &shapes)?),
            };
            let knows = |name: &str| sources.as_ref().is_some_and(|sources| sources.knows(name));
            arrays.check(&artifact_a.manifest, &knows)?;
        }
        let mut a = side(artifact_a, self.a, &hw_a)?;
        let (mut other, names) = (other, [self.name_a(&hw_a), self.name_b(&hw_b)]);
        let mut last = Comparison::default();
        let mut parted = None;
        let mut outputs: [Vec<Outputs>; 2] = Default::default();
        let bar = progress::Progress::new("run", runs.len());
        for (run, inputs) in runs.iter().enumerate() {
            a.run(inputs)?;
            outputs[0].push(a.outputs());
            let theirs = match &mut other {
                Ready::Side(b) => {
                    b.run(inputs)?;
                    outputs[1].push(b.outputs());
                    Other::Side(b)
                }
                Ready::Arrays(arrays) => Other::Arrays(arrays, run),
            };
            last = compare_all(&a, &theirs, &self.tolerance)?;
            if !last.is_equal() {
                parted = Some(run);
                break;
            }
            bar.at(run + 1);
        }
        bar.end();
        if last.values.is_empty() && last.unlike.is_empty() {
            bail!(
                "{}: the two sides have no value in common; give a model that computes something from its inputs",
                self.file.display()
            );
        }
        let b = if let Ready::Side(b) = &other { Some(b.as_ref()) } else { None };
        let mut ordinary = None;
        if parted.is_none() && artifact.is_none() && !self.compilation.keeps_values() {
            let of_b = match &self.b {
                Right::Device(kind) if (*kind, hw_b.hash()) != (self.a, hw_a.hash()) => Some((*kind, &hw_b)),
                _ => None,
            };
            for (place, of) in [Some((self.a, &hw_a)), of_b].into_iter().enumerate() {
                let Some((kind, config)) = of.filter(|(kind, _)| kind.is_accelerator()) else { continue };
                let mut side = side(compile(kind, config, false)?, kind, config)?;
                if let Some(found) = departure(&mut side, &runs, &outputs[place], &self.tolerance)? {
                    ordinary = Some((names[place].clone(), found));
                    break;
                }
            }
        }
        let equal = parted.is_none() && ordinary.is_none();
        let parted = report::Parted { run: parted.unwrap_or(0), comparison: last };
        let report =
            report::Report { names, runs: runs.len(), tolerance: self.tolerance, a: &a, b, parted: &parted, ordinary };
        let text = if self.json { format!("{}\n", report.json()) } else { report.text() };
        write_or_print(None, text.as_bytes())?;
        Ok(if equal { Verdict::Fine } else { Verdict::No })
    }

    /// Refuses the CPU if the artifact contains accelerator programs.
    fn check_sides(&self, artifact: &Artifact) -> Result<()> {
        if !artifact.manifest.steps.iter().any(|step| matches!(step.kind, StepKind::Accel(_))) {
            return Ok(());
        }
        let file = self.file.display();
        if !self.a.is_accelerator() {
            bail!(
                "{file} is compiled for an accelerator, so --a {} cannot run it; give --a fsim, --a csim, --a rtl or the model's file",
                self.a
            );
        }
        if let Right::Device(b) = &self.b
            && !b.is_accelerator()
        {
            bail!(
                "{file} is compiled for an accelerator, so --b {b} cannot run it; give --b csim, --b rtl, --b dir:DIR, --b npz:FILE or the \
                 model's file"
            );
        }
        Ok(())
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

    fn config(&self, name: Option<&str>, artifact: Option<&Artifact>) -> Result<HwConfig> {
        match (name, artifact.and_then(|artifact| artifact.manifest.hardware.as_ref())) {
            (Some(name), _) => load_hw(name).context("--hw-b"),
            (None, Some(hardware)) if self.hw.is_default() => Ok(HwConfig::parse(&hardware.name, &hardware.toml)?),
            (None, _) => self.hw.load(),
        }
    }

    fn name_a(&self, config: &HwConfig) -> String {
        device_name(self.a, config, self.hw_b.is_some())
    }

    fn name_b(&self, config: &HwConfig) -> String {
        match &self.b {
            Right::Device(kind) => device_name(*kind, config, self.hw_b.is_some()),
            Right::Npz(path) | Right::Folder(path) => path.display().to_string(),
        }
    }
}

fn device_name(kind: DeviceKind, config: &HwConfig, with_config: bool) -> String {
    if with_config && kind.is_accelerator() { format!("{kind} {}", config.name) } else { kind.to_string() }
}

fn side(artifact: Artifact, kind: DeviceKind, config: &HwConfig) -> Result<Side> {
    if kind.is_accelerator() {
        artifact.check_hardware(config)?;
    }
    let device = device::open(kind, config, Extras::default(), &progress::tell)?;
    Ok(Side::new(artifact, config, device)?)
}
