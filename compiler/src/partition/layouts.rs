//! Finds the choices for nodes, and the costs of choices and changes of layout.

use super::decide::{Costs, NodeChoice};
use super::{Offload, Options};
use crate::codegen::accel::{self, Layer, NodeRole, Operator, Planned, View, extract};
use crate::cost::CostOracle;
use crate::graph::op::Layout;
use crate::graph::{Graph, NodeId, Op, ValueId};
use std::collections::HashMap;
use std::rc::Rc;
use tilewright_hw::HwConfig;

/// A graph, with all data on which its choices depend.
pub(super) struct Layouts<'a> {
    graph: &'a Graph,
    config: &'a HwConfig,
    options: &'a Options,
    refused: &'a HashMap<NodeId, String>,
    oracle: &'a dyn CostOracle,
}

/// Views of values in device memory, real or assumed.
type Known<'a> = &'a dyn Fn(ValueId) -> Option<View>;

/// Inputs and output of a layer, with their views.
type Ends = (Vec<(ValueId, View)>, (ValueId, View));

impl<'a> Layouts<'a> {
    pub fn new(
        graph: &'a Graph,
        config: &'a HwConfig,
        options: &'a Options,
        refused: &'a HashMap<NodeId, String>,
        oracle: &'a dyn CostOracle,
    ) -> Layouts<'a> {
        Layouts { graph, config, options, refused, oracle }
    }

    /// Returns the choices for a node whose data have the views `lies`. The CPU is only a choice if the accelerator
    /// cannot compute the node.
    ///
    /// An operator that accepts any layout can also read its data in the layout of just one of them, or as images in
    /// either order.
    pub fn choices(&self, id: NodeId, lies: Known) -> Vec<NodeChoice> {
        let node = self.graph.node(id);
        let (mut found, mut seen) = (Vec::new(), Vec::new());
        let reason = match self.choice(id, lies, lies, &mut seen) {
            Ok(choice) => {
                found.extend(choice);
                String::new()
            }
            Err(reason) => reason,
        };
        if accel::layouts(&node.op) == Some(accel::LayoutFreedom::Any) {
            let image = |v: ValueId, layout| {
                let shape = self.graph.ty(v).shape().filter(|shape| shape.len() == 4)?;
                View::image(&shape, layout)
            };
            // Layers that read or write other layouts than the ones found so far.
            let mut add = |known: Known| {
                if let Ok(Some(layer @ NodeChoice::Layer(_))) = self.choice(id, known, lies, &mut seen) {
                    found.push(layer);
                }
            };
            for layout in [Layout::Nhwc, Layout::Nchw] {
                add(&|v| image(v, layout));
            }
            for &input in &node.inputs {
                add(&|v| lies(v).filter(|_| v == input));
            }
            add(&|_| None);
        }
        if found.is_empty() {
            found.push(NodeChoice::Cpu(reason));
        }
        found
    }

    /// Returns the choice for a node that is read as if values had the views `known`, although they have the views
    /// `lies`.
    ///
    /// `None` for a layer whose inputs and output are in `seen`: it is not planned again.
    fn choice(
        &self,
        id: NodeId,
        known: Known,
        lies: Known,
        seen: &mut Vec<Ends>,
    ) -> Result<Option<NodeChoice>, String> {
        match &self.graph.node(id).op {
            Op::Packed(op) => return Err(format!("a function of the program, {}", op.function)),
            op if op.is_own_step() => {
                return Err("the host decides what runs; its regions are placed on their own".into());
            }
            _ => {}
        }
        match (self.options.offload, self.refused.get(&id)) {
            (Offload::None, _) => return Err("nothing is offloaded".into()),
            (_, Some(reason)) => return Err(reason.clone()),
            _ => {}
        }
        match extract(self.graph, id, known, self.config.block() as usize) {
            NodeRole::Alias if lies(self.graph.node(id).inputs[0]).is_some() => Ok(Some(NodeChoice::Alias(None))),
            NodeRole::Alias => Err("its data are on the CPU".into()),
            NodeRole::Recast(view) => Ok(Some(NodeChoice::Alias(Some(view)))),
            NodeRole::Layer(layer, operator) => {
                let ends = (layer.inputs.clone(), layer.output);
                if seen.contains(&ends) {
                    return Ok(None);
                }
                seen.push(ends);
                let planned = plan_of(*layer, &operator, self.config, self.options, lies)?;
                Ok(Some(NodeChoice::Layer(Rc::new(planned))))
            }
            NodeRole::Refused(reason) => Err(reason),
        }
    }

    /// Describes for `--explain` the changes of layout before a layer.
    pub fn changes(&self, layer: &Layer, lies: Known) -> String {
        let mut text = String::new();
        for &(value, view) in &layer.inputs {
            if let Some(made) = lies(value).filter(|made| *made != view) {
                let us = (self.leave(value, made) + self.enter(value, view)) as f64 / 1e3;
                let name = self.graph.value_name(value);
                text += &format!("; the host changes the layout of {name}: {us:.1} us");
            }
        }
        text
    }

    fn dense_bytes(&self, value: ValueId) -> u64 {
        let ty = self.graph.ty(value);
        ty.element_count().unwrap_or(0) as u64 * ty.dtype.size_bytes() as u64
    }

    fn border_ns(&self, value: ValueId, view: View) -> u64 {
        self.oracle.border_ns(self.dense_bytes(value), view.layout(self.config).bytes() as u64)
    }
}

impl Costs for Layouts<'_> {
    fn layer(&self, layer: &Layer, planned: &Planned) -> u64 {
        self.oracle.accel_ns(self.oracle.accel_cycles(layer, planned))
    }

    fn cpu(&self, node: NodeId) -> u64 {
        self.oracle.cpu(self.graph, &[node]).map_or(0, |time| time.ns)
    }

    fn leave(&self, value: ValueId, view: View) -> u64 {
        self.border_ns(value, view)
    }

    fn enter(&self, value: ValueId, view: View) -> u64 {
        self.border_ns(value, view) + self.oracle.launch_ns()
    }
}

/// Plans a layer. If the host writes its input, the form that only the host can write is planned too, and the plan with
/// fewer estimated cycles is used.
fn plan_of(
    layer: Layer,
    operator: &Operator,
    config: &HwConfig,
    options: &Options,
    known: &dyn Fn(ValueId) -> Option<View>,
) -> Result<(Layer, Planned), String> {
    let plain = operator.plan(&layer, config, options.search_tiles);
    let from_host = layer.inputs.iter().all(|(value, _)| known(*value).is_none());
    let other = if options.search_tiles && from_host { operator.host_form(&layer, config) } else { None };
    let other = other.and_then(|(layer, operator)| operator.plan(&layer, config, true).ok().map(|plan| (layer, plan)));
    match (plain, other) {
        (Ok(plain), Some((other, planned))) if planned.cycles(&other, config) < plain.cycles(&layer, config) => {
            Ok((other, planned))
        }
        (Err(_), Some(other)) => Ok(other),
        (plain, _) => plain.map(|planned| (layer, planned)),
    }
}
