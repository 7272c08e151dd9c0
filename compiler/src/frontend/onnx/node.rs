//! A node of the file on its way into the graph.

use super::Context;
use super::proto::{AttributeProto, NodeProto};
use super::tensor;
use crate::graph::op::{Dequantize, Transpose};
use crate::graph::{GraphError, Op, Tensor, TensorData, TensorType, ValueId};

/// Why a node cannot be imported.
pub(super) struct Reason(pub(super) String);

impl From<String> for Reason {
    fn from(s: String) -> Reason {
        Reason(s)
    }
}

impl From<&str> for Reason {
    fn from(s: &str) -> Reason {
        Reason(s.into())
    }
}

impl From<GraphError> for Reason {
    fn from(e: GraphError) -> Reason {
        match e {
            GraphError::Op { op, source, .. } => Reason(format!("{op}: {source}")),
            e => Reason(e.to_string()),
        }
    }
}

pub(super) struct NodeContext<'c, 'a> {
    pub cx: &'c mut Context<'a>,
    pub proto: &'c NodeProto,
    /// Also the stem of the names of the graph's nodes.
    pub name: &'c str,
}

impl NodeContext<'_, '_> {
    pub fn opset(&self) -> i64 {
        self.cx.opset
    }

    pub fn has_input(&self, i: usize) -> bool {
        self.proto.input.get(i).is_some_and(|s| !s.is_empty())
    }

    pub fn input(&mut self, i: usize) -> Result<ValueId, Reason> {
        let name = self.proto.input.get(i).filter(|s| !s.is_empty());
        let name = name.ok_or_else(|| Reason(format!("operand {i} is missing")))?;
        Ok(self.cx.value(name)?)
    }

    /// The value of a constant operand, as it is in the file.
    pub fn constant_input(&self, i: usize) -> Result<Tensor, Reason> {
        let name = self.proto.input.get(i).ok_or_else(|| Reason(format!("operand {i} is missing")))?;
        let t = self.cx.constants.get(name).cloned();
        t.ok_or_else(|| Reason(format!("operand {i}, `{name}`, must be a constant")))
    }

    /// A constant operand of integers.
    pub fn integers(&self, i: usize) -> Result<Vec<i64>, Reason> {
        let t = self.constant_input(i)?;
        match t.data() {
            TensorData::I64(v) => Ok(v.clone()),
            TensorData::I32(v) => Ok(v.iter().map(|&x| i64::from(x)).collect()),
            TensorData::I8(v) => Ok(v.iter().map(|&x| i64::from(x)).collect()),
            TensorData::U8(v) => Ok(v.iter().map(|&x| i64::from(x)).collect()),
            _ => Err(format!("operand {i} must be integers, found {}", t.ty()).into()),
        }
    }

    /// A constant operand of floats.
    pub fn floats(&self, i: usize) -> Result<Vec<f32>, Reason> {
        let t = self.constant_input(i)?;
        Ok(t.as_slice::<f32>().map_err(|e| Reason(format!("operand {i}: {e}")))?.to_vec())
    }

    fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.proto.attribute.iter().find(|a| a.name == name)
    }

    pub fn int(&self, name: &str) -> Option<i64> {
        self.attribute(name).map(|a| a.i)
    }

    pub fn float(&self, name: &str) -> Option<f32> {
        self.attribute(name).map(|a| a.f)
    }

    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        self.attribute(name).map(|a| a.ints.as_slice())
    }

    pub fn list(&self, name: &str) -> Option<&[f32]> {
        self.attribute(name).map(|a| a.floats.as_slice())
    }

    pub fn word(&self, name: &str) -> Option<String> {
        self.attribute(name).map(|a| String::from_utf8_lossy(&a.s).into_owned())
    }

    pub fn tensor(&self, name: &str) -> Option<Result<Tensor, Reason>> {
        let t = self.attribute(name)?.t.as_ref()?;
        Some(tensor::tensor(t, self.cx.folder).map_err(Reason))
    }

    /// An attribute of sizes, of this length; `default` where it is absent.
    pub fn sizes<const N: usize>(&self, name: &str, default: usize) -> Result<[usize; N], Reason> {
        let Some(list) = self.ints(name) else { return Ok([default; N]) };
        let list = list.iter().map(|&v| usize::try_from(v)).collect::<Result<Vec<_>, _>>();
        let list = list.map_err(|_| format!("its {name} must not be negative"))?;
        let found = list.len();
        list.try_into().map_err(|_| format!("its {name} must have {N} values, found {found}").into())
    }

    /// A dimension of the operand, counted from the end where negative.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize, Reason> {
        let n = i64::try_from(rank).unwrap_or(i64::MAX);
        let place = if axis < 0 { axis.saturating_add(n) } else { axis };
        let place = usize::try_from(place).ok().filter(|&a| a < rank);
        place.ok_or_else(|| Reason(format!("its axis {axis} lies outside {rank} dimensions")))
    }

    pub fn ty(&self, v: ValueId) -> &TensorType {
        self.cx.builder.ty(v)
    }

    /// Adds a node; an empty suffix names the one that makes the output.
    pub fn node(&mut self, suffix: &str, op: impl Into<Op>, inputs: &[ValueId]) -> Result<ValueId, Reason> {
        let label = self.label(suffix);
        Ok(self.cx.builder.node(&label, op, inputs)?)
    }

    pub fn constant(&mut self, suffix: &str, value: Tensor) -> ValueId {
        let label = self.label(suffix);
        self.cx.builder.constant(&label, value)
    }

    fn label(&self, suffix: &str) -> String {
        if suffix.is_empty() { self.name.to_owned() } else { format!("{}/{suffix}", self.name) }
    }

    /// Makes `v` the node's output.
    pub fn output(&mut self, v: ValueId) -> Result<(), Reason> {
        if self.proto.output.iter().skip(1).any(|s| !s.is_empty()) {
            return Err("only its first output is supported".into());
        }
        let name = self.proto.output.first().filter(|s| !s.is_empty()).ok_or("it has no output")?;
        if self.cx.constants.contains_key(name) || self.cx.values.insert(name.clone(), v).is_some() {
            return Err(format!("`{name}` is defined twice").into());
        }
        Ok(())
    }

    pub fn unsigned(&self, v: ValueId) -> bool {
        self.cx.unsigned.contains(&v)
    }

    /// Makes `v` the node's output, unsigned in the file where `data` is.
    pub fn output_like(&mut self, v: ValueId, data: ValueId) -> Result<(), Reason> {
        if self.unsigned(data) {
            self.cx.unsigned.insert(v);
        }
        self.output(v)
    }

    /// `v` with its dimensions in another order; constants, also dequantized ones, are transposed here.
    pub fn transposed(&mut self, suffix: &str, v: ValueId, perm: &[usize]) -> Result<ValueId, Reason> {
        let wrong = || Reason(format!("its {suffix} must have {} dimensions", perm.len()));
        if self.ty(v).rank() != perm.len() {
            return Err(wrong());
        }
        if let Some(t) = self.cx.builder.constant_of(v) {
            let t = t.transposed(perm).ok_or_else(wrong)?;
            return Ok(self.constant(suffix, t));
        }
        let dequantize = self.cx.builder.def(v).map(|n| (n.op.clone(), n.inputs.clone()));
        if let Some((Op::Dequantize(d), inputs)) = dequantize
            && let Some(t) = self.cx.builder.constant_of(inputs[0])
        {
            let t = t.transposed(perm).ok_or_else(wrong)?;
            let axis = perm.iter().position(|&p| p == d.axis).unwrap_or(0);
            let c = self.constant(suffix, t);
            return self.node(&format!("{suffix}/dequantize"), Dequantize { axis, ..d }, &[c]);
        }
        self.node(&format!("{suffix}/transpose"), Transpose { perm: perm.to_vec() }, &[v])
    }
}
