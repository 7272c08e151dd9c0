//! TFLite files.
//!
//! Quantized networks are imported in integer form, with the multipliers that TFLite's own preparation computes, so
//! that results equal its reference kernels. uint8 tensors become int8 (values and zero points less 128), with
//! `shift_sign` at the network's inputs and outputs. Float layers with 8-bit weights quantize their data row by row or
//! image by image, as TFLite does; 16-bit weights become floats at import.

mod about;
mod flat;
mod names;
mod ops;
mod quant;
mod scaling;
mod schema;
mod sparsity;
mod wide;

use super::error::{ImportError, UnsupportedNode};
use super::reason::Reason;
use super::room::Room;
use super::semantic::SemanticBuilder;
use super::semantic::flow::Importer;
use super::sources::{self, Sources};
use super::{Format, ImportOptions, ModelFile};
use crate::graph::op::{ShiftSign, Transpose};
use crate::graph::{DType, Graph, Tensor, TensorData, TensorType, ValueId};
use indexmap::IndexMap;
use quant::PerTensor;
use schema::{Operator, Subgraph, TensorInfo, Type};
use std::collections::{BTreeMap, HashMap};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use tilewright_runtime::artifact::About;

/// The page that lists the operators.
const PAGE: &str = "docs/tflite.md";

/// Bytes of constants and names that the import of any file may make, beside sixteen times those of the file.
const ROOM: usize = 32 << 20;

/// Operators that can be imported: name, types of the data, and further requirements.
pub fn operators() -> Vec<[String; 3]> {
    ops::described()
}

/// TFLite as a format of models.
pub struct Tflite;

impl Format for Tflite {
    fn name(&self) -> &'static str {
        "TFLite"
    }

    fn suffix(&self) -> &'static str {
        ".tflite"
    }

    fn page(&self) -> &'static str {
        PAGE
    }

    fn recognizes(&self, bytes: &[u8]) -> bool {
        bytes.get(4..8) == Some(b"TFL3")
    }

    fn import(&self, file: &ModelFile, options: &ImportOptions) -> Result<(Graph, Sources), ImportError> {
        if options.values.is_empty() {
            let (graph, sources) = import_traced(file.bytes, file.name, &BTreeMap::new())?;
            return Ok((options.sizes.bind(graph, file.name)?, sources));
        }
        let open = self.open_inputs(file, options)?;
        let types: Vec<_> = open.iter().map(|(name, ty)| (name.as_str(), ty)).collect();
        let (sizes, values) = options.sizes.with_values(&options.values, &types, file.name)?;
        let (graph, sources) = import_traced(file.bytes, file.name, &values)?;
        Ok((sizes.bind(graph, file.name)?, sources))
    }

    fn open_inputs(&self, file: &ModelFile, _: &ImportOptions) -> Result<Vec<(String, TensorType)>, ImportError> {
        let graph = import(file.bytes, file.name)?;
        Ok(graph.inputs().map(|(name, v)| (name.to_string(), graph.ty(v).clone())).collect())
    }

    fn about(&self, bytes: &[u8]) -> Option<About> {
        about::about(bytes)
    }
}

/// Imports a TFLite file; `file` is its name in messages.
///
/// # Errors
/// If the file is damaged, or has unsupported operators; the error lists all of them.
pub fn import(bytes: &[u8], file: &str) -> Result<Graph, ImportError> {
    Ok(import_traced(bytes, file, &BTreeMap::new())?.0)
}

