//! If, Loop and Scan.

use crate::frontend::onnx::body::check_outputs;
use crate::frontend::onnx::context::Named;
use crate::frontend::onnx::node::NodeContext;
use crate::frontend::onnx::proto::{GraphProto, ValueInfoProto};
use crate::frontend::onnx::region::{Typed, joined};
use crate::frontend::reason::Reason;
use crate::frontend::semantic::movement::{Range, sliced};
use crate::frontend::semantic::reasonable;
use crate::graph::op::{self, Binary, BinaryKind, Concat, Gather, MOST_STEPS, Transpose};
use crate::graph::{DType, Op, Tensor, TensorType, ValueId};

/// Most steps of a loop that is imported step by step.
const MOST_UNROLLED: i64 = 1024;

/// Imports the branch that the condition selects, or both if it is known at run time only.
pub(super) fn branch(n: &mut NodeContext) -> Result<(), Reason> {
    let graphs = [n.graph("else_branch"), n.graph("then_branch")];
    let missing = |name: &str| Reason(format!("its attribute `{name}` is missing"));
    let otherwise = graphs[0].ok_or_else(|| missing("else_branch"))?;
    let then = graphs[1].ok_or_else(|| missing("then_branch"))?;
    let label = n.name().to_owned();
    if let Some(condition) = n.known(0) {
        let holds = match condition.as_slice::<bool>() {
            Ok([one]) => *one,
            _ => return Err(format!("its condition must be one truth value, found {}", condition.ty()).into()),
        };
        return n.cx.branch(if holds { then } else { otherwise }, n.proto, &label);
    }
    let condition = n.input(0)?;
    let condition = n.truth(condition)?;
    [then, otherwise].into_iter().try_for_each(|graph| check_outputs(graph, n.proto))?;
    let mut build = |graph| {
        let built = n.cx.region(graph, &label, |_| Ok(()));
        // If the condition is known, the other branch is not imported.
        built.inspect_err(|_| n.cx.must_know(&n.proto.input[0]))
    };
    let regions = [build(then)?, build(otherwise)?];
    let types = |at: usize| regions[at].results.iter().map(|(ty, _)| ty.to_string()).collect::<Vec<_>>().join(", ");
    if regions[0].results != regions[1].results {
        n.cx.must_know(&n.proto.input[0]);
        let (one, other) = (types(0), types(1));
        return Err(format!(
            "its branches return {one} and {other}; make them return the same types, or the condition a constant"
        )
        .into());
    }
    let unsigned: Vec<bool> = regions[0].results.iter().map(|(_, unsigned)| *unsigned).collect();
    let ([then, otherwise], captured) = joined(regions, &n.cx.net.graph)?;
    let operands = [&[condition], captured.as_slice()].concat();
    let results = n.flow(Op::If(op::If { then, otherwise }), &operands)?;
    n.flow_outputs(&results, &unsigned)
}

/// The number of dimensions that a graph declares for one of its inputs.
fn declared_rank(graph: &GraphProto, i: usize) -> usize {
    let ty = graph.input.get(i).and_then(ValueInfoProto::tensor_type);
    ty.and_then(|ty| ty.shape.as_ref()).map_or(0, |shape| shape.dim.len())
}

/// One number with as many dimensions as a graph declares for its input.
fn of_rank(value: Tensor, rank: usize) -> Tensor {
    value.reshaped(&vec![1; rank]).unwrap_or(value)
}

