//! What `bench` and `profile` run: a model, made for a configuration whose times are known, on the inputs of one run.

use anyhow::{Context, Result, bail};
use tilewright::device::dram;
use tilewright_compiler::graph::Graph;
use tilewright_hw::config::{ConfigError, HwConfig};
use tilewright_runtime::tensor::Tensor;

use super::compile::{Offload, OpenSizes};
use super::run::Given;
use super::{ModelFile, load_hw};

/// How it is made, and on what it runs.
#[derive(clap::Args)]
pub struct Workload {
    /// What the accelerator gets
    #[arg(long, value_enum, default_value = "all")]
    pub offload: Offload,
    /// Level of optimisation, as run and compile take it
    #[arg(short = 'O', value_name = "LEVEL", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=3))]
    pub level: u8,
    #[command(flatten)]
    sizes: OpenSizes,
    /// Data of an input, as run takes it; the first input of several is taken [default: a network's own sample, else made-up data]
    #[arg(long, value_name = "[NAME=]FILE")]
    input: Vec<String>,
    /// DRAM model of the simulators: latency=CYCLES,bandwidth=BYTES,shared=BOOL,row=SIXTEENTHS,burst=SIXTEENTHS
    #[arg(long, value_name = "KEY=VALUE,…")]
    dram: Option<String>,
}

impl Workload {
    /// A configuration that states its clock and host, with the memory asked for.
    pub fn config(&self, name: &str) -> Result<HwConfig> {
        let mut config = load_hw(name)?;
        require_clock_and_host(name)?;
        if let Some(text) = &self.dram {
            dram::apply(text, &mut config).map_err(anyhow::Error::msg).context("--dram")?;
        }
        Ok(config)
    }

    /// A model's graph, and the inputs of one run: those given, else the network's own sample, else made-up data.
    pub fn graph_and_inputs(&self, file: &ModelFile) -> Result<(Graph, Vec<Tensor>)> {
        let random = ["random".to_string()];
        let input = if self.input.is_empty() && file.entry().is_none() { &random[..] } else { &self.input };
        let given = Given::read(input, file.entry())?;
        let graph = tilewright::model::import(file, &self.sizes.sizes(&given.shapes())?)?;
        let values = tilewright::model::inputs(&graph)?;
        let values: Vec<_> = values.iter().collect();
        let runs = given.runs(&values, &file.about()?, &file.preprocess(None))?;
        Ok((graph, runs.into_iter().next().context("the inputs have no data for a run")?))
    }
}

/// Refuses a configuration that says not what time is counted by.
fn require_clock_and_host(name: &str) -> Result<()> {
    let unstated = match HwConfig::unstated_of_host(name) {
        // A board's name: its file states the clock, and the preset that it has the target.
        Err(ConfigError::Unknown { .. }) => return Ok(()),
        unstated => unstated?,
    };
    let lines = [("clock_mhz", "clock_mhz = MEGAHERTZ"), ("target", "target = \"NAME OF THE PROCESSOR\"")];
    let missing: Vec<_> = lines.into_iter().filter(|(key, _)| unstated.contains(key)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let keys: Vec<String> = missing.iter().map(|(key, _)| format!("host.{key}")).collect();
    let lines: Vec<&str> = missing.iter().map(|(_, line)| *line).collect();
    let (keys, lines) = (keys.join(" and "), lines.join(", "));
    bail!("{name} does not state {keys}, without which there are no times to compare; add to its table [host]: {lines}")
}
