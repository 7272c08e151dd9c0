//! The result of the partition: a graph in regions.

use super::explain::Explanation;
use crate::codegen::accel::LayerWorks;
use crate::graph::{NodeId, ValueId};
use std::collections::BTreeMap;
use tilewright_driver::AccelProgram;
use tilewright_runtime::artifact::{LayerEnd, Packing, Place, TensorPlace};

/// A graph in regions.
#[derive(Debug, Clone, PartialEq)]
pub struct Partition {
    /// Regions in an order in which every operand is computed before it is read.
    pub regions: Vec<Region>,
    /// An explanation for each node except constants, in the graph's order.
    pub explanations: Vec<Explanation>,
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
}