pub(super) fn loop_(n: &mut NodeContext) -> Result<(), Reason> {
    let body = n.graph("body").ok_or("its attribute `body` is missing")?;
    let first = 2.min(n.proto.input.len());
    let initial = (first..n.proto.input.len()).map(|i| n.meaning(i)).collect::<Result<Vec<_>, _>>()?;
    let carried = initial.len();
    let (takes, returns) = (body.input.len(), body.output.len());
    if takes != carried + 2 || returns < carried + 1 {
        let reason = format!("its body takes {takes} values and returns {returns}, but it carries {carried}");
        return Err(reason.into());
    }
    let limit = if n.has_input(0) { n.known(0).map(|_| n.whole(0)).transpose()? } else { Some(i64::MAX) };
    let starts = match n.has_input(1).then(|| n.known(1)) {
        None => Some(true),
        Some(known) => known.map(|t| t.as_slice::<bool>().is_ok_and(|v| v == [true])),
    };
    let label = n.name().to_owned();
    // What the graph cannot compute in a step can be known if the steps are.
    let few = limit.filter(|limit| *limit <= MOST_UNROLLED).zip(starts);
    let few = few.map(|(limit, starts)| if starts { limit } else { 0 });
    let tensor = |meaning: &Named| if let Named::Value(v) = meaning { Some(*v) } else { None };
    let initial: Vec<ValueId> = match initial.iter().map(tensor).collect::<Option<_>>() {
        Some(values) => values,
        None => {
            let Some(steps) = few else {
                let unknown = if starts.is_none() { 1 } else { 0 };
                n.cx.must_know(n.proto.input.get(unknown).map_or("", String::as_str));
                return Err(format!(
                    "it carries a sequence or an optional value, so its limit must be a constant of at most {MOST_UNROLLED} \
                     steps, and its condition a constant"
                )
                .into());
            };
            return unrolled(n, body, initial, steps);
        }
    };
    let types: Vec<Typed> = initial.iter().map(|&v| (n.ty(v).clone(), n.unsigned(v))).collect();
    let built = n.cx.region(body, &label, |cx| {
        let step = cx.net.graph.free_input("step", TensorType::new(DType::I64, &[]));
        let shape = vec![1; declared_rank(body, 0)];
        let step = cx.net.reshape("step", step, &shape)?;
        cx.define(&body.input[0].name, Named::Value(step))?;
        // The body runs while the condition is true.
        cx.define(&body.input[1].name, Named::Constant(of_rank(Tensor::scalar(true), declared_rank(body, 1))))?;
        for (info, (ty, unsigned)) in body.input[2..].iter().zip(&types) {
            cx.argument(&info.name, ty.clone(), *unsigned)?;
        }
        Ok(())
    });
    let region = match (built, few) {
        (Ok(region), _) => region,
        (Err(_), Some(steps)) => {
            n.cx.inner.set(None);
            return unrolled(n, body, values(initial), steps);
        }
        (Err(reason), None) => return Err(reason),
    };
    let changed = region.results[1..=carried].iter().zip(&types).zip(&body.output[1..]);
    let changed = changed.into_iter().find(|((found, expected), _)| found != expected);
    let steps = limit.zip(starts).filter(|_| region.is_true[0]);
    if let Some((((found, _), (expected, _)), info)) = changed {
        // Sizes that differ from step to step are known if the steps are.
        if let Some(steps) = few {
            return unrolled(n, body, values(initial), steps);
        }
        n.cx.must_know(n.proto.input.first().map_or("", String::as_str));
        return Err(format!(
            "its carried value `{}` is {expected} before a step and {found} after it; sizes that change need a limit of at \
             most {MOST_UNROLLED} steps that is a constant",
            info.name
        )
        .into());
    }
    let collects = match steps {
        _ if returns == carried + 1 => 0,
        Some((limit, starts)) => usize::try_from(if starts { limit.max(0) } else { 0 }).unwrap_or(usize::MAX),
        None => {
            let unknown = if limit.is_none() { 0 } else { 1 };
            n.cx.must_know(n.proto.input.get(unknown).map_or("", String::as_str));
            return Err(
                "it collects values, whose number is known only at run time: the limit must be a constant, and its \
                        condition true"
                    .into(),
            );
        }
    };
    if collects as u64 > MOST_STEPS {
        return Err(format!("it takes {collects} steps; at most {MOST_STEPS} are supported").into());
    }
    let limit = if n.has_input(0) {
        let v = n.input(0)?;
        let v = n.cast("limit", v, DType::I64)?;
        n.reshape("limit/number", v, &[])?
    } else {
        n.made("limit", Tensor::scalar(i64::MAX))
    };
    let starts = if n.has_input(1) {
        let v = n.input(1)?;
        n.truth(v)?
    } else {
        n.made("starts", Tensor::scalar(true))
    };
    let unsigned: Vec<bool> = region.results[1..].iter().map(|(_, unsigned)| *unsigned).collect();
    let ([body], captured) = joined([region], &n.cx.net.graph)?;
    let operands: Vec<ValueId> = [limit, starts].into_iter().chain(initial).chain(captured).collect();
    let results = n.flow(Op::Loop(op::Loop { body, carried, collects }), &operands)?;
    n.flow_outputs(&results, &unsigned)
}

fn values(values: Vec<ValueId>) -> Vec<Named> {
    values.into_iter().map(Named::Value).collect()
}

