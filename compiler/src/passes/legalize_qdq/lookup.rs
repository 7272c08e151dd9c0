//! Functions of one byte.
//!
//! Float operators between a `dequantize` and a `quantize` become a table of 256 values if each element of the result
//! depends on one element of the data. The table is bit-exact.

use super::Group;
use crate::graph::op::{BinaryKind, Dequantize, Lookup};
use crate::graph::{DType, Op, Tensor, ValueId};
use crate::passes::Patch;
use std::collections::HashMap;

/// Maximum number of operators; no activation has as many.
const MOST_NODES: usize = 32;

/// The operators between a byte and the `quantize` that have been evaluated so far.
struct ByteFunction<'g, 'v> {
    group: &'g Group<'v>,
    /// The bytes that everything depends on, once found.
    data: Option<(ValueId, Dequantize)>,
    tables: HashMap<ValueId, Tensor>,
    nodes: usize,
}

pub(super) fn rewrite(g: &Group) -> Option<Patch> {
    let mut function = ByteFunction { group: g, data: None, tables: HashMap::new(), nodes: 0 };
    let real = function.table(g.end.root.inputs[0])?;
    let (data, _) = function.data?;
    // The operators must not broadcast the data.
    let graph = g.view.graph;
    if graph.ty(data).dims != graph.ty(g.core.output()).dims || real.len() != 256 {
        return None;
    }
    let table = g.end.root.op.eval(&[&real]).ok()?.pop()?;
    let mut p = Patch::new("lookup");
    let table = p.constant(&g.label("table"), table);
    let v = p.node(g.name(), Lookup {}, &[data.into(), table]);
    Some(g.finish(p, v))
}

impl ByteFunction<'_, '_> {
    /// A value for each of the 256 bytes, or a single value that holds for all of them.
    fn table(&mut self, v: ValueId) -> Option<Tensor> {
        if let Some(t) = self.tables.get(&v) {
            return Some(t.clone());
        }
        let (graph, node) = (self.group.view.graph, self.group.view.def(v)?);
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            return None;
        }
        let t = match &node.op {
            Op::Constant(c) if c.value.len() == 1 => c.value.reshaped(&[])?,
            Op::Dequantize(d) if graph.constant(node.inputs[0]).is_some_and(|c| c.len() == 1) => {
                let c = graph.constant(node.inputs[0])?;
                let one = Dequantize { axis: 0, ..d.clone() };
                one.eval(&[&c.reshaped(&[])?]).ok()?
            }
            Op::Dequantize(d) => {
                let data = node.inputs[0];
                if graph.ty(data).dtype != DType::I8 || d.scale.len() != 1 || graph.constant(data).is_some() {
                    return None;
                }
                match &self.data {
                    Some((other, e)) if (*other, e) != (data, d) => return None,
                    Some(_) => {}
                    None => self.data = Some((data, d.clone())),
                }
                Op::from(d.clone()).eval(&[&Tensor::from_fn(&[256], |i| i as u8 as i8 ^ -128)]).ok()?.pop()?
            }
            Op::Unary(_) | Op::Add(_) | Op::Clip(_) | Op::Relu(_) => self.apply(&node.op, &node.inputs)?,
            // Operators after the group's core: their moves are applied to its result at the end.
            _ if self.group.moves.iter().any(|&o| std::ptr::eq(o, node)) => self.table(node.inputs[0])?,
            Op::Binary(b) if !b.kind.compares() => self.apply(&node.op, &node.inputs)?,
            _ => return None,
        };
        self.tables.insert(v, t.clone());
        Some(t)
    }

    fn apply(&mut self, op: &Op, inputs: &[ValueId]) -> Option<Tensor> {
        let operands = inputs.iter().map(|&v| self.table(v)).collect::<Option<Vec<_>>>()?;
        op.eval(&operands.iter().collect::<Vec<_>>()).ok()?.pop()
    }
}

/// The factor of a product or quotient of dequantized bytes with one positive number: it only changes the scale.
pub(super) fn factor(g: &Group) -> Option<(ValueId, f64)> {
    let Op::Binary(b) = &g.core.op else { return None };
    let [x, y] = [g.core.inputs[0], g.core.inputs[1]];
    let number = |v: ValueId| -> Option<f64> {
        let node = g.view.def(v)?;
        let t = match &node.op {
            Op::Constant(c) if c.value.len() == 1 => c.value.as_ref().clone(),
            Op::Dequantize(d) => {
                let c = g.view.graph.constant(node.inputs[0]).filter(|c| c.len() == 1)?;
                Dequantize { axis: 0, ..d.clone() }.eval(&[&c.reshaped(&[])?]).ok()?
            }
            _ => return None,
        };
        t.as_slice::<f32>().ok()?.first().map(|&x| f64::from(x)).filter(|x| *x > 0.0 && x.is_finite())
    };
    let (data, factor) = match b.kind {
        BinaryKind::Mul => number(y).map(|f| (x, f)).or_else(|| number(x).map(|f| (y, f)))?,
        BinaryKind::Div => (x, 1.0 / number(y)?),
        _ => return None,
    };
    (g.view.graph.ty(data).dims == g.view.graph.ty(g.core.output()).dims).then_some((data, factor))
}
