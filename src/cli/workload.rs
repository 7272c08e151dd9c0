//! Shared by `bench` and `profile`: a model, a configuration with a known clock and host, and the inputs of one run.

use anyhow::{Context, Result};
use tilewright::device::dram;
use tilewright::device::load_hw_with_times;
use tilewright::model::ModelFile;
use tilewright::model::given::Given;
use tilewright_compiler::graph::Graph;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::tensor::Tensor;

use super::compilation::{ImportArgs, Offload};
use super::tuned::TunedOption;

/// Options of a workload.
#[derive(clap::Args)]
pub struct Workload {
    /// Operators for the accelerator: all that it can compute, those that are faster there (auto), or none
    #[arg(long, value_enum, default_value = "all")]
    pub offload: Offload,
    /// Optimization level, as for run and compile
    #[arg(short = 'O', value_name = "LEVEL", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=3))]
    pub level: u8,
    #[command(flatten)]
    pub tuned: TunedOption,
    #[command(flatten)]
    import: ImportArgs,
    /// Data for an input, as for run; only its first sample is used [default: the zoo network's sample, else random]
    #[arg(long, value_name = "[NAME=]FILE")]
    input: Vec<String>,
    /// DRAM model of the simulators: latency=CYCLES,bandwidth=BYTES,shared=BOOL,row=SIXTEENTHS,burst=SIXTEENTHS
    #[arg(long, value_name = "KEY=VALUE,…")]
    dram: Option<String>,
}

impl Workload {
    /// Loads a configuration and applies `--dram`. Fails if it does not state its clock and host.
    pub fn config(&self, name: &str) -> Result<HwConfig> {
        let mut config = load_hw_with_times(name)?;
        if let Some(text) = &self.dram {
            dram::apply(text, &mut config).map_err(anyhow::Error::msg).context("--dram")?;
        }
        Ok(config)
    }

    /// The model's graph, and the inputs of one run: those given, else the zoo network's sample, else random.
    pub fn graph_and_inputs(&self, file: &ModelFile) -> Result<(Graph, Vec<Tensor>)> {
        let random = ["random".to_string()];
        let input = if self.input.is_empty() && file.entry().is_none() { &random[..] } else { &self.input };
        let given = Given::read(input, file.entry())?;
        let graph = tilewright::model::import(file, self.import.options(&given.data())?)?;
        let values = tilewright::model::inputs(&graph)?;
        let values: Vec<_> = values.iter().collect();
        let runs = given.runs(&values, &file.about()?, &file.preprocess(None))?;
        Ok((graph, runs.into_iter().next().context("the inputs have no data for a run")?))
    }
}
