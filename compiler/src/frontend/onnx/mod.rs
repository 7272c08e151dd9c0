//! ONNX files.
//!
//! Networks keep `[N, C, H, W]` and their float operators; QuantizeLinear and DequantizeLinear become `quantize` and
//! `dequantize`, which the passes make integer. Every uint8 tensor becomes int8, 128 less, with `shift_sign` at the
//! network's edge. Sizes that the file leaves open are given to the import, since shapes are computed there; where the
//! outermost size of an input is left open and not given, it is one. Half and double precision are single precision
//! here.

mod about;
mod attribute;
mod body;
mod context;
mod external;
mod function;
mod node;
mod ops;
mod order;
mod packed;
mod proto;
mod region;
mod tensor;
mod text;
mod used;
mod write;

pub use write::{WriteError, write};
#[cfg(test)]
pub(crate) mod testing;

use super::error::ImportError;
use super::room::Room;
use super::semantic::SemanticBuilder;
use super::sources::{self, Sources};
use super::{Format, ImportOptions, ModelFile};
use crate::graph::{Graph, Tensor, TensorType};
use context::{Context, Named, Scope, declared_types};
use function::Functions;
use prost::Message;
use proto::{GraphProto, ModelProto};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use tilewright_runtime::artifact::About;

/// The page that lists the operators.
const PAGE: &str = "docs/onnx.md";

/// The sets of operators whose meaning is known.
const OPSETS: std::ops::RangeInclusive<i64> = 1..=27;

/// Bytes of constants that the import of any file may make, beside sixteen times those of the file and its data.
const ROOM: usize = 64 << 20;

/// ONNX as a format of models.
pub struct Onnx;

impl Format for Onnx {
    fn name(&self) -> &'static str {
        "ONNX"
    }

    fn suffix(&self) -> &'static str {
        ".onnx"
    }

    fn page(&self) -> &'static str {
        PAGE
    }

    fn recognizes(&self, bytes: &[u8]) -> bool {
        is_onnx(bytes)
    }

    fn import(&self, file: &ModelFile, options: &ImportOptions) -> Result<(Graph, Sources), ImportError> {
        let resolved = file.path.canonicalize().ok();
        let folders: Vec<&Path> =
            [Some(file.path), resolved.as_deref()].into_iter().filter_map(|p| p?.parent()).collect();
        import_traced(file.bytes, file.name, &folders, options)
    }

    fn open_inputs(&self, file: &ModelFile, options: &ImportOptions) -> Result<Vec<(String, TensorType)>, ImportError> {
        open_inputs(file.bytes, file.name, options)
    }

    fn about(&self, bytes: &[u8]) -> Option<About> {
        about::about(bytes)
    }

    fn has_external_data(&self, bytes: &[u8]) -> bool {
        let elsewhere = |graph: &GraphProto| graph.initializer.iter().any(|t| t.data_location == 1);
        ModelProto::read(bytes).is_ok_and(|model| model.graph.as_ref().is_some_and(elsewhere))
    }
}

/// Whether bytes are the format's message. It has no mark of its own: either they begin as the program libraries write
/// it, with the format's version, one of the first 31, and then another of the message's fields, or the whole consists of
/// the message's fields, a graph among them.
fn is_onnx(bytes: &[u8]) -> bool {
    // Keys of ModelProto's fields 2 to 8 and 14, with their wire types.
    const NEXT: [u8; 8] = [0x12, 0x1a, 0x22, 0x28, 0x32, 0x3a, 0x42, 0x72];
    matches!(bytes, [0x08, 1..=31, next, ..] if NEXT.contains(next)) || is_message(bytes)
}

/// Whether bytes consist of fields of the format's message, with a graph and one more.
fn is_message(mut bytes: &[u8]) -> bool {
    use prost::encoding::{WireType, decode_key, decode_varint};
    let mut found = BTreeSet::new();
    while !bytes.is_empty() {
        let Ok((field, wire)) = decode_key(&mut bytes) else { return false };
        let known = match wire {
            WireType::Varint => matches!(field, 1 | 5) && decode_varint(&mut bytes).is_ok(),
            WireType::LengthDelimited => {
                let rest = decode_varint(&mut bytes).ok().and_then(|n| bytes.get(usize::try_from(n).ok()?..));
                bytes = rest.unwrap_or_default();
                matches!(field, 2..=4 | 6..=8 | 14 | 20 | 25 | 26) && rest.is_some()
            }
            _ => false,
        };
        if !known {
            return false;
        }
        found.insert(field);
    }
    found.contains(&7) && found.len() > 1
}

