//! The result of the partition: a graph in regions.

use super::explain::Explanation;
use crate::codegen::accel::{self, Aliases, BuildError, Constants, Layer, LayerWorks, Planned, View};
use crate::graph::{Graph, NodeId, ValueId};
use crate::records::Replay;
use crate::schedule::file::File;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tilewright_driver::AccelProgram;
use tilewright_hw::HwConfig;
use tilewright_runtime::artifact::{LayerEnd, Packing, Place, TensorPlace};

/// A graph in regions.
#[derive(Debug, Clone, PartialEq)]
pub struct Partition {
    /// Regions in an order in which every operand is computed before it is read.
    pub regions: Vec<Region>,
    /// An explanation for each node except constants, in the graph's order.
    pub explanations: Vec<Explanation>,
    /// How records were used.
    pub replay: Replay,
}

impl Partition {
    /// Adds the passes' notes on nodes (by node name) to the reasons why these nodes run on the CPU.
    pub fn tell(&mut self, notes: &BTreeMap<String, String>) {
        for e in self.explanations.iter_mut().filter(|e| e.place == Place::Cpu) {
            if let Some(note) = notes.get(&e.name) {
                e.why += &format!("; {note}");
            }
        }
    }
}

/// Nodes that run in one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// The nodes, in the graph's order.
    pub nodes: Vec<NodeId>,
    /// How they run.
    pub code: Code,
}

impl Region {
    /// Number of instructions of its program; 0 if it has none.
    pub(super) fn insns(&self) -> usize {
        match &self.code {
            Code::Cpu => 0,
            Code::Accel(accel) => accel.program.insn_count(),
        }
    }

    /// Where the nodes run.
    pub fn place(&self) -> Place {
        match self.code {
            Code::Cpu => Place::Cpu,
            Code::Accel(_) => Place::Accel,
        }
    }
}

/// How a region runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Code {
    /// On the CPU, with code from a backend.
    Cpu,
    /// On the accelerator.
    Accel(Box<AccelRegion>),
}

/// The program of a region, and the values at its border.
#[derive(Debug, Clone, PartialEq)]
pub struct AccelRegion {
    /// The program.
    pub program: AccelProgram,
    /// Values that the host converts to the device's layout, in the order of the program's inputs. A value can occur
    /// twice with different layouts.
    pub inputs: Vec<(ValueId, Packing)>,
    /// Values that the host converts back, in the order of the program's outputs.
    pub outputs: Vec<(ValueId, Packing)>,
    /// Places and lifetimes of tensors in the program's memory.
    pub tensors: Vec<TensorPlace>,
    /// The program's layers, in the order of their instructions.
    pub layers: Vec<LayerEnd>,
    /// What the tiles of each layer compute.
    pub works: Vec<LayerWorks>,
    /// What the program was built from.
    pub(crate) source: RegionSource,
}

/// What the program of a region is built from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RegionSource {
    /// The layers with their plans.
    pub layers: Vec<(Layer, Planned)>,
    /// Values that the host reads.
    pub outputs: Vec<ValueId>,
    /// For each alias, the value whose storage it shares.
    pub roots: HashMap<ValueId, ValueId>,
    /// Views of aliases that differ from those of their roots.
    pub seen: HashMap<ValueId, View>,
}

impl RegionSource {
    /// Builds the program.
    pub fn build(self, graph: &Graph, config: &HwConfig) -> Result<AccelRegion, BuildError> {
        let root = |v: ValueId| self.roots.get(&v).copied().unwrap_or(v);
        let seen = |v: ValueId| self.seen.get(&v).copied();
        let aliases = Aliases { root: &root, view: &seen };
        let built = accel::build(graph, config, &self.layers, &self.outputs, aliases, Constants::Given)?;
        let pack = |list: Vec<(ValueId, View)>| list.into_iter().map(|(v, view)| (v, view.packing(config))).collect();
        let (inputs, outputs) = (pack(built.inputs), pack(built.outputs));
        let accel::Built { program, tensors, layers, works, .. } = built;
        Ok(AccelRegion { program, inputs, outputs, tensors, layers, works, source: self })
    }
}

impl AccelRegion {
    /// Builds the program again, with the schedules that `given` returns for the names of layers.
    ///
    /// # Errors
    /// The layer whose schedule cannot become instructions, with the reason.
    pub fn reschedule(
        &mut self,
        graph: &Graph,
        config: &HwConfig,
        given: &dyn Fn(&str) -> Option<Arc<File>>,
    ) -> Result<(), BuildError> {
        let mut source = self.source.clone();
        for (layer, _) in &mut source.layers {
            layer.given = given(&layer.name);
        }
        if source.layers.iter().any(|(layer, _)| layer.given.is_some()) {
            *self = source.build(graph, config)?;
        }
        Ok(())
    }
}
