//! IF and WHILE, whose graphs are other subgraphs of the file.

use crate::frontend::reason::Reason;
use crate::frontend::tflite::NodeContext;
use crate::graph::op::{self, Loop};
use crate::graph::{DType, GraphBuilder, Op, Tensor, TensorType, ValueId};
use std::sync::Arc;

/// The number of a subgraph in a field of the options.
fn subgraph(n: &NodeContext, field: usize) -> Result<usize, Reason> {
    let options = n.op.options.ok_or("it has no options")?;
    usize::try_from(options.i32(field)?).map_err(|_| "its subgraph must not be negative".into())
}

fn operands(n: &mut NodeContext) -> Result<Vec<ValueId>, Reason> {
    (0..n.op.inputs.len()).map(|i| n.input(i)).collect()
}

fn outputs(n: &mut NodeContext, values: &[ValueId]) -> Result<(), Reason> {
    if values.len() != n.op.outputs.len() {
        return Err(format!("it has {} outputs, but its subgraphs have {}", n.op.outputs.len(), values.len()).into());
    }
    values.iter().enumerate().try_for_each(|(i, &v)| n.output_at(i, v))
}

/// A region that computes a subgraph of these values, and those of them that it gets; constants are its own.
fn region(
    n: &mut NodeContext,
    at: usize,
    values: &[ValueId],
) -> Result<(Arc<crate::graph::Graph>, Vec<ValueId>), Reason> {
    let label = n.name().to_owned();
    let (graph, passed) = n.cx.region(&label, |cx, outer| {
        let mut passed = Vec::new();
        let own: Vec<ValueId> = values.iter().map(|&v| cx.net.graph.passed(outer, v, &mut passed)).collect();
        let results = cx.inline(at, &own, &label)?;
        for (i, v) in results.into_iter().enumerate() {
            cx.net.graph.output(&format!("result{i}"), v);
        }
        Ok(passed)
    })?;
    Ok((Arc::new(graph.finish()?), passed))
}

pub(super) fn branch(n: &mut NodeContext) -> Result<(), Reason> {
    let (then, otherwise) = (subgraph(n, 0)?, subgraph(n, 1)?);
    let all = operands(n)?;
    let (&condition, values) = all.split_first().ok_or("it has no condition")?;
    let label = n.name().to_owned();
    if let Some(known) = n.constant_of(condition).cloned() {
        let holds = matches!(known.as_slice::<bool>(), Ok([true]));
        let results = n.cx.inline(if holds { then } else { otherwise }, values, &label)?;
        return outputs(n, &results);
    }
    let condition = n.truth(condition)?;
    let ((then, passed), (otherwise, _)) = (region(n, then, values)?, region(n, otherwise, values)?);
    let operands = [&[condition], passed.as_slice()].concat();
    let results = n.cx.net.graph.node_outputs(&label, Op::If(op::If { then, otherwise }), &operands)?;
    outputs(n, &results)
}

pub(super) fn repeated(n: &mut NodeContext) -> Result<(), Reason> {
    let (condition, body) = (subgraph(n, 0)?, subgraph(n, 1)?);
    let values = operands(n)?;
    let label = n.name().to_owned();
    let first = n.cx.inline(condition, &values, &label)?;
    let &[first] = first.as_slice() else { return Err("its condition's subgraph must have one output".into()) };
    let starts = n.truth(first)?;
    // What no step changes is not carried, so that weights are constants of the region.
    let kept = n.cx.kept(body)?;
    let (mut carried, mut captured) = (Vec::new(), Vec::new());
    for (i, &v) in values.iter().enumerate() {
        if kept.get(i) == Some(&true) { captured.push(v) } else { carried.push(v) }
    }
    let (graph, passed) = n.cx.region(&label, |cx, outer| {
        cx.net.graph.free_input("step", TensorType::new(DType::I64, &[]));
        let input = |graph: &mut GraphBuilder, v: ValueId| graph.free_input("carried", outer.ty(v).clone());
        let own: Vec<ValueId> = carried.iter().map(|&v| input(&mut cx.net.graph, v)).collect();
        let mut passed = Vec::new();
        let inside: Vec<ValueId> = captured.iter().map(|&v| cx.net.graph.passed(outer, v, &mut passed)).collect();
        let (mut own, mut inside) = (own.into_iter(), inside.into_iter());
        let is_kept = |i: usize| kept.get(i) == Some(&true);
        let now: Vec<ValueId> =
            (0..values.len()).filter_map(|i| if is_kept(i) { inside.next() } else { own.next() }).collect();
        let next = cx.inline(body, &now, &label)?;
        let goes_on = cx.inline(condition, &next, &label)?;
        let &[goes_on] = goes_on.as_slice() else { return Err("its condition's subgraph must have one output".into()) };
        let goes_on = cx.net.reshape("goes_on", goes_on, &[])?;
        cx.net.graph.output("goes_on", goes_on);
        for (i, v) in next.into_iter().enumerate().filter(|(i, _)| !is_kept(*i)) {
            cx.net.graph.output(&format!("next{i}"), v);
        }
        Ok(passed)
    })?;
    let limit = n.made("limit", Tensor::scalar(i64::MAX));
    let count = carried.len();
    let operands: Vec<ValueId> = [limit, starts].into_iter().chain(carried).chain(passed).collect();
    let op = Loop { body: Arc::new(graph.finish()?), carried: count, collects: 0 };
    let mut last = n.cx.net.graph.node_outputs(&label, Op::Loop(op), &operands)?.into_iter();
    let result = |(i, &v): (usize, &ValueId)| if kept.get(i) == Some(&true) { Some(v) } else { last.next() };
    let results: Vec<ValueId> = values.iter().enumerate().filter_map(result).collect();
    outputs(n, &results)
}
