//! Writes a graph as an ONNX file. Quantization is written as `QuantizeLinear` and `DequantizeLinear`.
//!
//! Operator set 17. Images must be `[N, C, H, W]`. Inputs and outputs keep the graph's names; sizes must be known.
//! Integer operators that only this toolkit's back ends know cannot be written; the error names them.

mod flow;
mod ops;

use super::proto::*;
use super::tensor::number;
use crate::graph::{DType, Graph, Node, Op, Tensor, TensorType, ValueId};
use prost::Message;
use std::collections::{BTreeSet, HashSet};

/// The operator set of written files.
const OPSET: i64 = 17;

/// The reason why a graph cannot be written as ONNX.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// An operator that cannot be written.
    #[error("node `{node}` ({op}) cannot be written as ONNX: {reason}")]
    NoForm {
        /// The node.
        node: String,
        /// Its operator.
        op: &'static str,
        /// The reason.
        reason: String,
    },
    /// An open size.
    #[error("`{value}` has the open shape {shape}, which cannot be written; bind its sizes first")]
    OpenShape {
        /// The value.
        value: String,
        /// Its type.
        shape: String,
    },
    /// An output whose name another value already has.
    #[error("output `{output}` has the name of another value, but names are unique in ONNX; rename it")]
    NameTaken {
        /// The output.
        output: String,
    },
}

/// Writes the graph as an ONNX file and returns its bytes.
///
/// # Errors
/// [`WriteError`] for the first node, value or output that cannot be written.
#[allow(clippy::needless_update)] // messages can have fields that a written file does not need
pub fn write(graph: &Graph) -> Result<Vec<u8>, WriteError> {
    let mut w = Writer {
        graph,
        names: vec![None; graph.value_count()],
        taken: HashSet::new(),
        written: Vec::new(),
        constants: Vec::new(),
        declared: Vec::new(),
        domains: BTreeSet::new(),
    };
    let mut inputs = Vec::new();
    for (name, v) in graph.inputs() {
        w.taken.insert(name.to_string());
        w.names[v.0] = Some(name.to_string());
        inputs.push(w.info(name, v)?);
    }
    let outputs = || graph.outputs().iter().filter(|(_, v)| !ops::is_row_count(graph, *v));
    let mut promised = Vec::new();
    // Outputs that are another name of a value, one entry per name.
    let mut aliases: Vec<(&String, ValueId)> = Vec::new();
    for (name, v) in outputs() {
        if w.names[v.0].as_ref() == Some(name) || aliases.contains(&(name, *v)) {
            continue;
        }
        if !w.taken.insert(name.clone()) {
            return Err(WriteError::NameTaken { output: name.clone() });
        }
        match &mut w.names[v.0] {
            Some(_) => aliases.push((name, *v)),
            none => {
                *none = Some(name.clone());
                promised.push(*v);
            }
        }
    }
    w.nodes(&promised)?;
    for (name, v) in aliases {
        let value = w.value(v)?;
        w.emit("Identity", &[&value], name, vec![]);
    }
    let outputs = outputs().map(|(name, v)| w.info(name, *v)).collect::<Result<_, _>>()?;
    let graph = GraphProto {
        node: w.written,
        name: graph.name().to_string(),
        initializer: w.constants,
        input: inputs,
        output: outputs,
        value_info: w.declared,
        ..Default::default()
    };
    let opset = OperatorSetIdProto { domain: String::new(), version: OPSET };
    let others = w.domains.into_iter().map(|domain| OperatorSetIdProto { domain, version: 1 });
    let opset_import = std::iter::once(opset).chain(others).collect();
    let model = ModelProto { ir_version: 8, graph: Some(graph), opset_import, ..Default::default() };
    Ok(model.encode_to_vec())
}

fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto { name: name.into(), i, r#type: 2, ..Default::default() }
}

fn float(name: &str, f: f32) -> AttributeProto {
    AttributeProto { name: name.into(), f, r#type: 1, ..Default::default() }
}

fn word(name: &str, word: &str) -> AttributeProto {
    AttributeProto { name: name.into(), s: word.into(), r#type: 3, ..Default::default() }
}

fn ints(name: &str, list: &[usize]) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        ints: list.iter().map(|&n| n as i64).collect(),
        r#type: 7,
        ..Default::default()
    }
}

struct Writer<'g> {
    graph: &'g Graph,
    /// Names of the values that are in the file already.
    names: Vec<Option<String>>,
    taken: HashSet<String>,
    written: Vec<NodeProto>,
    constants: Vec<TensorProto>,
    /// Types of values that a reader cannot infer.
    declared: Vec<ValueInfoProto>,
    /// Domains of operators other than the format's own.
    domains: BTreeSet<String>,
}

