//! The result of the partition: a graph in regions.

use super::explain::Explanation;
use crate::codegen::accel::{self, Aliases, BuildError, BuiltLayer, Constants, Layer, Planned, View};
use crate::cost::Clock;
use crate::graph::{Graph, NodeId, ValueId};
use crate::records::Replay;
use crate::schedule::file::File;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tilewright_driver::{AccelProgram, Order, Recording, Search};
use tilewright_hw::HwConfig;
use tilewright_runtime::artifact::{InsnLayers, LayerEnd, Packing, Place, TensorPlace};

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
            Code::Cpu | Code::Own => 0,
            Code::Accel(accel) => accel.program.insn_count(),
        }
    }

    /// Where the nodes run.
    pub fn place(&self) -> Place {
        match self.code {
            Code::Cpu | Code::Own => Place::Cpu,
            Code::Accel(_) => Place::Accel,
        }
    }
}

/// How a region runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Code {
    /// On the CPU, with code from a backend.
    Cpu,
    /// A node that is a step of its own: a function that the program has registered, or control flow. The region has this
    /// node only.
    Own,
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
    /// The program's layers, in the order in which they compute.
    pub layers: Vec<LayerEnd>,
    /// The layer of each instruction.
    pub insn_layers: InsnLayers,
    /// What the tiles of each layer compute.
    pub schedules: Vec<BuiltLayer>,
    /// What the program was built from.
    pub(crate) source: RegionSource,
    /// The program, before the order of its instructions was decided.
    pub(super) recording: Recording,
    /// Cycles until each layer and all earlier ones are done, if the program was timed.
    pub(super) done: Option<Vec<u64>>,
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
    /// Whether the order of instructions is a decision.
    pub reorder: bool,
}

impl RegionSource {
    /// Builds the program, in the order of its layers.
    pub fn build(self, graph: &Graph, config: &HwConfig) -> Result<AccelRegion, BuildError> {
        let root = |v: ValueId| self.roots.get(&v).copied().unwrap_or(v);
        let seen = |v: ValueId| self.seen.get(&v).copied();
        let aliases = Aliases { root: &root, view: &seen };
        let built = accel::build(graph, config, &self.layers, &self.outputs, aliases, Constants::Given)?;
        let pack = |list: Vec<(ValueId, View)>| list.into_iter().map(|(v, view)| (v, view.packing(config))).collect();
        let (inputs, outputs) = (pack(built.inputs), pack(built.outputs));
        let accel::Built { recording, tensors, layers, schedules, .. } = built;
        let (program, insn_layers) = accel::ordered(&recording, &layers, &Order::of_program(recording.len()))?;
        Ok(AccelRegion {
            program,
            inputs,
            outputs,
            tensors,
            layers,
            insn_layers,
            schedules,
            source: self,
            recording,
            done: None,
        })
    }
}

impl AccelRegion {
    /// Uses the order of instructions that takes the fewest cycles, of the present one and those that `searches` find.
    pub(super) fn order(&mut self, clock: &dyn Clock, searches: &[Search]) {
        if !self.source.reorder {
            return;
        }
        if self.done.is_none() {
            self.done = clock.cycles(&self.program, &self.insn_layers);
        }
        for &search in searches {
            let order = self.recording.search(search);
            let Ok((program, insn_layers)) = accel::ordered(&self.recording, &self.layers, &order) else { continue };
            let Some(done) = clock.cycles(&program, &insn_layers) else { continue };
            if self.done.as_ref().is_some_and(|least| done.last() < least.last()) {
                (self.program, self.insn_layers, self.done) = (program, insn_layers, Some(done));
            }
        }
    }

    /// Builds the program again, with the schedules that `given` returns for the names of layers. With a clock, the
    /// order of its instructions is decided again, if it was before.
    ///
    /// # Errors
    /// The layer whose schedule cannot become instructions, with the reason.
    pub fn reschedule(
        &mut self,
        graph: &Graph,
        config: &HwConfig,
        given: &dyn Fn(&str) -> Option<Arc<File>>,
        clock: Option<&dyn Clock>,
    ) -> Result<(), BuildError> {
        let mut source = self.source.clone();
        for (layer, _) in &mut source.layers {
            layer.given = given(&layer.name);
        }
        if source.layers.iter().any(|(layer, _)| layer.given.is_some()) {
            *self = source.build(graph, config)?;
            if let Some(clock) = clock {
                self.order(clock, &Search::ALL);
            }
        }
        Ok(())
    }
}
