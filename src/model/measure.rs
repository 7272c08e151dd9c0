//! Measures the CPU code on this machine, to place operators by real times.

use std::collections::HashMap;

use tilewright_compiler::backend::Backend;
use tilewright_compiler::codegen::accel::{Layer, Planned};
use tilewright_compiler::cost::{Analytic, CostOracle, CpuTime};
use tilewright_compiler::graph::{Graph, NodeId};
use tilewright_compiler::partition::{Offload, partition};
use tilewright_compiler::passes::OptLevel;
use tilewright_compiler::passes::pipelines::cpu_passes;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::Session;

use super::error::ModelError;
use crate::model::compile::compile;
use crate::model::inference::made_up;

/// Number of runs that the median is taken of, after one run that warms the caches.
const RUNS: usize = 7;

/// Costs with CPU times measured on this machine; costs of the accelerator, of layouts and of transfers stay estimates.
pub struct Measured<'c> {
    estimates: Analytic<'c>,
    times: HashMap<NodeId, u64>,
}

impl<'c> Measured<'c> {
    /// Compiles the whole graph for the CPU and runs it several times on random inputs. The time of a function that
    /// computes several nodes is divided among them in proportion to the estimates.
    ///
    /// # Errors
    /// [`ModelError::Compile`] or [`ModelError::Measure`].
    pub fn new(graph: &Graph, estimates: Analytic<'c>, cpu: &dyn Backend) -> Result<Measured<'c>, ModelError> {
        let split = partition(graph, estimates.config, Offload::None);
        let artifact = compile(graph, &split, estimates.config, cpu, &cpu_passes(OptLevel::default()))?;
        let nodes: Vec<(NodeId, Option<u32>)> =
            split.explanations.iter().zip(&artifact.manifest.nodes).map(|(e, info)| (e.node, info.step)).collect();
        let inputs = made_up(&artifact.manifest.input_values());
        let mut session = Session::new(artifact, Registry::global(), None)?;
        let mut seconds: Vec<Vec<f64>> = Vec::new();
        for run in 0..=RUNS {
            let (_, report) = session.run(&inputs)?;
            seconds.resize(report.steps.len(), Vec::new());
            if run > 0 {
                seconds.iter_mut().zip(&report.steps).for_each(|(list, step)| list.push(step.wall_s));
            }
        }
        let medians: Vec<f64> = seconds.into_iter().map(median).collect();
        let mut steps: HashMap<u32, Vec<(NodeId, f64)>> = HashMap::new();
        for (node, step) in nodes {
            let Some(step) = step else { continue };
            let share = estimates.cpu(graph, &[node]).map_or(1.0, |time| time.ns.max(1) as f64);
            steps.entry(step).or_default().push((node, share));
        }
        let mut times = HashMap::new();
        for (step, nodes) in steps {
            let all: f64 = nodes.iter().map(|(_, share)| share).sum();
            let ns = medians.get(step as usize).copied().unwrap_or(0.0) * 1e9;
            times.extend(nodes.into_iter().map(|(node, share)| (node, (ns * share / all).round() as u64)));
        }
        Ok(Measured { estimates, times })
    }
}

fn median(mut list: Vec<f64>) -> f64 {
    list.sort_by(f64::total_cmp);
    list.get(list.len() / 2).copied().unwrap_or(0.0)
}

impl CostOracle for Measured<'_> {
    fn accel_cycles(&self, layer: &Layer, planned: &Planned) -> u64 {
        self.estimates.accel_cycles(layer, planned)
    }

    fn accel_ns(&self, cycles: u64) -> u64 {
        self.estimates.accel_ns(cycles)
    }

    fn cpu(&self, graph: &Graph, nodes: &[NodeId]) -> Option<CpuTime> {
        let times: Option<Vec<u64>> = nodes.iter().map(|node| self.times.get(node).copied()).collect();
        match times {
            Some(times) => Some(CpuTime { ns: times.iter().sum(), measured: true }),
            None => self.estimates.cpu(graph, nodes),
        }
    }

    fn border_ns(&self, dense_bytes: u64, device_bytes: u64) -> u64 {
        self.estimates.border_ns(dense_bytes, device_bytes)
    }

    fn launch_ns(&self) -> u64 {
        self.estimates.launch_ns()
    }
}