impl Writer<'_> {
    /// Writes the graph's nodes; outputs that nothing else names yet are promised.
    fn nodes(&mut self, promised: &[ValueId]) -> Result<(), WriteError> {
        for (_, node) in self.graph.nodes() {
            match &node.op {
                Op::Packed(op) => self.packed(node, op)?,
                op if !op.regions().is_empty() => self.flow(node)?,
                _ => {
                    let out = node.output();
                    // Constants are written when a node needs them, in the form that it needs.
                    if self.is_constant(out) && !promised.contains(&out) {
                        continue;
                    }
                    let name = self.result_name(node, out);
                    self.node(node, &name)?;
                }
            }
        }
        Ok(())
    }

    /// The name of a node's result, from now on.
    fn result_name(&mut self, node: &Node, v: ValueId) -> String {
        let name = match self.names[v.0].clone() {
            Some(name) => name,
            None => self.fresh(&node.name),
        };
        self.names[v.0] = Some(name.clone());
        name
    }

    #[allow(clippy::needless_update)] // as above
    fn info(&self, name: &str, v: ValueId) -> Result<ValueInfoProto, WriteError> {
        let ty: &TensorType = self.graph.ty(v);
        let open = || WriteError::OpenShape { value: name.to_string(), shape: ty.to_string() };
        let dim = |n: usize| DimensionProto { dim_value: Some(n as i64), dim_param: None };
        let shape = TensorShapeProto { dim: ty.shape().ok_or_else(open)?.into_iter().map(dim).collect() };
        let tensor_type = Some(TensorTypeProto { elem_type: number(ty.dtype), shape: Some(shape) });
        Ok(ValueInfoProto {
            name: name.into(),
            r#type: Some(TypeProto { tensor_type, ..TypeProto::default() }),
            ..Default::default()
        })
    }

    /// A name that is not used yet.
    fn fresh(&mut self, stem: &str) -> String {
        let mut name = stem.to_string();
        let mut k = 1;
        while !self.taken.insert(name.clone()) {
            name = format!("{stem}.{k}");
            k += 1;
        }
        name
    }

    fn emit(&mut self, op: &str, inputs: &[&str], output: &str, attribute: Vec<AttributeProto>) {
        self.written.push(NodeProto {
            input: inputs.iter().map(|s| s.to_string()).collect(),
            output: vec![output.to_string()],
            name: output.to_string(),
            op_type: op.into(),
            attribute,
            ..Default::default()
        });
    }

    /// Writes a node with a new name for its result, and returns the name.
    fn part(&mut self, stem: &str, op: &str, inputs: &[&str], attribute: Vec<AttributeProto>) -> String {
        let name = self.fresh(stem);
        self.emit(op, inputs, &name, attribute);
        name
    }

    fn constant(&mut self, stem: &str, t: &Tensor) -> String {
        let name = self.fresh(stem);
        self.constant_named(&name, t);
        name
    }

    fn constant_named(&mut self, name: &str, t: &Tensor) {
        self.constants.push(TensorProto {
            dims: t.shape().iter().map(|&n| n as i64).collect(),
            data_type: number(t.dtype()),
            name: name.into(),
            raw_data: t.to_bytes(),
            ..Default::default()
        });
    }

    fn integers(&mut self, stem: &str, list: &[i64]) -> String {
        self.constant(stem, &Tensor::vector(list.to_vec()))
    }

    /// A constant of a float type.
    fn number(&mut self, stem: &str, x: f32, dtype: DType) -> String {
        match dtype {
            DType::F64 => self.constant(stem, &Tensor::scalar(f64::from(x))),
            _ => self.constant(stem, &Tensor::scalar(x)),
        }
    }

    /// True for a constant and for a dequantized constant.
    fn is_constant(&self, v: ValueId) -> bool {
        match self.graph.def_node(v) {
            Some((_, Node { op: Op::Constant(_), .. })) => true,
            Some((_, Node { op: Op::Dequantize(_), inputs, .. })) => self.graph.constant(inputs[0]).is_some(),
            _ => false,
        }
    }

    /// The name of a value; a constant is written first.
    fn value(&mut self, v: ValueId) -> Result<String, WriteError> {
        if let Some(name) = &self.names[v.0] {
            return Ok(name.clone());
        }
        let name = self.fresh(self.graph.value_name(v));
        if let Some((_, node)) = self.graph.def_node(v) {
            self.node(node, &name)?;
        }
        self.names[v.0] = Some(name.clone());
        Ok(name)
    }

    /// Writes a constant as `turn` changes it, and returns its name; `None` if the value is not constant. Dequantized
    /// integers are changed before their `dequantize`.
    fn turned(
        &mut self,
        v: ValueId,
        turn: &dyn Fn(&Tensor) -> Option<Tensor>,
        axis: i64,
    ) -> Result<Option<String>, WriteError> {
        let Some((_, node)) = self.graph.def_node(v) else { return Ok(None) };
        match &node.op {
            Op::Constant(c) => Ok(turn(&c.value).map(|t| self.constant(&node.name, &t))),
            Op::Dequantize(d) => {
                let Some(t) = self.graph.constant(node.inputs[0]).and_then(|t| turn(t)) else { return Ok(None) };
                let data = self.constant(self.graph.value_name(node.inputs[0]), &t);
                let name = self.fresh(&node.name);
                self.dequantize(&name, &data, t.dtype(), &d.scale, &d.zero_point, axis);
                Ok(Some(name))
            }
            _ => Ok(None),
        }
    }

    fn dequantize(&mut self, name: &str, data: &str, dtype: DType, scale: &[f32], zero_point: &[i32], axis: i64) {
        let (scale, zero_point) = self.parameters(name, dtype, scale, zero_point);
        let attributes = vec![int("axis", axis)];
        match zero_point {
            Some(z) => self.emit("DequantizeLinear", &[data, &scale, &z], name, attributes),
            None => self.emit("DequantizeLinear", &[data, &scale], name, attributes),
        }
    }

    /// Writes scale and zero point as constants, scalars if there is one of each. 32-bit integers have no zero point.
    fn parameters(&mut self, stem: &str, dtype: DType, scale: &[f32], zero_point: &[i32]) -> (String, Option<String>) {
        let shape: &[usize] = if scale.len() == 1 { &[] } else { &[scale.len()] };
        let s = self.constant(&format!("{stem}/scale"), &Tensor::from_fn(shape, |i| scale[i]));
        let z = match dtype {
            DType::I8 => Some(Tensor::from_fn(shape, |i| zero_point[i] as i8)),
            DType::U8 => Some(Tensor::from_fn(shape, |i| zero_point[i] as u8)),
            _ => None,
        };
        (s, z.map(|z| self.constant(&format!("{stem}/zero_point"), &z)))
    }
}

#[cfg(test)]
mod tests;
