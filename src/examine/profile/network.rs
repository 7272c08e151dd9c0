//! The model's graph with a position for each node in a drawing.

use std::collections::{HashMap, HashSet};

use tilewright_compiler::graph::{Graph, NodeId};
use tilewright_runtime::artifact::Artifact;

use crate::examine::layers::Layer;

/// A node of the model, as the manifest lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Index in the manifest's list of nodes.
    pub index: usize,
    /// Indices of the nodes that it reads.
    pub reads: Vec<usize>,
    /// Index of its layer.
    pub layer: Option<usize>,
    /// Length of the longest path from an input, in nodes.
    pub depth: usize,
    /// Lane of the drawing; nodes of the same depth are in different lanes.
    pub lane: usize,
}

/// The nodes in the order of the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The nodes.
    pub nodes: Vec<Node>,
}

impl Network {
    /// Positions the nodes of a compiled graph. A node goes after the nodes that it reads, in its first operand's lane
    /// if that is free, else in the next free one.
    pub(super) fn of(graph: &Graph, nodes: &[NodeId], artifact: &Artifact, layers: &[Layer]) -> Network {
        let index_of: HashMap<NodeId, usize> = nodes.iter().enumerate().map(|(index, id)| (*id, index)).collect();
        let mut layer_of = vec![None; artifact.manifest.nodes.len()];
        for (at, layer) in layers.iter().enumerate() {
            layer.nodes.iter().for_each(|node| layer_of[*node] = Some(at));
        }
        let mut found: Vec<Node> = Vec::with_capacity(nodes.len());
        let mut taken: HashSet<(usize, usize)> = HashSet::new();
        for (index, id) in nodes.iter().enumerate() {
            let read = graph.node(*id).inputs.iter().filter_map(|value| graph.def_node(*value));
            // Nodes come after those that they read.
            let mut reads: Vec<usize> =
                read.filter_map(|(id, _)| index_of.get(&id).copied()).filter(|read| *read < index).collect();
            reads.dedup();
            let depth = reads.iter().map(|read| found[*read].depth + 1).max().unwrap_or(0);
            let wanted = reads.iter().map(|read| found[*read].lane).min().unwrap_or(0);
            let lane = (wanted..).find(|lane| !taken.contains(&(depth, *lane))).unwrap_or(wanted);
            taken.insert((depth, lane));
            found.push(Node { index, reads, layer: layer_of.get(index).copied().flatten(), depth, lane });
        }
        Network { nodes: found }
    }
}
