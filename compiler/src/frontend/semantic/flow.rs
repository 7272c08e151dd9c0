//! Branches and loops whose regions are graphs of a file, and loops that decompositions make: recurrences over many steps.

use super::SemanticBuilder;
use crate::frontend::reason::Reason;
use crate::graph::op::{If, Loop, Op};
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

/// The state of an import, whose builder builds regions in place of its graph.
pub trait Importer {
    fn net(&mut self) -> &mut SemanticBuilder;
}

/// Imports a graph of the file for these values of its inputs, and returns its outputs.
pub type Inline<'f, C> = &'f mut dyn FnMut(&mut C, &[ValueId]) -> Result<Vec<ValueId>, Reason>;

/// Builds a region of the graph.
fn region<C: Importer, T>(
    cx: &mut C,
    label: &str,
    build: impl FnOnce(&mut C, &GraphBuilder) -> Result<T, Reason>,
) -> Result<(GraphBuilder, T), Reason> {
    let outer = std::mem::replace(&mut cx.net().graph, GraphBuilder::new(label));
    let built = build(cx, &outer);
    let inner = std::mem::replace(&mut cx.net().graph, outer);
    Ok((inner, built?))
}

/// What one of two graphs makes of the values: the first if the condition is true.
pub fn branch<C: Importer>(
    cx: &mut C,
    condition: ValueId,
    values: &[ValueId],
    [then, otherwise]: [Inline<C>; 2],
) -> Result<Vec<ValueId>, Reason> {
    let label = cx.net().name().to_owned();
    if let Some(known) = cx.net().constant_of(condition).cloned() {
        let holds = known.doubles().first().is_some_and(|x| *x != 0.0);
        return if holds { then(cx, values) } else { otherwise(cx, values) };
    }
    let condition = cx.net().truth(condition)?;
    let mut regions = Vec::new();
    for inline in [then, otherwise] {
        let (graph, passed) = region(cx, &label, |cx, outer| {
            let mut passed = Vec::new();
            let own: Vec<ValueId> = values.iter().map(|&v| cx.net().graph.passed(outer, v, &mut passed)).collect();
            for (i, v) in inline(cx, &own)?.into_iter().enumerate() {
                cx.net().graph.output(&format!("result{i}"), v);
            }
            Ok(passed)
        })?;
        regions.push((Arc::new(graph.finish()?), passed));
    }
    let (Some((otherwise, _)), Some((then, passed))) = (regions.pop(), regions.pop()) else {
        return Err("its regions are not complete".into());
    };
    let operands = [&[condition], passed.as_slice()].concat();
    Ok(cx.net().graph.node_outputs(&label, Op::If(If { then, otherwise }), &operands)?)
}

/// Builds a while loop: `body` computes the next values while `condition` computes true from the present ones. `kept` marks
/// values that the body does not change; they are not carried, so that weights are constants of the region.
pub fn repeated<C: Importer>(
    cx: &mut C,
    values: &[ValueId],
    kept: &[bool],
    condition: Inline<C>,
    body: Inline<C>,
) -> Result<Vec<ValueId>, Reason> {
    let label = cx.net().name().to_owned();
    let one = |list: Vec<ValueId>| match list.as_slice() {
        &[one] => Ok(one),
        _ => Err(Reason("its condition's graph must have one output".into())),
    };
    let first = one(condition(cx, values)?)?;
    let starts = cx.net().truth(first)?;
    let is_kept = |i: usize| kept.get(i) == Some(&true);
    let (mut carried, mut captured) = (Vec::new(), Vec::new());
    for (i, &v) in values.iter().enumerate() {
        if is_kept(i) { captured.push(v) } else { carried.push(v) }
    }
    let (graph, passed) = region(cx, &label, |cx, outer| {
        cx.net().graph.free_input("step", TensorType::new(DType::I64, &[]));
        let input = |graph: &mut GraphBuilder, v: ValueId| graph.free_input("carried", outer.ty(v).clone());
        let own: Vec<ValueId> = carried.iter().map(|&v| input(&mut cx.net().graph, v)).collect();
        let mut passed = Vec::new();
        let inside: Vec<ValueId> = captured.iter().map(|&v| cx.net().graph.passed(outer, v, &mut passed)).collect();
        let (mut own, mut inside) = (own.into_iter(), inside.into_iter());
        let now: Vec<ValueId> =
            (0..values.len()).filter_map(|i| if is_kept(i) { inside.next() } else { own.next() }).collect();
        let next = body(cx, &now)?;
        let goes_on = one(condition(cx, &next)?)?;
        let goes_on = cx.net().reshape("goes_on", goes_on, &[])?;
        cx.net().graph.output("goes_on", goes_on);
        for (i, v) in next.into_iter().enumerate().filter(|(i, _)| !is_kept(*i)) {
            cx.net().graph.output(&format!("next{i}"), v);
        }
        Ok(passed)
    })?;
    let limit = cx.net().made("limit", Tensor::scalar(i64::MAX));
    let count = carried.len();
    let operands: Vec<ValueId> = [limit, starts].into_iter().chain(carried).chain(passed).collect();
    let op = Loop { body: Arc::new(graph.finish()?), carried: count, collects: 0 };
    let mut last = cx.net().graph.node_outputs(&label, Op::Loop(op), &operands)?.into_iter();
    let result = |(i, &v): (usize, &ValueId)| if is_kept(i) { Some(v) } else { last.next() };
    Ok(values.iter().enumerate().filter_map(result).collect())
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
