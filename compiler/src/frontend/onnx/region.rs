//! Regions: graphs of If, Loop and Scan that are decided or repeated when the model runs.
//!
//! While a region is built, its graph takes the place of the builder's, and the graphs around it wait. A value from around
//! becomes an input of the region, and a constant from there a constant of it.

use super::context::{Context, Named};
use super::proto::GraphProto;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::flow::constant_within;
use crate::graph::{Graph, GraphBuilder, TensorType, ValueId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A graph that waits for a region within it.
pub(super) struct Around {
    pub graph: GraphBuilder,
    pub unsigned: HashSet<ValueId>,
    pub traced: Vec<(String, ValueId)>,
    assumed: HashMap<ValueId, String>,
    /// Index of the region's scope.
    scope: usize,
    /// Values of this graph that are inputs of the region, with these, in the order of the inputs.
    captured: Vec<(ValueId, ValueId)>,
    /// Constants of this graph, with those of the region.
    constants: HashMap<ValueId, ValueId>,
}

/// A value's type, and whether it is uint8 in the file.
pub(super) type Typed = (TensorType, bool);

/// A region that is built, before it is known which values its node passes to it.
pub(super) struct Region {
    graph: GraphBuilder,
    /// Values of the graph around it that are its inputs, with these.
    captured: Vec<(ValueId, ValueId)>,
    /// Types of what it returns, and whether it is uint8 in the file.
    pub results: Vec<Typed>,
    /// For each result, whether it is a constant that is true.
    pub is_true: Vec<bool>,
}

impl Context<'_> {
    /// The depth of the graph that the names of a scope belong to; 0 is the outermost graph.
    pub fn depth_of(&self, scope: usize) -> usize {
        self.around.iter().filter(|around| around.scope <= scope).count()
    }

    /// The graph at a depth, and its values that are uint8 in the file.
    pub fn graph_at(&self, depth: usize) -> (&GraphBuilder, &HashSet<ValueId>) {
        match self.around.get(depth) {
            Some(around) => (&around.graph, &around.unsigned),
            None => (&self.net.graph, &self.unsigned),
        }
    }

    /// The outermost graph.
    pub fn outermost(&self) -> &GraphBuilder {
        self.graph_at(0).0
    }

    /// The value of the outermost graph that a value of the graph at a depth comes from.
    pub fn origin(&self, v: ValueId, depth: usize) -> Option<ValueId> {
        let outer = |v: ValueId, around: &Around| Some(around.captured.iter().find(|(_, inner)| *inner == v)?.0);
        self.around[..depth.min(self.around.len())].iter().rev().try_fold(v, outer)
    }

    /// The value in the region that is built of a value of the graph at a depth.
    pub fn captured(&mut self, v: ValueId, depth: usize) -> ValueId {
        (depth..self.around.len()).fold(v, |v, depth| self.capture(v, depth))
    }

    /// The value of a graph in the region directly within it.
    fn capture(&mut self, v: ValueId, depth: usize) -> ValueId {
        let (outer, inner) = self.around.split_at_mut(depth + 1);
        let around = &mut outer[depth];
        let known = around.captured.iter().find(|(own, _)| *own == v).map(|(_, inner)| *inner);
        if let Some(known) = known.or_else(|| around.constants.get(&v).copied()) {
            return known;
        }
        let (graph, unsigned) = match inner.first_mut() {
            Some(inner) => (&mut inner.graph, &mut inner.unsigned),
            None => (&mut self.net.graph, &mut self.unsigned),
        };
        let made = match constant_within(&around.graph, graph, v) {
            Some(made) => {
                around.constants.insert(v, made);
                made
            }
            None => {
                let named = || around.graph.def(v).map(|node| node.name.as_str());
                let name = around.graph.input_name(v).or_else(named).unwrap_or_default();
                let input = graph.free_input(name, around.graph.ty(v).clone());
                around.captured.push((v, input));
                input
            }
        };
        if around.unsigned.contains(&v) {
            unsigned.insert(made);
        }
        made
    }

    /// Builds a region from a node's graph. `arguments` defines the names of the graph's inputs, with which its own inputs
    /// begin.
    pub fn region(
        &mut self,
        graph: &GraphProto,
        label: &str,
        arguments: impl FnOnce(&mut Self) -> Result<(), Reason>,
    ) -> Result<Region, Reason> {
        let name = if graph.name.is_empty() { "region" } else { &graph.name };
        let outer = std::mem::replace(&mut self.net.graph, GraphBuilder::new(name));
        self.around.push(Around {
            graph: outer,
            unsigned: std::mem::take(&mut self.unsigned),
            traced: std::mem::take(&mut self.traced),
            assumed: std::mem::take(&mut self.assumed),
            scope: self.scopes.len(),
            captured: Vec::new(),
            constants: HashMap::new(),
        });
        let built = self.enter_branch(graph, label).and_then(|()| arguments(self)).and_then(|()| self.inside(graph));
        let results = built.and_then(|()| self.results(graph, label));
        // Also after an error: the node can then be imported in another way.
        let Some(around) = self.around.pop() else { return Err("its region has no end".into()) };
        self.scopes.truncate(around.scope);
        let inner = std::mem::replace(&mut self.net.graph, around.graph);
        (self.unsigned, self.traced, self.assumed) = (around.unsigned, around.traced, around.assumed);
        self.begin(label);
        let (results, is_true) = results?;
        Ok(Region { graph: inner, captured: around.captured, results, is_true })
    }

    /// Makes the outputs of a node's graph those of the region.
    fn results(&mut self, graph: &GraphProto, label: &str) -> Result<(Vec<Typed>, Vec<bool>), Reason> {
        let (mut results, mut is_true) = (Vec::new(), Vec::new());
        self.begin(label);
        for info in &graph.output {
            let v = self.value(&info.name)?;
            results.push((self.net.ty(v).clone(), self.unsigned.contains(&v)));
            is_true.push(self.known(&info.name).is_some_and(|t| t.as_slice::<bool>().is_ok_and(|v| v == [true])));
            self.net.graph.output(&info.name, v);
        }
        Ok((results, is_true))
    }

    /// Defines a name as an input of the region that is built.
    pub fn argument(&mut self, name: &str, ty: TensorType, is_unsigned: bool) -> Result<ValueId, Reason> {
        let v = self.net.graph.free_input(name, ty);
        if is_unsigned {
            self.unsigned.insert(v);
        }
        self.define(name, Named::Value(v))?;
        Ok(v)
    }
}

/// Graphs of regions that get the same values from around, and these values. Inputs that they have already come first.
pub(super) fn joined<const N: usize>(
    mut regions: [Region; N],
    around: &GraphBuilder,
) -> Result<([Arc<Graph>; N], Vec<ValueId>), Reason> {
    let mut all: Vec<ValueId> = Vec::new();
    for (v, _) in regions.iter().flat_map(|region| &region.captured) {
        if !all.contains(v) {
            all.push(*v);
        }
    }
    for region in &mut regions {
        let mut order = region.graph.input_values();
        order.retain(|input| region.captured.iter().all(|(_, inner)| inner != input));
        for v in &all {
            let own = region.captured.iter().find(|(outer, _)| outer == v).map(|(_, inner)| *inner);
            order.push(own.unwrap_or_else(|| region.graph.free_input("unused", around.ty(*v).clone())));
        }
        region.graph.order_inputs(&order);
    }
    let mut graphs = Vec::new();
    for region in regions {
        graphs.push(Arc::new(region.graph.finish()?));
    }
    let graphs = <[_; N]>::try_from(graphs).map_err(|_| "its regions are not complete")?;
    Ok((graphs, all))
}
