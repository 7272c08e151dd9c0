//! Whether a size of a model's inputs can be padded: whether the rows along a dimension are computed independently of each
//! other, so that further rows at the end change nothing in those before.
//!
//! The tensor expressions of the operators say it: rows stay apart where each read of a tensor that has rows takes the
//! row of the element that is computed, and the row's number is used for nothing else.

use std::collections::HashMap;

use tilewright_tensor::te::{Definition, Expr, Name, NameMap, Tensor};

use crate::graph::{Graph, NodeId, Op, ValueId};
use crate::te::ops;

/// Where a tensor has the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// The dimension.
    pub axis: usize,
    /// Elements of the dimension that belong to one row.
    pub each: usize,
}

/// Why rows are not independent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {name} ({op}) computes an element from several rows, or from the number of its row")]
pub struct Mixed {
    /// `node`, or `input`.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// The operator.
    pub op: &'static str,
}

/// For each output of the graph, where it has the rows that the inputs have in the given dimensions; `None` for outputs
/// that do not depend on them.
///
/// # Errors
/// [`Mixed`] with the first node that does not keep rows apart.
pub fn of_outputs(graph: &Graph, inputs: &[(ValueId, usize)]) -> Result<Vec<Option<Rows>>, Mixed> {
    let known = of_values(graph, inputs)?;
    Ok(graph.outputs().iter().map(|(_, value)| known.get(value).copied()).collect())
}

/// The values that have the rows which these values have in the given dimensions, with the place of the rows.
///
/// # Errors
/// As [`of_outputs`].
pub fn of_values(graph: &Graph, inputs: &[(ValueId, usize)]) -> Result<HashMap<ValueId, Rows>, Mixed> {
    let mut known: HashMap<ValueId, Rows> = HashMap::new();
    for (value, axis) in inputs {
        if known.insert(*value, Rows { axis: *axis, each: 1 }).is_some() {
            return Err(Mixed { what: "input", name: graph.value_name(*value).to_string(), op: "input" });
        }
    }
    for (id, node) in graph.nodes() {
        if !node.inputs.iter().any(|value| known.contains_key(value)) {
            continue;
        }
        let mixed = || Mixed { what: "node", name: node.name.clone(), op: node.op.name() };
        let found = match &node.op {
            Op::Reshape(_) => after_reshape(graph, id, &known),
            _ => after(graph, id, &known),
        };
        known.insert(node.output(), found.ok_or_else(mixed)?);
    }
    Ok(known)
}

/// The rows of a node's result by its tensor expression.
fn after(graph: &Graph, id: NodeId, known: &HashMap<ValueId, Rows>) -> Option<Rows> {
    let node = graph.node(id);
    let [output] = node.outputs[..] else { return None };
    let region = ops::program(graph, "rows", &[id], &[output]).ok()?;
    let mut rows: NameMap<Rows> = NameMap::default();
    for (tensor, value) in region.program.inputs().zip(&region.inputs) {
        rows.extend(known.get(value).map(|found| (tensor.name.clone(), *found)));
    }
    for tensor in &region.program.tensors {
        if let Some(found) = of_tensor(tensor, &rows)? {
            rows.insert(tensor.name.clone(), found);
        }
    }
    rows.get(region.program.outputs.first()?).copied()
}

/// The rows of a tensor, if it reads tensors with rows; the outer `None` if it does not keep them apart.
fn of_tensor(tensor: &Tensor, rows: &NameMap<Rows>) -> Option<Option<Rows>> {
    let expressions: Vec<&Expr> = match &tensor.definition {
        Definition::Input => return Some(None),
        Definition::Compute(value) => vec![value],
        Definition::Reduce { init, value, .. } => vec![init, value],
    };
    let mut found: Option<(&Name, Rows)> = None;
    for expression in &expressions {
        find(expression, tensor, rows, &mut found)?;
    }
    let Some((variable, rows_here)) = found else { return Some(None) };
    expressions.iter().all(|expression| is_apart(expression, variable, rows)).then_some(Some(rows_here))
}

/// Finds the variable that all reads of tensors with rows have as their row.
fn find<'a>(
    expression: &'a Expr,
    tensor: &Tensor,
    rows: &NameMap<Rows>,
    found: &mut Option<(&'a Name, Rows)>,
) -> Option<()> {
    if let Expr::Load { buffer, indices, .. } = expression
        && let Some(from) = rows.get(buffer)
    {
        let Some(Expr::Var(variable)) = indices.get(from.axis) else { return None };
        let axis = tensor.axes.iter().position(|axis| axis.var == *variable)?;
        let here = Rows { axis, each: from.each };
        if found.replace((variable, here)).is_some_and(|(_, before)| before != here) {
            return None;
        }
    }
    operands(expression).into_iter().try_for_each(|operand| find(operand, tensor, rows, found))
}

/// Whether the row's variable is nothing but the row in reads of tensors with rows.
fn is_apart(expression: &Expr, variable: &Name, rows: &NameMap<Rows>) -> bool {
    match expression {
        Expr::Var(name) => name != variable,
        Expr::Load { buffer, indices, .. } => {
            let row = rows.get(buffer).map(|from| from.axis);
            indices.iter().enumerate().all(|(axis, index)| row == Some(axis) || is_apart(index, variable, rows))
        }
        other => operands(other).into_iter().all(|operand| is_apart(operand, variable, rows)),
    }
}

fn operands(expression: &Expr) -> Vec<&Expr> {
    match expression {
        Expr::Int(..) | Expr::Float(..) | Expr::Var(_) => Vec::new(),
        Expr::Load { indices, .. } => indices.iter().collect(),
        Expr::Binary(_, a, b) => vec![a, b],
        Expr::Select(a, b, c) => vec![a, b, c],
        Expr::Cast(_, a) | Expr::Bitcast(_, a) | Expr::Pick(_, a) => vec![a],
        Expr::Call(_, list) => list.iter().collect(),
    }
}

