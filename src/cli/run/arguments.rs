//! The arguments of `run`, and helpers for models and programs.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tilewright::device::{DeviceKind, Extras, dram};
use tilewright::model::ModelFile;
use tilewright::model::picture::Preprocess;
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::UnitCounters;
use tilewright_hw::regs::{TrapUnit, UnitState};

use crate::cli::compilation::Compilation;
use crate::cli::{Hw, ParamsOption, progress};

/// Arguments of `run`.
#[derive(clap::Args)]
pub struct Run {
    /// A model (.onnx, .pt2, .tflite, zoo:NAME), a compiled artifact (.twa), or a program (text in a .tw file, or a
    /// stream made by asm)
    #[arg(value_parser = ModelFile::parse)]
    pub file: ModelFile,
    #[command(flatten)]
    pub hw: Hw,
    #[arg(
        long,
        default_value = "fsim",
        value_name = "DEVICE",
                help = format!("Device to run on: {}", tilewright::device::help(|_| true))
    )]
    pub device: DeviceKind,
    #[command(flatten)]
    pub compilation: Compilation,
    #[command(flatten)]
    pub params: ParamsOption,
    /// Data for an input: a .npy file, a .npz file with an array for each input, or one or more pictures (.png, .jpg,
    /// .webp, .bmp, .gif); `random` fills the inputs you did not give, with the same numbers each time [default for
    /// zoo:NAME: its sample]
    #[arg(long, value_name = "[NAME=]FILE")]
    pub input: Vec<String>,
    /// How pictures become inputs, as KEY=VALUE separated by commas: crop=SHARE, fit=crop|stretch|pad,
    /// filter=nearest|bilinear|bicubic|lanczos, mean=M or M:M:M, scale=S or S:S:S, channels=rgb|bgr, layout=nchw|nhwc;
    /// mean and scale also convert arrays of bytes to floats [default: what the model file says]
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub preprocess: Option<Preprocess>,
    /// File with the class names of the first output, one per line; prints the likeliest classes [default: the model's
    /// own names, if any]
    #[arg(long, value_name = "FILE")]
    pub class_names: Option<PathBuf>,
    /// Number of likeliest classes to print
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,
    /// Correct classes, a .npy file of integers; prints the accuracy
    #[arg(long, value_name = "FILE.npy")]
    pub labels: Option<PathBuf>,
    /// Folder for the outputs, as NAME.npy; created if missing
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
    /// Folder for every value of the run, as NAME.npy with an index.json; created, or an earlier dump replaced
    #[arg(long, value_name = "DIR")]
    pub dump_tensors: Option<PathBuf>,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
    /// DRAM model: latency=CYCLES,bandwidth=BYTES,shared=BOOL,row=SIXTEENTHS,burst=SIXTEENTHS
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub dram: Option<String>,
    /// Record the design's signals (rtl only)
    #[arg(long, value_name = "FILE.fst")]
    pub waves: Option<PathBuf>,
    /// Write a Perfetto trace (ui.perfetto.dev) of when each instruction starts, waits and retires (csim and rtl)
    #[arg(long, value_name = "FILE.json")]
    pub trace: Option<PathBuf>,
    /// Print the N instructions that stalled their units longest, and what they waited for (csim and rtl)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub top_stalls: Option<u32>,
    /// Abort a command, which is a program or a step of a model, after N cycles; the untimed fsim counts instructions,
    /// or micro-ops or rows of one unit; with --step, each instruction is a command
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_cycles: Option<u64>,
    /// Refuse programs with races, port collisions avoided only by accident of timing, and reads of uninitialized
    /// memory (csim only)
    #[arg(long)]
    pub strict: bool,
    /// Upload the artifact to the server (--device remote:HOST:PORT) and run all of it there, instead of only the
    /// accelerator's programs
    #[arg(long, conflicts_with_all = ["dump_tensors", "trace", "top_stalls", "waves"])]
    pub upload: bool,
    /// After the run, run the first inputs N times more on the server, and print the times by its clock
    #[arg(long, value_name = "N", requires = "upload", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: Option<u32>,
    /// Print where each operator runs and why, and its cost there and elsewhere; with --json, on standard error
    #[arg(long)]
    pub explain: bool,
    /// Treat the file as a program's text, whatever its name
    #[arg(long)]
    pub program: bool,
    /// Program only: load a file into device memory at an address
    #[arg(long, value_name = "ADDRESS=FILE")]
    pub data: Vec<String>,
    /// Program only: after the run, write LEN bytes from an address to a file
    #[arg(long, value_name = "ADDRESS:LEN=FILE")]
    pub read: Vec<String>,
    /// Program only: run one instruction at a time; between them, show scratchpads and memory
    #[arg(long)]
    pub step: bool,
}

/// Fails if any of the options is given that would have no effect; `why` says what they are for.
pub fn refuse(options: &[(bool, &str)], why: &str) -> Result<()> {
    let given: Vec<&str> = options.iter().filter(|(given, _)| *given).map(|(_, name)| *name).collect();
    match given.as_slice() {
        [] => Ok(()),
        [one] => bail!("{one} is {why}"),
        [first @ .., last] => bail!("{} and {last} are {why}", first.join(", ")),
    }
}

/// Cycles of each unit in each state, summed over several runs.
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

    /// The hardware configuration, with `--dram` applied.
    pub fn config(&self) -> Result<HwConfig> {
        let mut config = self.hw.load()?;
        self.apply_dram(&mut config)?;
        Ok(config)
    }

    pub fn apply_dram(&self, config: &mut HwConfig) -> Result<()> {
        if let Some(text) = &self.dram {
            let on_board = self.device.port().is_some();
            refuse(&[(on_board, "--dram")], "for simulators; leave it out, since a board's memory cannot be changed")?;
            dram::apply(text, config).map_err(anyhow::Error::msg).context("--dram")?;
        }
        Ok(())
    }

    /// Describes the DRAM model.
    pub fn memory(&self, config: &HwConfig) -> String {
        match self.device.port() {
            Some(_) => "the board's".into(),
            None => dram::text(&config.dram, config.bus_bytes()),
        }
    }

    /// What the device must do beyond running programs.
    pub fn extras(&self) -> Extras<'_> {
        let spans = self.trace.is_some() || self.top_stalls.is_some();
        Extras { waves: self.waves.as_deref(), strict: self.strict, spans, max_cycles: self.max_cycles }
    }

    /// Opens the device and shows progress if that takes long.
    pub fn open(&self, config: &HwConfig) -> Result<Option<Box<dyn tilewright_hw::device::Device>>> {
        Ok(tilewright::device::open(self.device, config, self.extras(), &progress::tell)?)
    }
}
