//! `compile`, and what it shares with `run`: a model file to an artifact.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::Artifact;

use super::{Hw, Verdict};

/// How a model is compiled.
#[derive(clap::Args)]
pub struct Compilation {
    /// What the accelerator gets: all that it can compute, or none [default: all]
    #[arg(long, value_enum)]
    offload: Option<Offload>,
    /// Level of optimisation [default: 2]
    #[arg(short = 'O', value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(0..=3))]
    level: Option<u8>,
    /// Print the graph on standard error after each pass
    #[arg(long)]
    dump_ir: bool,
    /// Size of a dimension that the model leaves open
    #[arg(long, value_name = "SYMBOL=SIZE")]
    bind: Vec<String>,
}

/// What the accelerator gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Offload {
    /// Every operator that it can compute.
    All,
    /// Nothing.
    None,
}

impl Compilation {
    /// The options given, which mean nothing where nothing is compiled.
    pub fn given(&self) -> Vec<&'static str> {
        let options = [
            (self.offload.is_some(), "--offload"),
            (self.level.is_some(), "-O"),
            (self.dump_ir, "--dump-ir"),
            (!self.bind.is_empty(), "--bind"),
        ];
        options.into_iter().filter(|(given, _)| *given).map(|(_, name)| name).collect()
    }

    /// The sizes given with `--bind`.
    pub fn sizes(&self) -> Result<BTreeMap<String, usize>> {
        self.bind
            .iter()
            .map(|text| {
                let (symbol, size) =
                    text.split_once('=').ok_or_else(|| anyhow!("--bind {text} is not of the form SYMBOL=SIZE"))?;
                let size = size.parse().ok().filter(|n| *n > 0);
                Ok((
                    symbol.to_string(),
                    size.ok_or_else(|| anyhow!("--bind {text}: the size is not a whole number above 0"))?,
                ))
            })
            .collect()
    }

    /// Imports and compiles a model; also gives the seconds of both.
    pub fn compile(&self, file: &Path, config: &HwConfig, accelerator: bool) -> Result<(Artifact, f64, f64)> {
        let started = Instant::now();
        let graph = tilewright::model::import(file, &self.sizes()?)?;
        let load_s = started.elapsed().as_secs_f64();
        let started = Instant::now();
        let options = tilewright::model::Options {
            config,
            offload: accelerator && self.offload != Some(Offload::None),
            level: self.level.unwrap_or(2),
            dump_ir: self.dump_ir,
        };
        let artifact = tilewright::model::build(graph, &options, &mut |stage, text| {
            eprintln!("// {stage}\n{text}");
        })
        .with_context(|| file.display().to_string())?;
        Ok((artifact, load_s, started.elapsed().as_secs_f64()))
    }
}

/// Arguments of `compile`.
#[derive(clap::Args)]
pub struct Compile {
    /// The model (.onnx, .tflite)
    file: PathBuf,
    /// Artifact to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    hw: Hw,
    #[command(flatten)]
    compilation: Compilation,
    /// Say of every operator where it runs and why
    #[arg(long)]
    explain: bool,
}

impl Compile {
    pub fn run(self) -> Result<Verdict> {
        let config = self.hw.load()?;
        let (artifact, load_s, compile_s) = self.compilation.compile(&self.file, &config, true)?;
        artifact.write(&self.output)?;
        if self.explain {
            eprint!("{}", super::run::explain_table(&artifact.manifest));
        }
        eprintln!(
            "{}: {} steps, {} bytes of data and code; read in {load_s:.3} s, compiled in {compile_s:.3} s",
            self.output.display(),
            artifact.manifest.steps.len(),
            artifact.blob_bytes()
        );
        Ok(Verdict::Fine)
    }
}