/// Imports a TFLite file for these values of inputs, and maps the graph's values to the file's tensors.
///
/// # Errors
/// Like [`import`].
pub fn import_traced(
    bytes: &[u8],
    file: &str,
    fixed: &BTreeMap<String, Tensor>,
) -> Result<(Graph, Sources), ImportError> {
    if !Tflite.recognizes(bytes) {
        return Err(ImportError::malformed(file, "it lacks the file identifier TFL3 of a TFLite file"));
    }
    let malformed = |reason: String| ImportError::malformed(file, reason);
    let mut room = Room::of(bytes.len(), ROOM);
    let graphs = schema::read(bytes, &mut room).map_err(malformed)?;
    let mut unsupported = Vec::new();
    for graph in used(&graphs) {
        for (i, op) in graph.operators.iter().enumerate().filter(|(_, op)| ops::find(op.code).is_none()) {
            let operator = names::operator_name(op.code, &op.custom);
            let (name, known) = (graph.node_name(i), ops::names());
            room.take_for(name.len() + operator.len(), "operators").map_err(malformed)?;
            unsupported.push(UnsupportedNode::new(name, operator, known.iter().map(String::as_str)));
        }
    }
    if !unsupported.is_empty() {
        let (supported, page) = (ops::names().len(), PAGE);
        return Err(ImportError::Unsupported {
            file: file.into(),
            nodes: unsupported,
            supported,
            page,
            domains: Vec::new(),
        });
    }
    let model = &graphs[0];
    let name = if model.name.is_empty() { "main" } else { &model.name };
    let (net, values) = (SemanticBuilder::new(name, room), IndexMap::new());
    let mut cx = Context { net, values, model, graphs: &graphs, depth: 0 };
    cx.inputs(fixed).map_err(malformed)?;
    if let Err(Fault { node, operator, reason }) = cx.nodes("") {
        let error = ImportError::Node { file: file.into(), node, operator, reason: reason.0 };
        return Err(cx.net.error(error, &cx.net.graph));
    }
    cx.outputs().map_err(malformed)?;
    let Context { net, values, .. } = cx;
    let (graph, places, _) = net.finish(file)?;
    let tensors = values.into_iter().map(|(t, value)| {
        let info = &model.tensors[t];
        let quantization = quant::per_tensor(info).ok().map(|q| (q.scale, q.zero_point));
        sources::Tensor {
            name: info.name.clone(),
            value: places.of(value),
            unsigned: info.ty == Type::U8,
            quantization,
        }
    });
    let sources = Sources::new(&graph, tensors, fixed);
    Ok((graph, sources))
}

/// Names of the graph's inputs or outputs: the file's names, which need not be unique.
#[derive(Default)]
struct Names(HashMap<String, usize>);

impl Names {
    /// A name that no other tensor has: this one, or this one with a number.
    fn of(&mut self, tensor: usize, name: String) -> String {
        let numbered = (1..).map(|k| format!("{name}:{k}"));
        let mut candidates = std::iter::once(name.clone()).chain(numbered);
        let free = candidates.find(|n| *self.0.entry(n.clone()).or_insert(tensor) == tensor);
        free.unwrap_or(name)
    }
}

/// Graphs that the model's own graph reaches, itself first.
fn used<'g, 'a>(graphs: &'g [Subgraph<'a>]) -> Vec<&'g Subgraph<'a>> {
    let (mut places, mut at) = (vec![0], 0);
    while let Some(graph) = places.get(at).and_then(|place| graphs.get(*place)) {
        for op in graph.operators.iter().filter(|op| matches!(op.code, 118 | 119)) {
            let fields = [0, 1].map(|field| op.options.and_then(|options| options.i32(field).ok()));
            for place in fields.into_iter().flatten().filter_map(|place| usize::try_from(place).ok()) {
                if place < graphs.len() && !places.contains(&place) {
                    places.push(place);
                }
            }
        }
        at += 1;
    }
    places.into_iter().filter_map(|place| graphs.get(place)).collect()
}

/// How deep graphs are within each other at most.
const DEPTH: usize = 32;

/// A node that cannot be imported.
struct Fault {
    node: String,
    operator: String,
    reason: Reason,
}

struct Context<'a> {
    /// The graph whose nodes are imported.
    model: &'a Subgraph<'a>,
    /// All graphs of the file.
    graphs: &'a [Subgraph<'a>],
    /// How many graphs are around this one.
    depth: usize,
    net: SemanticBuilder,
    /// The value of each tensor, in the order of the operators; if several tensors became one value, their names are
    /// listed in this order.
    values: IndexMap<usize, ValueId>,
}

impl Importer for Context<'_> {
    fn net(&mut self) -> &mut SemanticBuilder {
        &mut self.net
    }
}

impl<'a> Subgraph<'a> {
    /// A node's name: that of its first result, or its place.
    fn node_name(&self, i: usize) -> String {
        let tensor = self.operators[i].outputs.first().map(|&t| self.tensors[t].name.as_str());
        tensor.filter(|n| !n.is_empty()).map_or_else(|| format!("#{i}"), str::to_owned)
    }
}

impl<'a> Context<'a> {
    /// Imports the graph's nodes; their names begin with `prefix`.
    fn nodes(&mut self, prefix: &str) -> Result<(), Fault> {
        let graph = self.model;
        for (i, op) in graph.operators.iter().enumerate() {
            let Some(import) = ops::find(op.code) else { continue };
            let node = format!("{prefix}{}", graph.node_name(i));
            self.net.begin(&node, self.depth > 0);
            let mut n = NodeContext { cx: self, op };
            if let Err(reason) = ops::options::check(op).map_err(Reason).and_then(|()| import(&mut n)) {
                return Err(Fault { node, operator: names::operator_name(op.code, &op.custom), reason });
            }
        }
        Ok(())
    }

