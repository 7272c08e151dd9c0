//! Removes unused nodes.

use super::{Pass, Patch, View};
use crate::graph::NodeId;

/// Removes unused nodes.
#[derive(Debug)]
pub struct DeadCode;

impl Pass for DeadCode {
    fn name(&self) -> &'static str {
        "dead_code"
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        let node = view.graph.node(at);
        let unused = node.outputs.iter().all(|&v| view.users(v).is_empty() && !view.graph.is_output(v));
        unused.then(|| Patch::new("unused").remove(at))
    }
}