/// Imports a graph of the node with these meanings of its inputs, and reads what it is asked for within it.
pub(super) fn within<T>(
    n: &mut NodeContext,
    body: &GraphProto,
    step: impl std::fmt::Display,
    inputs: impl IntoIterator<Item = Named>,
    read: impl FnOnce(&mut NodeContext) -> Result<T, Reason>,
) -> Result<T, Reason> {
    let label = n.name().to_owned();
    n.reserve_nodes(body.node.len())?;
    n.cx.enter_branch(body, &format!("{label}/{step}"))?;
    for (info, meaning) in body.input.iter().zip(inputs) {
        n.cx.define(&info.name, meaning)?;
    }
    n.cx.inside(body)?;
    let found = read(n);
    n.cx.scopes.pop();
    n.cx.begin(&label);
    found
}

/// Imports a loop step by step.
fn unrolled(n: &mut NodeContext, body: &GraphProto, mut carried: Vec<Named>, limit: i64) -> Result<(), Reason> {
    let mut collected: Vec<Vec<ValueId>> = vec![Vec::new(); body.output.len() - 1 - carried.len()];
    let (returned, rows) = body.output[1..].split_at(carried.len());
    for step in 0..limit {
        let number = Named::Constant(of_rank(Tensor::scalar(step), declared_rank(body, 0)));
        let goes_on = Named::Constant(of_rank(Tensor::scalar(true), declared_rank(body, 1)));
        let inputs = [number, goes_on].into_iter().chain(carried);
        let (goes_on, next, rows) = within(n, body, step, inputs, |n| {
            let goes_on = n.cx.known(&body.output[0].name);
            let carried = returned.iter().map(|info| n.cx.meaning(&info.name)).collect::<Result<Vec<_>, _>>()?;
            let rows = rows.iter().map(|info| n.cx.value(&info.name)).collect::<Result<Vec<_>, _>>()?;
            Ok((goes_on, carried, rows))
        })?;
        carried = next;
        for (all, row) in collected.iter_mut().zip(rows) {
            let shape = [&[1], n.shape(row)?.as_slice()].concat();
            let first = n.reshape("row", row, &shape)?;
            n.mark_like(first, row);
            all.push(first);
        }
        match goes_on.as_ref().map(Tensor::as_slice::<bool>) {
            Some(Ok([true])) => {}
            Some(Ok([false])) => break,
            _ => {
                return Err("it is imported step by step, so its condition must be known when it is imported".into());
            }
        }
    }
    for rows in collected {
        if rows.is_empty() {
            return Err("it collects values of no step, whose sizes are not known".into());
        }
        let all = n.node("collected", Concat { axis: 0 }, &rows)?;
        n.mark_like(all, rows[0]);
        carried.push(Named::Value(all));
    }
    n.output_meanings(carried)
}

