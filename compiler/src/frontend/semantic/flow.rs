//! Loops that decompositions make: recurrences over many steps.

use super::SemanticBuilder;
use crate::frontend::reason::Reason;
use crate::graph::op::{Loop, Op};
use crate::graph::{DType, GraphBuilder, Tensor, TensorType, ValueId};
use std::sync::Arc;

/// A constant of a graph, or a dequantized constant, which marks weights, as a value of a region within it.
pub fn constant_within(outer: &GraphBuilder, inner: &mut GraphBuilder, v: ValueId) -> Option<ValueId> {
    let node = outer.def(v)?;
    if let Op::Constant(constant) = &node.op {
        return Some(inner.constant(&node.name, constant.value.clone()));
    }
    let weight = node.inputs.first().filter(|_| matches!(node.op, Op::Dequantize(_)));
    let weight = outer.constant_of(*weight?)?.clone();
    let weight = inner.constant(&format!("{}/constant", node.name), weight);
    inner.node(&node.name, node.op.clone(), &[weight]).ok()
}

impl GraphBuilder {
    /// A value of the graph around this one: a constant, or an input, which is added to what is passed.
    pub(in crate::frontend) fn passed(
        &mut self,
        outer: &GraphBuilder,
        v: ValueId,
        passed: &mut Vec<ValueId>,
    ) -> ValueId {
        constant_within(outer, self, v).unwrap_or_else(|| {
            passed.push(v);
            self.free_input("value", outer.ty(v).clone())
        })
    }
}

/// What a step of a loop makes.
pub struct Step {
    /// The carried values for the next step.
    pub carried: Vec<ValueId>,
    /// Values that are collected.
    pub collected: Vec<ValueId>,
}

impl SemanticBuilder {
    /// A condition as a truth value without dimensions.
    pub fn truth(&mut self, v: ValueId) -> Result<ValueId, Reason> {
        let ty = self.ty(v).clone();
        if ty.dtype != DType::Bool || ty.element_count() != Some(1) {
            return Err(format!("its condition must be one truth value, found {ty}").into());
        }
        self.reshape("condition", v, &[])
    }

    /// A loop of `steps` steps. `body` builds a step from its number (one i64), the carried values, and `captured` as
    /// values of the region. Returns the last carried values, and then the collected ones of all steps, along a new first
    /// dimension.
    pub fn looped(
        &mut self,
        steps: usize,
        carried: &[ValueId],
        captured: &[ValueId],
        body: impl FnOnce(&mut SemanticBuilder, ValueId, &[ValueId], &[ValueId]) -> Result<Step, Reason>,
    ) -> Result<Vec<ValueId>, Reason> {
        let label = self.label("step");
        let mut outer = std::mem::replace(&mut self.graph, GraphBuilder::new(&label));
        let step = self.graph.free_input("step", TensorType::new(DType::I64, &[]));
        let input = |graph: &mut GraphBuilder, v: ValueId| graph.free_input("value", outer.ty(v).clone());
        let own: Vec<ValueId> = carried.iter().map(|&v| input(&mut self.graph, v)).collect();
        let mut passed = Vec::new();
        let inside: Vec<ValueId> = captured.iter().map(|&v| self.graph.passed(&outer, v, &mut passed)).collect();
        let built = body(self, step, &own, &inside);
        let goes_on = self.made("goes_on", Tensor::scalar(true));
        std::mem::swap(&mut self.graph, &mut outer);
        let (Step { carried: next, collected }, mut region) = (built?, outer);
        region.output("goes_on", goes_on);
        for (at, v) in next.iter().chain(&collected).enumerate() {
            region.output(&format!("result{at}"), *v);
        }
        let (carried_count, body) = (carried.len(), Arc::new(region.finish()?));
        let limit = self.made("limit", Tensor::scalar(i64::try_from(steps).unwrap_or(i64::MAX)));
        let starts = self.made("starts", Tensor::scalar(true));
        let operands: Vec<ValueId> = [limit, starts].into_iter().chain(carried.iter().copied()).chain(passed).collect();
        self.reserve_nodes(1)?;
        let op = Loop { body, carried: carried_count, collects: steps };
        let label = self.label("steps");
        Ok(self.graph.node_outputs(&label, Op::Loop(op), &operands)?)
    }
}
