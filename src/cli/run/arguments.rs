//! The arguments of `run`, and what follows from them for models and programs alike.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tilewright::device::{DeviceKind, Extras, dram};
use tilewright::model::picture::Preprocess;
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::UnitCounters;
use tilewright_hw::regs::{TrapUnit, UnitState};

use crate::cli::compile::Compilation;
use crate::cli::{Hw, ModelFile, progress};

/// Arguments of `run`.
#[derive(clap::Args)]
pub struct Run {
    /// A model (.onnx, .tflite, zoo:NAME), a compiled artifact (.twa), or a program (text in a .tw file, or a stream made by asm)
    #[arg(value_parser = ModelFile::parse)]
    pub file: ModelFile,
    #[command(flatten)]
    pub hw: Hw,
    #[arg(
        long,
        default_value = "fsim",
        value_name = "DEVICE",
        help = format!("Where it runs: {}", tilewright::device::help(|_| true))
    )]
    pub device: DeviceKind,
    #[command(flatten)]
    pub compilation: Compilation,
    /// Data of an input: a .npy file, a .npz file with an array for each input, or a picture (.png, .jpg, .webp, .bmp, .gif), of which there may
    /// be several; the word random makes up what is not given, the same each time [default for zoo:NAME: its sample]
    #[arg(long, value_name = "[NAME=]FILE")]
    pub input: Vec<String>,
    /// How pictures become inputs, and by mean and scale bytes of arrays, as KEY=VALUE between commas: crop=SHARE, fit=crop|stretch|pad,
    /// filter=nearest|bilinear|bicubic|lanczos, mean=M or M:M:M, scale=S or S:S:S, channels=rgb|bgr, layout=nchw|nhwc
    /// [default: what the model's file says]
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub preprocess: Option<Preprocess>,
    /// Names of the first output's classes, one a line; prints the likeliest [default: the model's own, where it has any]
    #[arg(long, value_name = "FILE")]
    pub class_names: Option<PathBuf>,
    /// How many of the likeliest classes are printed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,
    /// Right answers, a .npy file of whole numbers; prints the accuracy
    #[arg(long, value_name = "FILE.npy")]
    pub labels: Option<PathBuf>,
    /// Folder for the outputs, NAME.npy each; made where it is missing
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
    /// Folder for every value of the run, NAME.npy each, with an index.json; made, or an earlier dump replaced
    #[arg(long, value_name = "DIR")]
    pub dump_tensors: Option<PathBuf>,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
    /// DRAM model: latency=CYCLES,bandwidth=BYTES,shared=BOOL,row=SIXTEENTHS,burst=SIXTEENTHS
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub dram: Option<String>,
    /// Record the design's signals (rtl alone)
    #[arg(long, value_name = "FILE.fst")]
    pub waves: Option<PathBuf>,
    /// Write when each instruction started and retired and what it waited for, for Perfetto (ui.perfetto.dev); csim and rtl
    #[arg(long, value_name = "FILE.json")]
    pub trace: Option<PathBuf>,
    /// Print the N instructions that kept their units waiting longest, and for whom; csim and rtl
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub top_stalls: Option<u32>,
    /// Give up a command, which is a program or a step of a model, after N cycles; fsim, which knows no cycles, after N
    /// instructions, or micro-ops or rows of one unit; with --step each instruction is a command
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_cycles: Option<u64>,
    /// Refuse programs with races, ports that only luck keeps from colliding, and reads of what nobody wrote (csim alone)
    #[arg(long)]
    pub strict: bool,
    /// Print of every operator where it runs and why, and what it takes there and elsewhere; with --json on standard error
    #[arg(long)]
    pub explain: bool,
    /// Take the file for a program's text, whatever its name
    #[arg(long)]
    pub program: bool,
    /// Program only: put a file's bytes at an address of device memory
    #[arg(long, value_name = "ADDRESS=FILE")]
    pub data: Vec<String>,
    /// Program only: after the run, write LEN bytes from an address to a file
    #[arg(long, value_name = "ADDRESS:LEN=FILE")]
    pub read: Vec<String>,
    /// Program only: run one instruction at a time, and look at scratchpads between them
    #[arg(long)]
    pub step: bool,
}

/// Refuses options that would change nothing: `why` says what they are for.
pub fn refuse(options: &[(bool, &str)], why: &str) -> Result<()> {
    let given: Vec<&str> = options.iter().filter(|(given, _)| *given).map(|(_, name)| *name).collect();
    match given.as_slice() {
        [] => Ok(()),
        [one] => bail!("{one} is {why}"),
        [first @ .., last] => bail!("{} and {last} are {why}", first.join(", ")),
    }
}

/// Cycles of each unit in each state; of several runs, their sum.
pub fn counters<'a>(of: impl IntoIterator<Item = &'a UnitCounters>) -> Option<Value> {
    let mut sum: Option<UnitCounters> = None;
    for counted in of {
        let all = sum.get_or_insert_default();
        all.0.iter_mut().flatten().zip(counted.0.iter().flatten()).for_each(|(sum, n)| *sum += n);
    }
    let unit = |counts: &[u64]| -> Value {
        UnitState::ALL.iter().map(|s| (s.name().to_string(), Value::from(counts[*s as usize]))).collect()
    };
    sum.map(|sum| TrapUnit::ALL.iter().map(|u| (u.name().to_string(), unit(&sum.0[*u as usize]))).collect())
}

impl Run {
    pub fn has_extension(&self, extension: &str) -> bool {
        self.file.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
    }

    /// The configuration with the DRAM model asked for.
    pub fn config(&self) -> Result<HwConfig> {
        let mut config = self.hw.load()?;
        self.apply_dram(&mut config)?;
        Ok(config)
    }

    pub fn apply_dram(&self, config: &mut HwConfig) -> Result<()> {
        if let Some(text) = &self.dram {
            let on_board = self.device.port().is_some();
            refuse(&[(on_board, "--dram")], "for simulators; leave it out, as a board's memory is as it is")?;
            dram::apply(text, config).map_err(anyhow::Error::msg).context("--dram")?;
        }
        Ok(())
    }

    /// How memory behaves, for people.
    pub fn memory(&self, config: &HwConfig) -> String {
        match self.device.port() {
            Some(_) => "the board's".into(),
            None => dram::text(&config.dram, config.bus_bytes()),
        }
    }

    /// Opens the device, saying so where it takes time.
    pub fn open(&self, config: &HwConfig) -> Result<Option<Box<dyn tilewright_hw::device::Device>>> {
        let spans = self.trace.is_some() || self.top_stalls.is_some();
        let extras = Extras { waves: self.waves.as_deref(), strict: self.strict, spans, max_cycles: self.max_cycles };
        Ok(tilewright::device::open(self.device, config, extras, &progress::tell)?)
    }
}