pub(super) fn scan(n: &mut NodeContext) -> Result<(), Reason> {
    if n.opset() < 9 {
        return Err("its form in operator set 8 is not supported; convert the model to set 9 or later".into());
    }
    let body = n.graph("body").ok_or("its attribute `body` is missing")?;
    let count = n.int("num_scan_inputs").and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| (1..=n.proto.input.len()).contains(count));
    let count = count.ok_or("its attribute `num_scan_inputs` must be 1 to the number of its operands")?;
    let carried = n.proto.input.len() - count;
    let all = (0..n.proto.input.len()).map(|i| n.input(i)).collect::<Result<Vec<_>, _>>()?;
    let (initial, scanned) = all.split_at(carried);
    if body.input.len() != all.len() || body.output.len() < carried {
        return Err(format!("its body takes {} values, but it has {} operands", body.input.len(), all.len()).into());
    }
    let made = body.output.len() - carried;
    let [axes, backward] = ["scan_input_axes", "scan_input_directions"].map(|name| n.ints(name));
    let axes = numbers(axes, count, "scan_input_axes")?;
    let backward = numbers(backward, count, "scan_input_directions")?;
    let [out_axes, out_backward] = ["scan_output_axes", "scan_output_directions"].map(|name| n.ints(name));
    let out_axes = numbers(out_axes, made, "scan_output_axes")?;
    let out_backward = numbers(out_backward, made, "scan_output_directions")?;
    let mut places = Vec::new();
    for (&v, &axis) in scanned.iter().zip(&axes) {
        places.push(n.axis(axis, n.ty(v).rank())?);
    }
    let steps = n.shape(scanned[0])?[places[0]];
    for (&v, &axis) in scanned.iter().zip(&places) {
        let found = n.shape(v)?[axis];
        if found != steps {
            return Err(format!("its operands have {steps} and {found} elements to scan").into());
        }
    }
    let label = n.name().to_owned();
    let types: Vec<Typed> = initial.iter().map(|&v| (n.ty(v).clone(), n.unsigned(v))).collect();
    let depth = n.cx.around.len();
    let region = n.cx.region(body, &label, |cx| {
        let step = cx.net.graph.free_input("step", TensorType::new(DType::I64, &[]));
        for (info, (ty, unsigned)) in body.input.iter().zip(&types) {
            cx.argument(&info.name, ty.clone(), *unsigned)?;
        }
        for (i, (info, &v)) in body.input[carried..].iter().zip(scanned).enumerate() {
            let data = cx.captured(v, depth);
            let mut at = step;
            if backward[i] != 0 {
                let last = cx.net.made("last", Tensor::scalar(steps as i64 - 1));
                at = cx.net.node("backward", Binary { kind: BinaryKind::Sub }, &[last, step])?;
            }
            let element = cx.net.node("element", Gather { axis: places[i] }, &[data, at])?;
            if cx.unsigned.contains(&data) {
                cx.unsigned.insert(element);
            }
            cx.define(&info.name, Named::Value(element))?;
        }
        // The loop goes on until all are scanned.
        let goes_on = cx.net.made("goes_on", Tensor::scalar(true));
        cx.net.graph.output(&format!("{label}/goes_on"), goes_on);
        Ok(())
    })?;
    if let Some(((found, _), (expected, _))) = region.results.iter().zip(&types).find(|(found, own)| found != own) {
        return Err(format!("its carried value is {expected} before a step and {found} after it").into());
    }
    let unsigned: Vec<bool> = region.results.iter().map(|(_, unsigned)| *unsigned).collect();
    let ([body], captured) = joined([region], &n.cx.net.graph)?;
    let limit = n.made("limit", Tensor::scalar(steps as i64));
    let starts = n.made("starts", Tensor::scalar(true));
    let operands: Vec<ValueId> = [limit, starts].into_iter().chain(initial.iter().copied()).chain(captured).collect();
    let mut results = n.flow(Op::Loop(op::Loop { body, carried, collects: steps }), &operands)?;
    for (v, (&axis, &backward)) in results[carried..].iter_mut().zip(out_axes.iter().zip(&out_backward)) {
        let rank = n.ty(*v).rank();
        let axis = n.axis(axis, rank)?;
        if backward != 0 {
            let mut ranges = vec![Range::ALL; rank];
            ranges[0].step = -1;
            *v = sliced(&mut n.cx.net, "backward", *v, &ranges)?;
        }
        if axis != 0 {
            let mut perm: Vec<usize> = (1..rank).collect();
            perm.insert(axis, 0);
            *v = n.node("axis", Transpose { perm }, &[*v])?;
        }
    }
    n.flow_outputs(&results, &unsigned)
}

/// One number for each of `count` values: those that are given, or zeros.
fn numbers(given: Option<&[i64]>, count: usize, name: &str) -> Result<Vec<i64>, Reason> {
    match given {
        None => Ok(vec![0; count]),
        Some(list) if list.len() == count => Ok(list.to_vec()),
        Some(list) => Err(format!("its attribute `{name}` must have {count} numbers, found {}", list.len()).into()),
    }
}

impl NodeContext<'_, '_> {
    /// Adds a node with regions.
    fn flow(&mut self, op: Op, operands: &[ValueId]) -> Result<Vec<ValueId>, Reason> {
        self.reserve_nodes(1)?;
        let label = self.name().to_owned();
        let results = self.cx.net.graph.node_outputs(&label, op, operands)?;
        for &v in &results {
            if !reasonable(self.ty(v)) {
                return Err(format!("its result is {}, which is more than 2^31 elements", self.ty(v)).into());
            }
        }
        Ok(results)
    }

    /// Makes the results of a node with regions the node's outputs; those that are uint8 in the file are marked.
    fn flow_outputs(&mut self, results: &[ValueId], unsigned: &[bool]) -> Result<(), Reason> {
        for (v, unsigned) in results.iter().zip(unsigned) {
            if *unsigned {
                self.cx.unsigned.insert(*v);
            }
        }
        self.outputs(results)
    }
}
