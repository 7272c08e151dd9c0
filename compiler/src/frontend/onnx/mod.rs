//! ONNX files.
//!
//! Networks keep `[N, C, H, W]` and their float operators; QuantizeLinear and DequantizeLinear become `quantize` and
//! `dequantize`, which the passes make integer. Every uint8 tensor becomes int8, 128 less, with `shift_sign` at the
//! network's edge. Sizes that the file leaves open are given to the import, since shapes are computed there; where the
//! outermost size of an input is left open and not given, it is one. Half and double precision are single precision here.

mod about;
mod attribute;
mod external;
mod node;
mod ops;
mod order;
mod proto;
mod tensor;
mod text;
mod used;
mod write;

pub use write::{WriteError, write};
#[cfg(test)]
pub(crate) mod testing;

pub(super) use about::about;

use super::error::{ImportError, UnsupportedNode};
use super::sizes::Sizes;
use super::sources::{self, Sources};
use crate::graph::op::{ShiftSign, rank_in_bounds};
use crate::graph::{DType, Dim, Graph, GraphBuilder, Tensor, TensorType, ValueId};
use indexmap::IndexMap;
use node::NodeContext;
use prost::Message;
use proto::{GraphProto, ModelProto, NodeProto, OperatorSetIdProto, ValueInfoProto};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use used::Used;

/// The sets of operators whose meaning is known.
const OPSETS: std::ops::RangeInclusive<i64> = 1..=27;

/// Bytes of constants that the import of any file may make, beside sixteen times those of the file and its data.
const ROOM: usize = 64 << 20;

/// The graph of an ONNX file; `file` is its name for messages, `folder` where data files beside it are looked for.
///
/// # Errors
/// When the file is damaged, or has operators that are not supported, all of which are listed.
pub fn import(bytes: &[u8], file: &str, folder: Option<&Path>, sizes: &Sizes) -> Result<Graph, ImportError> {
    Ok(import_traced(bytes, file, folder.as_slice(), sizes)?.0)
}

/// The same, with what the file calls the graph's values. Data files are looked for in several folders, in this order: the
/// one that the model is in by its name, and the one that it is in when links are followed.
///
/// # Errors
/// As [`import`].
pub fn import_traced(
    bytes: &[u8],
    file: &str,
    folders: &[&Path],
    sizes: &Sizes,
) -> Result<(Graph, Sources), ImportError> {
    let malformed = |reason: String| ImportError::malformed(file, reason);
    let model = ModelProto::read(bytes).map_err(|e| malformed(format!("it is no ONNX file: {e}")))?;
    let graph = model.graph.as_ref().ok_or_else(|| malformed("it is no ONNX file: it has no graph".into()))?;
    let opset = match own_opset(&model.opset_import).map_err(malformed)? {
        // Files of the format's first two versions need not name it.
        None if (1..3).contains(&model.ir_version) => 1,
        named => named.ok_or_else(|| malformed("it does not name its operator set".into()))?,
    };
    let order = order::order(graph).map_err(malformed)?;
    let mut nodes = Vec::new();
    for (i, n) in graph.node.iter().enumerate() {
        let operator = operator_name(n);
        if ops::find(&operator).is_none() {
            nodes.push(UnsupportedNode::new(node_name(n, i), operator, ops::names()));
        }
    }
    if !nodes.is_empty() {
        return Err(ImportError::Unsupported {
            file: file.into(),
            nodes,
            supported: ops::all().len(),
            page: "docs/onnx.md",
        });
    }
    let name = if graph.name.is_empty() { "main" } else { &graph.name };
    let mut cx = Context {
        builder: GraphBuilder::new(name),
        values: IndexMap::new(),
        unsigned: HashSet::new(),
        assumed: HashMap::new(),
        constants: HashMap::new(),
        left_out: HashMap::new(),
        room: bytes.len().saturating_mul(16).saturating_add(ROOM),
        opset,
        folders,
    };
    cx.begin(graph).map_err(malformed)?;
    cx.inputs(graph, sizes, file)?;
    for i in order {
        let (n, name) = (&graph.node[i], node_name(&graph.node[i], i));
        let Some(operator) = ops::find(&operator_name(n)) else { continue };
        let mut node = NodeContext { cx: &mut cx, proto: n, name: &name, used: Used::default() };
        import_node(&mut node, operator).map_err(|reason| ImportError::Node {
            file: file.into(),
            node: name.clone(),
            operator: operator.name.into(),
            reason: reason.0,
        })?;
    }
    cx.end(graph).map_err(malformed)?;
    let Context { builder, values, unsigned, .. } = cx;
    let graph =
        builder.finish().map_err(|source| ImportError::Graph { file: file.into(), source: Box::new(source) })?;
    let tensors = values.into_iter().map(|(name, value)| {
        let unsigned = unsigned.contains(&value);
        sources::Tensor { name, value, unsigned, quantization: None }
    });
    let sources = Sources::new(&graph, tensors);
    Ok((graph, sources))
}

