//! `bench`: what a model takes on several devices, side by side.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use tilewright::bench::{self, Asked, Request};
use tilewright::dram;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::files;
use tilewright_runtime::tensor::Tensor;

use super::compile::{Offload, OpenSizes};
use super::run::Given;
use super::{DEFAULT_HW, ModelFile, Progress, Verdict, write_or_print};

/// Arguments of `bench`.
#[derive(clap::Args)]
pub struct Bench {
    /// The model (.onnx, .tflite, zoo:NAME)
    #[arg(value_parser = ModelFile::parse)]
    file: ModelFile,
    /// Devices to compare, between commas: cpu, cuda, csim, rtl, fsim, serial:PATH, spi:PATH, uio; one that is not there is told
    /// in its place
    #[arg(long, value_name = "DEVICE,…", value_delimiter = ',', default_value = "csim,cpu", value_parser = Asked::parse)]
    devices: Vec<Asked>,
    /// Hardware configurations, between commas: presets' names, or TOML files
    #[arg(long = "hw", value_name = "NAME|FILE.toml,…", value_delimiter = ',', default_value = DEFAULT_HW)]
    hw: Vec<String>,
    /// What the accelerator gets in the table of devices; all ways stand in a table of their own
    #[arg(long, value_enum, default_value = "all")]
    offload: Offload,
    /// Level of optimisation, as run and compile take it
    #[arg(short = 'O', value_name = "LEVEL", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=3))]
    level: u8,
    #[command(flatten)]
    sizes: OpenSizes,
    /// Data of an input, as run takes it; the first input of several is taken [default: a network's own sample, else made-up data]
    #[arg(long, value_name = "[NAME=]FILE")]
    input: Vec<String>,
    /// DRAM model of the simulators: latency=CYCLES,bandwidth=BYTES,shared=BOOL,row=SIXTEENTHS
    #[arg(long, value_name = "KEY=VALUE,…")]
    dram: Option<String>,
    /// Threads of the processor's pool [default: all that there are]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Runs before those that are measured
    #[arg(long, value_name = "N", default_value_t = 3)]
    warm_up: u16,
    /// Runs that are measured
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    repetitions: u16,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
    /// Write a line for each device and layer
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

impl Bench {
    pub fn run(self) -> Result<Verdict> {
        if let Some(path) = &self.csv {
            files::check_writable(path).with_context(|| format!("cannot write {}", path.display()))?;
        }
        let mut configs = Vec::new();
        for name in &self.hw {
            let mut config = HwConfig::load(name)?;
            require_clock_and_host(name)?;
            if let Some(text) = &self.dram {
                dram::apply(text, &mut config).map_err(anyhow::Error::msg).context("--dram")?;
            }
            configs.push(config);
        }
        let (graph, inputs) = graph_and_inputs(&self.file, &self.sizes, &self.input)?;
        let request = Request {
            devices: &self.devices,
            configs: &configs,
            offload: self.offload.into(),
            level: self.level,
            threads: self.threads.map_or_else(default_threads, usize::from),
            warm_up: self.warm_up.into(),
            repetitions: self.repetitions.into(),
            compare_offload: true,
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
        let differs = found.columns.iter().find(|c| c.figures.as_ref().is_ok_and(|figures| !figures.agrees));
        if let Some(column) = differs {
            eprintln!("{}: its outputs are not those of the processor; find where with: tilewright diff", column.name);
            return Ok(Verdict::No);
        }
        Ok(Verdict::Fine)
    }
}

/// Threads where none are asked for.
fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Refuses a configuration that says not what time is counted by.
pub fn require_clock_and_host(name: &str) -> Result<()> {
    let unstated = HwConfig::unstated_of_host(name)?;
    let missing: Vec<String> =
        ["clock_mhz", "target"].iter().filter(|key| unstated.contains(key)).map(|key| format!("host.{key}")).collect();
    if !missing.is_empty() {
        bail!(
            "{name} does not state {}, without which there are no times to compare; add to its table [host]: {}",
            missing.join(" and "),
            missing
                .iter()
                .map(|key| if key == "host.target" {
                    "target = \"NAME OF THE PROCESSOR\""
                } else {
                    "clock_mhz = MEGAHERTZ"
                })
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    Ok(())
}

/// A model's graph, and the inputs of one run: those given, else the network's own sample, else made-up data.
pub fn graph_and_inputs(
    file: &ModelFile,
    sizes: &OpenSizes,
    input: &[String],
) -> Result<(tilewright_compiler::graph::Graph, Vec<Tensor>)> {
    let random = ["random".to_string()];
    let input = if input.is_empty() && file.entry().is_none() { &random[..] } else { input };
    let given = Given::read(input, file.entry())?;
    let graph = tilewright::model::import(file, &sizes.sizes(&given.shapes())?)?;
    let values = tilewright::model::inputs(&graph)?;
    let values: Vec<_> = values.iter().collect();
    let runs = given.runs(&values, &file.about()?, &file.preprocess(None))?;
    let first = runs.into_iter().next();
    Ok((graph, first.context("the inputs have no data for a run")?))
}
