//! ONNX files.
//!
//! Networks keep `[N, C, H, W]` and their float operators; QuantizeLinear and DequantizeLinear become `quantize` and
//! `dequantize`, which the passes make integer. Every uint8 tensor becomes int8, 128 less, with `shift_sign` at the
//! network's edge. Where the outermost size of an input is left open, it is one.

mod node;
mod ops;
mod proto;
mod tensor;
#[cfg(test)]
pub(super) mod testing;

use super::error::{ImportError, UnsupportedNode};
use crate::graph::op::ShiftSign;
use crate::graph::{DType, Dim, Graph, GraphBuilder, Tensor, TensorType, ValueId};
use node::NodeContext;
use prost::Message;
use proto::{GraphProto, ModelProto, NodeProto, ValueInfoProto};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// The graph of an ONNX file; `file` is its name for messages, `folder` where data files beside it are looked for.
///
/// # Errors
/// When the file is damaged, or has operators that are not supported, all of which are listed.
pub fn import(bytes: &[u8], file: &str, folder: Option<&Path>) -> Result<Graph, ImportError> {
    let malformed = |reason: String| ImportError::malformed(file, reason);
    let model = ModelProto::decode(bytes).map_err(|e| malformed(format!("it is no ONNX file: {e}")))?;
    let graph = model.graph.as_ref().ok_or_else(|| malformed("it is no ONNX file: it has no graph".into()))?;
    let main = |d: &str| d.is_empty() || d == "ai.onnx";
    let opset = model.opset_import.iter().find(|o| main(&o.domain)).map(|o| o.version);
    let opset = opset.ok_or_else(|| malformed("it does not name its operator set".into()))?;
    let mut nodes = Vec::new();
    for (i, n) in graph.node.iter().enumerate() {
        if !main(&n.domain) || ops::find(&n.op_type).is_none() {
            let operator = if main(&n.domain) { n.op_type.clone() } else { format!("{}.{}", n.domain, n.op_type) };
            nodes.push(UnsupportedNode { node: node_name(n, i), operator });
        }
    }
    if !nodes.is_empty() {
        return Err(ImportError::Unsupported { file: file.into(), nodes, supported: ops::names().join(", ") });
    }
    let name = if graph.name.is_empty() { "main" } else { &graph.name };
    let mut cx = Context {
        builder: GraphBuilder::new(name),
        values: HashMap::new(),
        unsigned: HashSet::new(),
        constants: HashMap::new(),
        opset,
        folder,
    };
    cx.begin(graph).map_err(malformed)?;
    for (i, n) in graph.node.iter().enumerate() {
        let Some(import) = ops::find(&n.op_type) else { continue };
        let name = node_name(n, i);
        let mut node = NodeContext { cx: &mut cx, proto: n, name: &name };
        import(&mut node).map_err(|reason| ImportError::Node {
            file: file.into(),
            node: name.clone(),
            operator: n.op_type.clone(),
            reason: reason.0,
        })?;
    }
    cx.end(graph).map_err(malformed)?;
    cx.builder.finish().map_err(|source| ImportError::Graph { file: file.into(), source: Box::new(source) })
}

/// True where nodes of this operator can be imported.
pub fn supports(operator: &str) -> bool {
    ops::find(operator).is_some()
}

fn node_name(n: &NodeProto, i: usize) -> String {
    let names = std::iter::once(&n.name).chain(n.output.first());
    names.into_iter().find(|s| !s.is_empty()).cloned().unwrap_or_else(|| format!("#{i}"))
}

struct Context<'a> {
    builder: GraphBuilder,
    /// What a name of the file became.
    values: HashMap<String, ValueId>,
    /// Values that are unsigned in the file.
    unsigned: HashSet<ValueId>,
    /// Constants of the file, as they are there.
    constants: HashMap<String, Tensor>,
    opset: i64,
    folder: Option<&'a Path>,
}

impl Context<'_> {
    fn begin(&mut self, graph: &GraphProto) -> Result<(), String> {
        for t in &graph.initializer {
            self.constants.insert(t.name.clone(), tensor::tensor(t, self.folder)?);
        }
        let mut batch = BTreeMap::new();
        let mut inputs = Vec::new();
        for (i, info) in graph.input.iter().enumerate() {
            if self.constants.contains_key(&info.name) {
                continue;
            }
            let ty = value_type(info, i)?;
            if let Some(Dim::Symbol(s)) = ty.dims.first() {
                batch.insert(s.clone(), 1);
            }
            inputs.push((info, ty));
        }
        for (info, ty) in inputs {
            let ty = ty.bind(&batch);
            let mut v = self.builder.input(&info.name, ty.clone());
            if ty.dtype == DType::U8 {
                let node = self.builder.node(&format!("{}/shift_sign", info.name), ShiftSign {}, &[v]);
                v = node.map_err(|e| e.to_string())?;
                self.unsigned.insert(v);
            }
            if self.values.insert(info.name.clone(), v).is_some() {
                return Err(format!("two inputs have the name `{}`", info.name));
            }
        }
        Ok(())
    }

    fn end(&mut self, graph: &GraphProto) -> Result<(), String> {
        for info in &graph.output {
            let mut v = self.value(&info.name)?;
            if self.unsigned.contains(&v) {
                let node = self.builder.node(&format!("{}/shift_sign", info.name), ShiftSign {}, &[v]);
                v = node.map_err(|e| e.to_string())?;
            }
            self.builder.output(&info.name, v);
        }
        Ok(())
    }

    /// What a name became; a constant is made at its first use.
    fn value(&mut self, name: &str) -> Result<ValueId, String> {
        if let Some(&v) = self.values.get(name) {
            return Ok(v);
        }
        let t = self.constants.get(name).ok_or_else(|| format!("`{name}` is not defined before its use"))?;
        let unsigned = t.dtype() == DType::U8;
        let v = self.builder.constant(name, tensor::shifted(t.clone()));
        if unsigned {
            self.unsigned.insert(v);
        }
        self.values.insert(name.into(), v);
        Ok(v)
    }
}

fn value_type(info: &ValueInfoProto, place: usize) -> Result<TensorType, String> {
    let name = &info.name;
    let ty = info.r#type.as_ref().and_then(|t| t.tensor_type.as_ref());
    let ty = ty.ok_or_else(|| format!("input `{name}` is no tensor"))?;
    let dtype = match ty.elem_type {
        10 | 11 => Err("half and double precision are not supported at the network's edge".into()),
        n => tensor::dtype(n),
    };
    let dtype = dtype.map_err(|e| format!("input `{name}`: {e}"))?;
    let shape = ty.shape.as_ref().ok_or_else(|| format!("input `{name}` has no shape"))?;
    let dim = |(i, d): (usize, &proto::DimensionProto)| match (d.dim_value, d.dim_param.as_deref()) {
        (Some(n), _) if n > 0 => usize::try_from(n).map(Dim::Fixed).map_err(|_| format!("input `{name}` is too large")),
        (Some(n), _) if n < 0 => Err(format!("input `{name}` has a negative size")),
        (_, Some(s)) if s.starts_with(char::is_alphabetic) && s.chars().all(|c| c.is_alphanumeric() || c == '_') => {
            Ok(Dim::Symbol(s.into()))
        }
        _ => Ok(Dim::Symbol(format!("input_{place}_{i}"))),
    };
    Ok(TensorType { dtype, dims: shape.dim.iter().enumerate().map(dim).collect::<Result<_, _>>()? })
}
