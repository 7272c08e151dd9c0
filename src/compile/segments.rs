//! Nodes of one place in runs as long as possible, so that data cross between places seldom.

use std::collections::BTreeSet;

use tilewright_compiler::graph::{Graph, NodeId, Op};
use tilewright_runtime::artifact::Place;

use super::Placement;

/// Nodes that run in one place one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Where.
    pub place: Place,
    /// Which, in topological order.
    pub nodes: Vec<NodeId>,
}

/// Splits the graph into segments in an order in which every operand is there when it is read.
///
/// Each segment takes all nodes of its place that it can reach; of the two ways to begin, the one with fewer segments.
pub fn segments(graph: &Graph, placement: &Placement) -> Vec<Segment> {
    let [a, b] = [Place::Cpu, Place::Accel].map(|first| from(graph, placement, first));
    if b.len() < a.len() { b } else { a }
}

fn from(graph: &Graph, placement: &Placement, first: Place) -> Vec<Segment> {
    let mut waiting: Vec<NodeId> = placement.keys().copied().collect();
    let mut waits: BTreeSet<NodeId> = waiting.iter().copied().collect();
    let mut place = first;
    let mut segments = Vec::new();
    while !waiting.is_empty() {
        let mut nodes = Vec::new();
        // Nodes are numbered in topological order, so one pass finds all that this segment reaches.
        waiting.retain(|id| {
            let ready = graph.node(*id).inputs.iter().all(|value| match graph.def_node(*value) {
                Some((def, node)) => matches!(node.op, Op::Constant(_)) || !waits.contains(&def),
                None => true,
            });
            let taken = ready && placement[id].0 == place;
            if taken {
                waits.remove(id);
                nodes.push(*id);
            }
            !taken
        });
        if !nodes.is_empty() {
            segments.push(Segment { place, nodes });
        }
        place = match place {
            Place::Cpu => Place::Accel,
            Place::Accel => Place::Cpu,
        };
    }
    segments
}
