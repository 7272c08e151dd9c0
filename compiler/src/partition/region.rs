//! A graph in regions.

use super::explain::Explanation;
use crate::graph::{NodeId, ValueId};
use std::collections::BTreeMap;
use tilewright_driver::AccelProgram;
use tilewright_runtime::artifact::{LayerEnd, Packing, Place, TensorPlace};

/// The graph in regions.
#[derive(Debug, Clone, PartialEq)]
pub struct Partition {
    /// Regions in an order in which every operand is there when it is read.
    pub regions: Vec<Region>,
    /// Each node but constants, in the graph's order.
    pub explanations: Vec<Explanation>,
}

impl Partition {
    /// Adds what passes say of nodes, by their names, to why these run on the CPU.
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
    /// Instructions of its program, if it has one.
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
    /// On the CPU, by whatever compiles it.
    Cpu,
    /// On the accelerator.
    Accel(Box<AccelRegion>),
}

/// A region's program and the values at its border, each with its place in the program's list.
#[derive(Debug, Clone, PartialEq)]
pub struct AccelRegion {
    /// The program.
    pub program: AccelProgram,
    /// Values that the host turns into the device's layout, in the order of the program's inputs. One value may be
    /// there twice, in two layouts.
    pub inputs: Vec<(ValueId, Packing)>,
    /// Values that the host turns back, in the order of the program's outputs.
    pub outputs: Vec<(ValueId, Packing)>,
    /// Where tensors lie in the program's memory, and when.
    pub tensors: Vec<TensorPlace>,
    /// The program's layers, in the order of their instructions.
    pub layers: Vec<LayerEnd>,
}