/// The rows after a reshape: the dimension whose elements are whole parts of a row, and which has as many elements before
/// it as the dimension had.
fn after_reshape(graph: &Graph, id: NodeId, known: &HashMap<ValueId, Rows>) -> Option<Rows> {
    let node = graph.node(id);
    let (from, to) = (graph.ty(*node.inputs.first()?).shape()?, graph.ty(node.output()).shape()?);
    let rows = known.get(node.inputs.first()?)?;
    let behind = |shape: &[usize], axis: usize| shape[axis + 1..].iter().product::<usize>();
    let before: usize = from[..rows.axis].iter().product();
    let row = rows.each * behind(&from, rows.axis);
    // Of several such dimensions the last one with more than one element: those before it have one.
    (0..to.len()).rev().find_map(|axis| {
        let part = behind(&to, axis);
        let fits = to[..axis].iter().product::<usize>() == before && part > 0 && row % part == 0 && row > 0;
        let each = row / part.max(1);
        (fits && each > 0 && to[axis] % each == 0).then_some(Rows { axis, each })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::op::{Dense, MatMul, Reduce, ReduceKind, Reshape, Softmax, Transpose};
    use crate::graph::{DType, GraphBuilder, TensorType};

    /// Builds a graph of an input of this shape, and returns the rows of its output for a dimension of the input.
    fn rows(
        shape: &[usize],
        axis: usize,
        build: impl Fn(&mut GraphBuilder, ValueId) -> ValueId,
    ) -> Result<Option<Rows>, String> {
        let mut b = GraphBuilder::new("g");
        let x = b.input("x", TensorType::new(DType::F32, shape));
        let y = build(&mut b, x);
        b.output("y", y);
        let graph = b.finish().unwrap();
        let (_, x) = graph.inputs().next().unwrap();
        of_outputs(&graph, &[(x, axis)]).map(|list| list[0]).map_err(|e| e.to_string())
    }

    fn reshape(b: &mut GraphBuilder, x: ValueId, shape: &[usize]) -> ValueId {
        b.node("reshape", Reshape { shape: shape.iter().map(|n| *n as i64).collect() }, &[x]).unwrap()
    }

    #[test]
    fn rows_pass_products_transposes_and_reshapes() {
        let at = |axis, each| Ok(Some(Rows { axis, each }));
        let dense = |b: &mut GraphBuilder, x: ValueId| {
            let w = b.constant("w", crate::graph::Tensor::from_fn(&[5, 6], |i| i as f32));
            b.node("dense", Dense { data_zero_point: 0, weight_zero_point: 0 }, &[x, w]).unwrap()
        };
        assert_eq!(rows(&[4, 6], 0, dense), at(0, 1));
        // Batch and sequence in one dimension, and apart again.
        let flat = |b: &mut GraphBuilder, x: ValueId| {
            let flat = reshape(b, x, &[12, 6]);
            dense(b, flat)
        };
        assert_eq!(rows(&[4, 3, 6], 0, flat), at(0, 3));
        let again = |b: &mut GraphBuilder, x: ValueId| {
            let y = flat(b, x);
            b.node("again", Reshape { shape: vec![4, 3, 5] }, &[y]).unwrap()
        };
        assert_eq!(rows(&[4, 3, 6], 0, again), at(0, 1));
        let turned =
            |b: &mut GraphBuilder, x: ValueId| b.node("transpose", Transpose { perm: vec![1, 2, 0] }, &[x]).unwrap();
        assert_eq!(rows(&[4, 3, 6], 0, turned), at(2, 1));
        let apart = rows(&[4, 3, 6], 1, |b, x| reshape(b, x, &[12, 6]));
        assert!(apart.is_err(), "rows of a later dimension are not together: {apart:?}");
    }

    #[test]
    fn what_joins_rows_is_named() {
        let softmax =
            |axis| move |b: &mut GraphBuilder, x: ValueId| b.node("soft", Softmax::float(axis, 1.0), &[x]).unwrap();
        assert_eq!(rows(&[4, 6], 0, softmax(1)), Ok(Some(Rows { axis: 0, each: 1 })));
        let joined = rows(&[4, 6], 0, softmax(0)).unwrap_err();
        assert_eq!(joined, "node soft (softmax) computes an element from several rows, or from the number of its row");
        let product = |b: &mut GraphBuilder, x: ValueId| {
            let turned = b.node("t", Transpose { perm: vec![1, 0] }, &[x]).unwrap();
            b.node("product", MatMul {}, &[x, turned]).unwrap()
        };
        assert!(rows(&[4, 4], 0, product).unwrap_err().contains("node product"));
        let mean = |b: &mut GraphBuilder, x: ValueId| {
            b.node("mean", Reduce { kind: ReduceKind::Mean, axes: vec![0], keep_dims: false }, &[x]).unwrap()
        };
        assert!(rows(&[4, 4], 0, mean).unwrap_err().contains("node mean"));
        // A constant with a value for each row belongs to this number of rows.
        let placed = |b: &mut GraphBuilder, x: ValueId| {
            let w = b.constant("w", crate::graph::Tensor::from_fn(&[4, 1], |i| i as f32));
            b.node("less", crate::graph::op::Binary { kind: crate::graph::op::BinaryKind::Sub }, &[x, w]).unwrap()
        };
        assert!(rows(&[4, 4], 0, placed).unwrap_err().contains("node less"));
        assert!(rows(&[4, 4], 1, placed).is_ok());
    }
}