/// The graph of an ONNX file; `file` is its name for messages, `folder` where data files beside it are looked for.
///
/// # Errors
/// When the file is damaged, or has operators that are not supported, all of which are listed.
pub fn import(
    bytes: &[u8],
    file: &str,
    folder: Option<&Path>,
    options: impl Into<ImportOptions>,
) -> Result<Graph, ImportError> {
    Ok(import_traced(bytes, file, folder.as_slice(), &options.into())?.0)
}

/// The same, with what the file calls the graph's values. Data files are looked for in several folders, in this order:
/// the one that the model is in by its name, and the one that it is in when links are followed.
///
/// # Errors
/// As [`import`].
pub fn import_traced(
    bytes: &[u8],
    file: &str,
    folders: &[&Path],
    options: &ImportOptions,
) -> Result<(Graph, Sources), ImportError> {
    let malformed = |reason: String| ImportError::malformed(file, reason);
    let model = message(bytes, file)?;
    let (mut cx, graph) = context(&model, bytes, file, folders, options)?;
    cx.check_operators(&graph.node)?;
    cx.constants(graph, false).map_err(malformed)?;
    let values = cx.inputs(graph, options)?;
    cx.nodes(&graph.node)?;
    cx.outputs(graph).map_err(malformed)?;
    let Context { net, traced, unsigned, .. } = cx;
    let (graph, places, counted) = net.finish(file)?;
    let tensors = traced.into_iter().map(|(name, value)| {
        let unsigned = unsigned.contains(&value);
        sources::Tensor { name, value: places.of(value), unsigned, quantization: None }
    });
    let sources = Sources::new(&graph, tensors, &values).with_counted(counted);
    Ok((graph, sources))
}

/// Reads a file's message.
fn message(bytes: &[u8], file: &str) -> Result<ModelProto, ImportError> {
    ModelProto::read(bytes).map_err(|e| ImportError::malformed(file, format!("it is no ONNX file: {e}")))
}

/// The inputs of an ONNX file, with the sizes that it leaves open.
///
/// # Errors
/// When the file is damaged.
fn open_inputs(bytes: &[u8], file: &str, options: &ImportOptions) -> Result<Vec<(String, TensorType)>, ImportError> {
    let model = message(bytes, file)?;
    let (mut cx, graph) = context(&model, bytes, file, &[], options)?;
    for name in graph.constants() {
        // Only whether there is a value matters here.
        let _ = cx.define(name, Named::LeftOut(String::new()));
    }
    let inputs = cx.declared_inputs(graph, options)?;
    Ok(inputs.into_iter().map(|(info, ty)| (info.name.clone(), ty)).collect())
}

/// The state at the beginning of an import, and the file's graph.
fn context<'a>(
    model: &'a ModelProto,
    bytes: &[u8],
    file: &'a str,
    folders: &'a [&'a Path],
    options: &'a ImportOptions,
) -> Result<(Context<'a>, &'a GraphProto), ImportError> {
    let malformed = |reason: String| ImportError::malformed(file, reason);
    let graph = model.graph.as_ref().ok_or_else(|| malformed("it is no ONNX file: it has no graph".into()))?;
    let opset = match body::opset(&model.opset_import).map_err(malformed)? {
        // Files of the format's first two versions need not name it.
        None if (1..3).contains(&model.ir_version) => 1,
        named => named.ok_or_else(|| malformed("it does not name its operator set".into()))?,
    };
    let name = if graph.name.is_empty() { "main" } else { &graph.name };
    let types = declared_types(&options.packed, graph.declared());
    let cx = Context {
        file,
        net: SemanticBuilder::new(name, Room::of(bytes.len(), ROOM)),
        scopes: vec![Scope { opset: Some(opset), types, ..Scope::default() }],
        around: Vec::new(),
        inner: Cell::new(None),
        functions: Functions::new(&model.functions).map_err(malformed)?,
        traced: Vec::new(),
        unsigned: HashSet::new(),
        assumed: HashMap::new(),
        folders,
        packed: &options.packed,
        bound: BTreeMap::new(),
    };
    Ok((cx, graph))
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