/// The set of operators of the format's own domain among these, where it is one of them.
///
/// # Errors
/// When it is not supported, or two are named.
fn own_opset(imports: &[OperatorSetIdProto]) -> Result<Option<i64>, String> {
    let mut own = imports.iter().filter(|o| matches!(o.domain.as_str(), "" | "ai.onnx")).map(|o| o.version);
    let Some(version) = own.next() else { return Ok(None) };
    if let Some(other) = own.find(|&other| other != version) {
        return Err(format!("its operator set is {version} and {other}; one is needed"));
    }
    if !OPSETS.contains(&version) {
        let (first, last) = (OPSETS.start(), OPSETS.end());
        return Err(format!("its operator set is {version}; sets {first} to {last} are supported"));
    }
    Ok(Some(version))
}

fn import_node(node: &mut NodeContext, operator: &ops::Operator) -> Result<(), node::Reason> {
    used::check_names(node.proto, operator)?;
    let imported = (operator.import)(node);
    node.used.misread()?;
    imported?;
    let opset = node.opset();
    node.used.check(node.proto, operator, opset)
}

/// The operator's name, with its domain before it where that is not the format's own.
fn operator_name(n: &NodeProto) -> String {
    if matches!(n.domain.as_str(), "" | "ai.onnx") { n.op_type.clone() } else { format!("{}.{}", n.domain, n.op_type) }
}

/// The tensor of a file that holds nothing else, as the format's test data do. Half and double precision become single.
///
/// # Errors
/// Where it is no such file, or holds elements of a type that is not supported.
pub fn read_tensor(bytes: &[u8]) -> Result<Tensor, String> {
    tensor::tensor(&proto::TensorProto::decode(bytes).map_err(|e| e.to_string())?, &[])
}

/// An operator that can be imported.
#[derive(Debug, Clone, Copy)]
pub struct Operator {
    /// Its name, with its domain before it where that is not the format's own.
    pub name: &'static str,
    /// Attributes that it takes.
    pub attributes: &'static [&'static str],
    /// Attributes that it takes and that change no value of an inference.
    pub ignored: &'static [&'static str],
}

/// Operators that can be imported, by name.
pub fn operators() -> impl Iterator<Item = Operator> {
    ops::all().iter().map(|o| Operator { name: o.name, attributes: o.attributes, ignored: o.ignored })
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
    /// What a name of the file became, in the order in which nodes are read: names of one value are listed by it.
    values: IndexMap<String, ValueId>,
    /// Values that are unsigned in the file.
    unsigned: HashSet<ValueId>,
    /// Inputs whose outermost size nobody gave, with its symbol; it is taken for 1.
    assumed: HashMap<ValueId, String>,
    /// Constants of the file, as they are there.
    constants: HashMap<String, Tensor>,
    /// Outputs that are not supported, with what makes them.
    left_out: HashMap<String, String>,
    /// Bytes that the import may still make of constants.
    room: usize,
    opset: i64,
    /// Where data files may be.
    folders: &'a [&'a Path],
}

