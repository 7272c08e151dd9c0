//! Branches and loops, whose graphs are within the node.

use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::pytorch::schema::{Argument, Graph};
use crate::frontend::reason::Reason;
use crate::frontend::semantic::flow;
use crate::graph::{Tensor, ValueId};

fn graph<'a>(argument: Option<&&'a Argument>) -> Result<&'a Graph, Reason> {
    match argument {
        Some(Argument::AsGraph(of)) => Ok(&of.graph),
        _ => Err("a graph is missing".into()),
    }
}

/// A list of tensors among the arguments; truth values and numbers become tensors.
fn tensors(n: &mut NodeContext, argument: Option<&&Argument>) -> Result<Vec<ValueId>, Reason> {
    let Some(argument) = argument else { return Ok(Vec::new()) };
    let Value::List(list) = n.of(argument)? else { return Err("its operands must be a list".into()) };
    list.into_iter().map(|value| tensor(n, value)).collect()
}

fn tensor(n: &mut NodeContext, value: Value) -> Result<ValueId, Reason> {
    match value {
        Value::Tensor(v) => Ok(v),
        Value::Bool(x) => Ok(n.made("operand", Tensor::scalar(x))),
        Value::Int(x) => Ok(n.made("operand", Tensor::scalar(x))),
        _ => Err("its operands must be tensors".into()),
    }
}

pub(super) fn branch(n: &mut NodeContext) -> Result<Value, Reason> {
    let arguments = n.positional();
    let condition = n.of(arguments.first().ok_or("it has no condition")?)?;
    let condition = tensor(n, condition)?;
    let (then, otherwise) = (graph(arguments.get(1))?, graph(arguments.get(2))?);
    let values = tensors(n, arguments.get(3))?;
    let label = n.name().to_owned();
    let results = flow::branch(
        n.cx,
        condition,
        &values,
        [&mut |cx, values| cx.inline(then, values, &label), &mut |cx, values| cx.inline(otherwise, values, &label)],
    )?;
    Ok(results.into())
}

pub(super) fn repeated(n: &mut NodeContext) -> Result<Value, Reason> {
    let arguments = n.positional();
    let (condition, body) = (graph(arguments.first())?, graph(arguments.get(1))?);
    let mut values = tensors(n, arguments.get(2))?;
    let carried = values.len();
    // What both graphs get beside the carried values stays as it is.
    let more = tensors(n, arguments.get(3))?;
    values.extend(&more);
    let kept: Vec<bool> = (0..values.len()).map(|i| i >= carried).collect();
    let label = n.name().to_owned();
    let results = flow::repeated(
        n.cx,
        &values,
        &kept,
        &mut |cx, values| cx.inline(condition, values, &label),
        &mut |cx, values| {
            let mut next = cx.inline(body, values, &label)?;
            next.truncate(carried);
            next.extend(&values[carried..]);
            Ok(next)
        },
    )?;
    Ok(results[..carried].to_vec().into())
}
