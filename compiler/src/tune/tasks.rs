//! The layers of a partition, each once.

use super::request::TuneError;
use super::task::Task;
use crate::graph::{Graph, ValueId};
use crate::partition::window::{PlannedLayer, Surroundings, Window};
use crate::partition::{Code, Partition};
use indexmap::IndexMap;
use tilewright_hw::HwConfig;

/// A program of the accelerator, with plans that change.
pub struct Program<'a> {
    /// What its layers refer to.
    pub around: Surroundings<'a>,
    /// The layers with their plans.
    pub layers: Vec<PlannedLayer>,
    /// Values that the host reads.
    pub outputs: &'a [ValueId],
    /// Whether the order of instructions is a decision.
    pub reorder: bool,
}

/// Returns the accelerator's programs of a partition.
pub fn programs<'a>(graph: &'a Graph, config: &'a HwConfig, partition: &'a Partition) -> Vec<Program<'a>> {
    let program = |region: &'a crate::partition::Region| {
        let Code::Accel(region) = &region.code else { return None };
        let source = &region.source;
        let around = Surroundings { graph, config, roots: &source.roots, seen: &source.seen };
        let (layers, reorder) = (source.layers.clone(), source.reorder);
        Some(Program { around, layers, outputs: &source.outputs, reorder })
    };
    partition.regions.iter().filter_map(program).collect()
}

/// Returns a task for each different layer, or only for the layer that contains the node `only`. Layers with the same
/// workload next to the same neighbors share a task.
///
/// # Errors
/// There is no layer, or none of that name.
pub fn tasks(programs: &[Program], only: Option<&str>, seed: u64, config: &HwConfig) -> Result<Vec<Task>, TuneError> {
    let mut found: IndexMap<[String; 2], Task> = IndexMap::new();
    let mut names = Vec::new();
    for (p, program) in programs.iter().enumerate() {
        let Program { around, layers, .. } = program;
        for (at, (layer, _)) in layers.iter().enumerate() {
            names.push(layer.name.clone());
            let holds = |name: &str| layer.nodes.iter().any(|n| around.graph.node(*n).name == name);
            if only.is_some_and(|only| only != layer.name && !holds(only)) {
                continue;
            }
            let window = Window::around(at, layers.len(), |i| layers[i].clone());
            let workloads = [window.layer(around), window.near(around), window.context(around)];
            let key = [workloads[0].hash.clone(), workloads[1].hash.clone()];
            let task = found.entry(key).or_insert_with(|| Task::new(window, Vec::new(), workloads, seed, config));
            task.places.push([p, at]);
        }
    }
    match (names.is_empty(), only) {
        (true, _) => Err(TuneError::Nothing),
        (false, Some(only)) if found.is_empty() => Err(TuneError::NoLayer { layer: only.into(), there: names }),
        _ => Ok(found.into_values().collect()),
    }
}