impl Context<'_> {
    fn begin(&mut self, graph: &GraphProto) -> Result<(), String> {
        for t in &graph.initializer {
            let value = tensor::tensor(t, self.folders)?;
            if t.data_location == 1 {
                // Data beside the file count as the file's.
                self.room = self.room.saturating_add(value.size_bytes().saturating_mul(16));
            }
            if self.constants.insert(t.name.clone(), value).is_some() {
                return Err(format!("two constants have the name `{}`", t.name));
            }
        }
        for sparse in &graph.sparse_initializer {
            let value = tensor::dense(sparse, self.folders, &mut self.room)?;
            let name = sparse.values.as_ref().map(|v| v.name.clone()).unwrap_or_default();
            if self.constants.insert(name.clone(), value).is_some() {
                return Err(format!("two constants have the name `{name}`"));
            }
        }
        Ok(())
    }

    fn inputs(&mut self, graph: &GraphProto, sizes: &Sizes, file: &str) -> Result<(), ImportError> {
        let malformed = |reason: String| ImportError::malformed(file, reason);
        let places = graph.input.iter().enumerate().filter(|(_, i)| !self.constants.contains_key(&i.name));
        let given: Vec<(usize, &ValueInfoProto)> = places.collect();
        let names: Vec<&str> = given.iter().map(|(_, info)| info.name.as_str()).collect();
        let mut inputs = Vec::new();
        for (&(i, info), rank) in given.iter().zip(sizes.ranks(&names)) {
            inputs.push((info, value_type(info, i, rank).map_err(malformed)?));
        }
        let types: Vec<(&str, &TensorType)> = inputs.iter().map(|(i, ty)| (i.name.as_str(), ty)).collect();
        let wrong = |reason| ImportError::Sizes { file: file.into(), reason };
        let (given, bound) = (sizes.given(&types).map_err(wrong)?, sizes.bound(&types).map_err(wrong)?);
        for (info, ty) in inputs {
            let open = match ty.dims.first() {
                Some(Dim::Symbol(s)) if !given.contains_key(s) => Some(s.clone()),
                _ => None,
            };
            let ty = ty.bind(&bound);
            if !node::reasonable(&ty) {
                return Err(malformed(format!("its input `{}` is {ty}, which is more than 2^31 elements", info.name)));
            }
            let mut v = self.builder.input(&info.name, ty.clone());
            if ty.dtype == DType::U8 {
                let node = self.builder.node(&format!("{}/shift_sign", info.name), ShiftSign {}, &[v]);
                v = node.map_err(|e| malformed(e.to_string()))?;
                self.unsigned.insert(v);
            }
            if let Some(symbol) = open {
                self.assumed.insert(v, symbol);
            }
            if self.values.insert(info.name.clone(), v).is_some() {
                return Err(malformed(format!("two inputs have the name `{}`", info.name)));
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
        let t = self.constants.get(name).ok_or_else(|| match self.left_out.get(name) {
            Some(maker) => format!("`{name}`, an output beside the first of {maker}, is not supported"),
            None => format!("`{name}` is not defined; neither an input, a constant nor a node has this name"),
        })?;
        let unsigned = t.dtype() == DType::U8;
        let v = self.builder.constant(name, tensor::shifted(t.clone()));
        if unsigned {
            self.unsigned.insert(v);
        }
        self.values.insert(name.into(), v);
        Ok(v)
    }
}

/// The type of an input. Where the file says no shape, it has as many open sizes as `rank`.
fn value_type(info: &ValueInfoProto, place: usize, rank: Option<usize>) -> Result<TensorType, String> {
    let name = &info.name;
    let ty = info.r#type.as_ref().and_then(|t| t.tensor_type.as_ref());
    let ty = ty.ok_or_else(|| format!("input `{name}` is no tensor"))?;
    let dtype = tensor::dtype(ty.elem_type).map_err(|e| format!("input `{name}`: {e}"))?;
    let symbol = |i: usize| Dim::Symbol(format!("input_{place}_{i}"));
    let missing = || format!("input `{name}` has no shape; give it with --shape {name}=SIZExSIZE…");
    let Some(shape) = &ty.shape else {
        return Ok(TensorType { dtype, dims: (0..rank.ok_or_else(missing)?).map(symbol).collect() });
    };
    rank_in_bounds(shape.dim.len()).map_err(|e| format!("input `{name}`: {e}"))?;
    let dim = |(i, d): (usize, &proto::DimensionProto)| match (d.dim_value, d.dim_param.as_deref()) {
        (Some(n), _) if n >= 0 => {
            usize::try_from(n).map(Dim::Fixed).map_err(|_| format!("input `{name}` is too large"))
        }
        // Some writers of files say -1 for what is open.
        (Some(n), _) if n < -1 => Err(format!("input `{name}` has a size of {n}")),
        (_, Some(s)) if s.starts_with(char::is_alphabetic) && s.chars().all(|c| c.is_alphanumeric() || c == '_') => {
            Ok(Dim::Symbol(s.into()))
        }
        _ => Ok(symbol(i)),
    };
    Ok(TensorType { dtype, dims: shape.dim.iter().enumerate().map(dim).collect::<Result<_, _>>()? })
}
