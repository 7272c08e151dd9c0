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
    /// What the accelerator gets: all that it can compute, or none
    #[arg(long, value_enum, default_value_t = Offload::All)]
    pub offload: Offload,
    /// Level of optimisation
    #[arg(short = 'O', value_name = "LEVEL", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=3))]
    pub level: u8,
    /// Print the graph on standard error after each pass
    #[arg(long)]
    pub dump_ir: bool,
    /// Size of a dimension that the model leaves open
    #[arg(long, value_name = "SYMBOL=SIZE")]
    pub bind: Vec<String>,
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
            offload: accelerator && self.offload == Offload::All,
            level: self.level,
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