    /// Imports a graph of the file for these inputs, and returns its outputs.
    fn inline(&mut self, at: usize, inputs: &[ValueId], label: &str) -> Result<Vec<ValueId>, Reason> {
        let graph = self.graphs.get(at).ok_or_else(|| Reason(format!("there is no subgraph {at}")))?;
        if self.depth >= DEPTH {
            return Err(format!("more than {DEPTH} subgraphs within each other are not supported").into());
        }
        if graph.inputs.len() != inputs.len() {
            let (takes, given) = (graph.inputs.len(), inputs.len());
            return Err(format!("its subgraph {at} takes {takes} tensors, but it gets {given}").into());
        }
        let mut values = IndexMap::new();
        for (&t, &v) in graph.inputs.iter().zip(inputs) {
            let info = &graph.tensors[t];
            let declared = if info.ty == Type::U8 && info.quantization.is_some() { DType::I8 } else { dtype(info)? };
            let declared = TensorType::new(declared, &info.shape);
            if *self.net.ty(v) != declared {
                let found = self.net.ty(v);
                return Err(
                    format!("its subgraph {at} takes {declared} as `{}`, but it gets {found}", info.name).into()
                );
            }
            values.insert(t, v);
        }
        let net = std::mem::replace(&mut self.net, SemanticBuilder::new("", Room::of(0, 0)));
        let mut inner = Context { model: graph, graphs: self.graphs, depth: self.depth + 1, net, values };
        let built = inner.nodes(&format!("{label}/")).map_err(|Fault { node, operator, reason }| {
            Reason(format!("in subgraph {at}, node `{node}` ({operator}): {}", reason.0))
        });
        let outputs =
            built.and_then(|()| Ok(graph.outputs.iter().map(|&t| inner.value(t)).collect::<Result<_, _>>()?));
        self.net = inner.net;
        self.net.begin(label, self.depth > 0);
        outputs
    }

    /// For each input of a graph, whether its output at the same place is the input itself.
    fn kept(&self, at: usize) -> Result<Vec<bool>, Reason> {
        let graph = self.graphs.get(at).ok_or_else(|| Reason(format!("there is no subgraph {at}")))?;
        Ok(graph.inputs.iter().zip(&graph.outputs).map(|(input, output)| input == output).collect())
    }

    /// Defines the inputs. Those in `fixed` are constants of the graph, which nevertheless has the inputs.
    fn inputs(&mut self, fixed: &BTreeMap<String, Tensor>) -> Result<(), String> {
        let mut names = Names::default();
        for (i, &t) in self.model.inputs.iter().enumerate() {
            let info = &self.model.tensors[t];
            let dtype = dtype(info)?;
            let name = names.of(t, if info.name.is_empty() { format!("input_{i}") } else { info.name.clone() });
            self.net.room.take_for(name.len(), "inputs")?;
            let mut v = self.net.graph.input(&name, TensorType::new(dtype, &info.shape));
            if let Some(value) = fixed.get(&name) {
                v = self.net.graph.constant(&name, value.clone());
            }
            if dtype == DType::U8 && info.quantization.is_some() {
                v = self.shift_sign(&name, v)?;
            }
            if self.values.insert(t, v).is_some() {
                return Err(format!("its tensor `{name}` is listed twice among the inputs"));
            }
        }
        Ok(())
    }

    fn outputs(&mut self) -> Result<(), String> {
        let (mut names, mut given) = (Names::default(), HashMap::new());
        for (i, &t) in self.model.outputs.iter().enumerate() {
            let info = &self.model.tensors[t];
            let name = names.of(t, if info.name.is_empty() { format!("output_{i}") } else { info.name.clone() });
            self.net.room.take_for(name.len(), "outputs")?;
            let mut v = self.value(t)?;
            // A tensor that is listed again is the same value.
            if let Some(&known) = given.get(&t) {
                v = known;
            } else if info.ty == Type::U8 && self.net.graph.ty(v).dtype == DType::I8 {
                v = self.shift_sign(&name, v)?;
            }
            given.insert(t, v);
            self.net.graph.output(&name, v);
        }
        Ok(())
    }

    /// Converts uint8 to int8, or int8 to uint8.
    fn shift_sign(&mut self, name: &str, v: ValueId) -> Result<ValueId, String> {
        let node = self.net.graph.node(&format!("{name}/shift_sign"), ShiftSign {}, &[v]);
        node.map_err(|e| e.to_string())
    }

