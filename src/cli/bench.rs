//! `bench`: compares a model's time on several devices.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use tilewright::device::DEFAULT_HW;
use tilewright::examine::bench::{self, Asked, BenchRequest};
use tilewright::model::ModelFile;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::files;

use super::compilation::Width;
use super::workload::Workload;
use super::{Progress, Verdict, write_or_print};

/// Arguments of `bench`.
#[derive(clap::Args)]
pub struct Bench {
    /// The model (.onnx, .pt2, .tflite, zoo:NAME)
    #[arg(value_parser = ModelFile::parse)]
    file: ModelFile,
    #[arg(
        long,
        value_name = "DEVICE,…",
        value_delimiter = ',',
        default_value = "csim,cpu",
        value_parser = Asked::parse,
        help = format!(
            "Devices to compare, separated by commas: {}; the report says which ones are not available",
            tilewright::device::names(|_| true)
        )
    )]
    devices: Vec<Asked>,
    /// Hardware configurations, separated by commas: names of presets or boards, or TOML files
    #[arg(long = "hw", value_name = "NAME|FILE.toml,…", value_delimiter = ',', default_value = DEFAULT_HW)]
    hw: Vec<String>,
    #[command(flatten)]
    workload: Workload,
    /// Float width in the memory of the device cuda; arithmetic is always 32 bits [default: f32]
    #[arg(long, value_enum)]
    precision: Option<Width>,
    /// Threads of the CPU thread pool [default: one per hardware thread]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Warm-up runs, which are not measured
    #[arg(long, value_name = "N", default_value_t = 3)]
    warm_up: u16,
    /// Measured runs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    repetitions: u16,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
    /// Also write a CSV file with a line for each device and layer
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

impl Bench {
    pub fn run(self) -> Result<Verdict> {
        if let Some(path) = &self.csv {
            files::check_writable(path).with_context(|| format!("cannot write {}", path.display()))?;
        }
        if self.precision.is_some() && !self.devices.iter().any(Asked::is_gpu) {
            bail!("--precision is for the device cuda; add cuda to --devices");
        }
        let configs: Vec<HwConfig> = self.hw.iter().map(|name| self.workload.config(name)).collect::<Result<_>>()?;
        let (graph, inputs) = self.workload.graph_and_inputs(&self.file)?;
        let tuned = self.workload.tuned.read()?;
        let request = BenchRequest {
            devices: &self.devices,
            configs: &configs,
            offload: self.workload.offload.into(),
            level: self.workload.level,
            precision: self.precision.map_or_else(Default::default, Width::precision),
            threads: self.threads.map_or_else(default_threads, usize::from),
            warm_up: self.warm_up.into(),
            repetitions: self.repetitions.into(),
            compare_offload: true,
            tuned: &tuned,
        };
        let progress = Progress::new("bench", 1);
        let found = bench::bench(&graph, &inputs, &request, &|what, done, all| progress.step(what, done, all));
        progress.end();
        let found = found.with_context(|| self.file.display().to_string())?;
        if let Some(path) = &self.csv {
            write_or_print(Some(path), found.csv().as_bytes())?;
        }
        let text = if self.json { format!("{}\n", found.json()) } else { found.table() };
        write_or_print(None, text.as_bytes())?;
        if found.columns.iter().all(|column| column.figures.is_err()) {
            bail!("{}: no device could run the model; the report gives the reason for each", self.file.display());
        }
        let differs = found.columns.iter().find(|c| c.figures.as_ref().is_ok_and(|figures| !figures.agrees));
        if let Some(column) = differs {
            eprintln!("{}: its outputs differ from the CPU's; find out where with: tilewright diff", column.name);
            return Ok(Verdict::No);
        }
        Ok(Verdict::Fine)
    }
}

/// Number of threads without `--threads`.
fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
