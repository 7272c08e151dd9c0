//! Reference evaluation in plain Rust: the golden answer that every other implementation must match.

use super::{Graph, GraphError, Tensor, TensorType, ValueId};
use std::sync::Arc;

/// Computes the graph's outputs for these inputs, in order. A symbolic size accepts any size.
///
/// # Errors
/// If there are too few or too many inputs, or one is not of its declared type.
pub fn eval(g: &Graph, inputs: &[Tensor]) -> Result<Vec<Tensor>, GraphError> {
    let values = eval_all(g, inputs)?;
    Ok(g.outputs().iter().map(|(_, v)| values[v.0].as_ref().clone()).collect())
}

/// Computes every value of the graph for these inputs, indexed by [`ValueId`].
///
/// # Errors
/// Like [`eval()`].
pub fn eval_all(g: &Graph, inputs: &[Tensor]) -> Result<Vec<Arc<Tensor>>, GraphError> {
    check_inputs(g, inputs)?;
    let mut values: Vec<Arc<Tensor>> = inputs.iter().map(|t| Arc::new(t.clone())).collect();
    for (_, node) in g.nodes() {
        if let super::Op::Constant(c) = &node.op {
            values.push(c.value.clone());
            continue;
        }
        let operands: Vec<&Tensor> = node.inputs.iter().map(|v: &ValueId| values[v.0].as_ref()).collect();
        let err = |source| GraphError::Op { node: node.name.clone(), op: node.op.name(), source };
        let out = node.op.eval(&operands).map_err(err)?;
        values.extend(out.into_iter().map(Arc::new));
    }
    Ok(values)
}

fn check_inputs(g: &Graph, inputs: &[Tensor]) -> Result<(), GraphError> {
    if inputs.len() != g.inputs().len() {
        let names: Vec<_> = g.inputs().map(|(n, _)| n).collect();
        let (n, k) = (inputs.len(), names.len());
        return Err(GraphError::Invalid(format!("{n} inputs given, but the graph has {k}: {}", names.join(", "))));
    }
    let fits = |ty: &TensorType, t: &Tensor| {
        ty.dtype == t.dtype()
            && ty.rank() == t.shape().len()
            && ty.dims.iter().zip(t.shape()).all(|(d, &n)| d.known().is_none_or(|k| k == n))
    };
    let errors = g.inputs().zip(inputs).filter(|((_, v), t)| !fits(g.ty(*v), t));
    let errors = errors.map(|((name, v), t)| GraphError::Input {
        name: name.into(),
        expected: g.ty(v).to_string(),
        found: t.ty().to_string(),
    });
    GraphError::join(errors.collect()).map_or(Ok(()), Err)
}