    /// The value of a tensor; a constant is added to the graph at its first use.
    fn value(&mut self, t: usize) -> Result<ValueId, String> {
        if let Some(&v) = self.values.get(&t) {
            return Ok(v);
        }
        let info = &self.model.tensors[t];
        self.net.room.take_for(info.data.as_deref().map_or(0, <[u8]>::len), &info.name)?;
        let constant = constant(info)?;
        let v = self.net.graph.constant(&self.model.tensors[t].name, constant);
        self.values.insert(t, v);
        Ok(v)
    }
}

fn dtype(info: &TensorInfo) -> Result<DType, String> {
    match info.ty {
        Type::F32 | Type::F16 => Ok(DType::F32),
        Type::I32 => Ok(DType::I32),
        Type::U8 => Ok(DType::U8),
        Type::I64 => Ok(DType::I64),
        Type::Bool => Ok(DType::Bool),
        Type::I8 => Ok(DType::I8),
        Type::I16 => Ok(DType::I16),
        Type::U16 => Ok(DType::U16),
        Type::U32 => Ok(DType::U32),
        Type::U64 => Ok(DType::U64),
        Type::F64 => Ok(DType::F64),
        Type::Other(n) => {
            let supported = "FLOAT32, FLOAT16, FLOAT64, BOOL and integers; INT4 only for constants";
            let found = names::type_name(n);
            Err(format!("tensor `{}` has the element type {found}; supported are {supported}", info.name))
        }
    }
}

/// The value of a constant: float16 as float32, quantized uint8 as int8.
fn constant(info: &TensorInfo) -> Result<Tensor, String> {
    let name = &info.name;
    if info.variable {
        let why = "a variable, whose value is kept from one run to the next, which is not supported";
        return Err(format!("tensor `{name}` is {why}"));
    }
    let data = info.data.as_deref();
    let data = data.ok_or_else(|| format!("tensor `{name}` is neither computed before its use nor a constant"))?;
    let wrong = || format!("tensor `{name}`: {} bytes do not fit its shape {:?}", data.len(), info.shape);
    if info.ty == Type::F16 {
        let half = data.chunks_exact(2).map(|b| half::f16::from_le_bytes([b[0], b[1]]).to_f32());
        return Tensor::new(&info.shape, half.collect()).filter(|_| data.len() % 2 == 0).ok_or_else(wrong);
    }
    let t = Tensor::from_bytes(dtype(info)?, &info.shape, data).ok_or_else(wrong)?;
    match t.data() {
        TensorData::U8(v) if info.quantization.is_some() => Ok(Tensor::from_fn(&info.shape, |i| (v[i] ^ 0x80) as i8)),
        _ => Ok(t),
    }
}

/// Imports one node.
struct NodeContext<'c, 'a> {
    cx: &'c mut Context<'a>,
    op: &'a Operator<'a>,
}

impl Deref for NodeContext<'_, '_> {
    type Target = SemanticBuilder;

    fn deref(&self) -> &SemanticBuilder {
        &self.cx.net
    }
}

impl DerefMut for NodeContext<'_, '_> {
    fn deref_mut(&mut self) -> &mut SemanticBuilder {
        &mut self.cx.net
    }
}

