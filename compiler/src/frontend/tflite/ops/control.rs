//! IF and WHILE, whose graphs are other subgraphs of the file.

use crate::frontend::reason::Reason;
use crate::frontend::semantic::flow;
use crate::frontend::tflite::NodeContext;
use crate::graph::ValueId;

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

pub(super) fn branch(n: &mut NodeContext) -> Result<(), Reason> {
    let graphs = [subgraph(n, 0)?, subgraph(n, 1)?];
    let all = operands(n)?;
    let (&condition, values) = all.split_first().ok_or("it has no condition")?;
    let label = n.name().to_owned();
    let results = flow::branch(
        n.cx,
        condition,
        values,
        [&mut |cx, values| cx.inline(graphs[0], values, &label), &mut |cx, values| {
            cx.inline(graphs[1], values, &label)
        }],
    )?;
    outputs(n, &results)
}

pub(super) fn repeated(n: &mut NodeContext) -> Result<(), Reason> {
    let (condition, body) = (subgraph(n, 0)?, subgraph(n, 1)?);
    let values = operands(n)?;
    let label = n.name().to_owned();
    let kept = n.cx.kept(body)?;
    let results = flow::repeated(
        n.cx,
        &values,
        &kept,
        &mut |cx, values| cx.inline(condition, values, &label),
        &mut |cx, values| cx.inline(body, values, &label),
    )?;
    outputs(n, &results)
}