impl<'a> NodeContext<'_, 'a> {
    fn input_place(&self, i: usize) -> Result<usize, Reason> {
        let t = self.op.inputs.get(i).copied().flatten();
        t.ok_or_else(|| Reason(format!("operand {i} is missing")))
    }

    fn input_info(&self, i: usize) -> Result<&'a TensorInfo<'a>, Reason> {
        Ok(&self.cx.model.tensors[self.input_place(i)?])
    }

    fn output_info(&self) -> Result<&'a TensorInfo<'a>, Reason> {
        self.output_info_at(0)
    }

    fn output_info_at(&self, i: usize) -> Result<&'a TensorInfo<'a>, Reason> {
        let t = self.op.outputs.get(i).ok_or_else(|| format!("it has no output {i}"))?;
        Ok(&self.cx.model.tensors[*t])
    }

    /// The scale and zero point of the node's first output.
    fn result(&self) -> Result<PerTensor, Reason> {
        quant::divisor(self.output_info()?)
    }

    /// The shape of the `i`-th output, if the file says all of it.
    fn declared_shape(&self, i: usize) -> Result<Option<Vec<usize>>, Reason> {
        let info = self.output_info_at(i)?;
        Ok(Some(info.shape.clone()).filter(|_| !info.is_open()))
    }

    fn has_input(&self, i: usize) -> bool {
        matches!(self.op.inputs.get(i), Some(Some(_)))
    }

    fn input(&mut self, i: usize) -> Result<ValueId, Reason> {
        let place = self.input_place(i)?;
        Ok(self.cx.value(place)?)
    }

    /// The value of a constant operand, or of one that an earlier node computed from a constant.
    fn constant_input(&self, i: usize) -> Result<Tensor, Reason> {
        let info = self.input_info(i)?;
        if let Some(known) = self.known(i)? {
            return known.map(|t| t.as_ref().clone()).ok_or_else(|| {
                if let Ok(Some(v)) = self.input_place(i).map(|place| self.cx.values.get(&place)) {
                    self.must_know(*v);
                }
                format!("operand {i}, `{}`, must be a constant, not an input or computed at run time", info.name).into()
            });
        }
        Ok(constant(info)?)
    }

    /// The constant that an operand already became. The inner option is `None` if it is computed or an input, the outer
    /// one if it is not in the graph yet.
    fn known(&self, i: usize) -> Result<Option<Option<&Arc<Tensor>>>, Reason> {
        let value = self.cx.values.get(&self.input_place(i)?);
        Ok(value.map(|&v| self.constant_of(v)))
    }

    /// A constant operand as floats, whatever its type.
    fn floats(&self, i: usize) -> Result<Tensor, Reason> {
        quant::dequantized(self.input_info(i)?, self.constant_input(i)?)
    }

    /// An operand with weights or a bias, with dimensions in this order: computed, an input, or a constant, which
    /// becomes floats if `floats`.
    fn weight(&mut self, i: usize, suffix: &str, floats: bool, order: Option<&[usize]>) -> Result<ValueId, Reason> {
        let place = self.input_place(i)?;
        if let Some(&v) = self.cx.values.get(&place)
            && self.constant_of(v).is_none()
        {
            return match order {
                Some(perm) => self.node(&format!("{suffix}/transpose"), Transpose { perm: perm.to_vec() }, &[v]),
                None => Ok(v),
            };
        }
        let mut t = if floats { self.floats(i)? } else { self.constant_input(i)? };
        if let Some(order) = order {
            t = t.transposed(order).ok_or(Reason("its weights have the wrong number of dimensions".into()))?;
        }
        Ok(self.made(suffix, t))
    }

    /// The elements of a constant operand of i32 or i64.
    fn integers(&self, i: usize) -> Result<Vec<i64>, Reason> {
        let t = self.constant_input(i)?;
        match t.dtype() {
            DType::I16 | DType::I32 | DType::I64 => Ok(t.ints().into_iter().map(|x| x as i64).collect()),
            other => Err(format!("operand {i} must be of type i16, i32 or i64, found {other}").into()),
        }
    }

    /// Reserves memory for tables with this number of rows, columns or channels.
    fn reserve_tables(&mut self, elements: usize) -> Result<(), Reason> {
        // Four numbers of four bytes each, and a few temporary lists of them.
        let bytes = elements.checked_mul(32);
        Ok(self.room.take(bytes, || format!("needs tables for {elements} rows, columns or channels"))?)
    }

    /// Makes `v` the node's only output, with the shape that the file declares.
    fn output(&mut self, v: ValueId) -> Result<(), Reason> {
        if self.op.outputs.len() != 1 {
            return Err(format!("it has {} outputs, but one is expected", self.op.outputs.len()).into());
        }
        self.output_at(0, v)
    }

    /// Makes `v` the node's `i`-th output.
    fn output_at(&mut self, i: usize, v: ValueId) -> Result<(), Reason> {
        let info = self.output_info_at(i)?;
        let place = self.op.outputs[i];
        let found = self.ty(v);
        let declared = if info.ty == Type::U8 && info.quantization.is_some() { DType::I8 } else { dtype(info)? };
        // Sizes that the file leaves open follow from the operators.
        let suits = found.shape().is_some_and(|shape| {
            let mut sizes = shape.iter().zip(&info.shape).zip(&info.open);
            shape.len() == info.shape.len() && sizes.all(|((found, declared), open)| *open || found == declared)
        });
        if found.dtype != declared || !suits {
            if info.shape.is_empty() && !info.has_rank && found.rank() > 0 {
                return Err(format!("the file does not declare the shape of its result, which is {found}").into());
            }
            let declared = TensorType::new(declared, &info.shape);
            return Err(format!("its result is {found}, but the file declares {declared}").into());
        }
        if self.cx.values.insert(place, v).is_some() {
            return Err(format!("tensor `{}` is computed twice", info.name).into());
        }
        Ok(())
    }
}
