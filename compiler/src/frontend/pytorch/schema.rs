//! The program in an archive: what `torch/_export/serde/schema.py` defines, as much as the import reads.

use super::expression;
use crate::graph::DType;
use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Deserializer};
use std::collections::{BTreeMap, HashMap, HashSet};
use tilewright_runtime::tensor::NarrowFloat;

/// Greatest major version of the schema that is read.
pub(super) const VERSION: i64 = 8;

#[derive(Debug, Deserialize)]
pub(super) struct Program {
    pub graph_module: GraphModule,
    pub schema_version: Version,
}

#[derive(Debug, Deserialize)]
pub(super) struct Version {
    pub major: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct GraphModule {
    pub graph: Graph,
    pub signature: Signature,
    #[serde(default)]
    pub module_call_graph: Vec<ModuleCall>,
}

/// The call of a module; that of the outermost one tells the structure of its results.
#[derive(Debug, Deserialize)]
pub(super) struct ModuleCall {
    pub fqn: String,
    pub signature: Option<CallSignature>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CallSignature {
    pub out_spec: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Graph {
    pub inputs: Vec<Argument>,
    pub outputs: Vec<Argument>,
    pub nodes: Vec<Node>,
    pub tensor_values: HashMap<String, TensorMeta>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Node {
    /// The operator, such as `torch.ops.aten.linear.default`.
    pub target: String,
    pub inputs: Vec<NamedArgument>,
    pub outputs: Vec<Argument>,
}

#[derive(Debug, Deserialize)]
pub(super) struct NamedArgument {
    pub name: String,
    pub arg: Argument,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Name {
    pub name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct GraphArgument {
    pub graph: Graph,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Argument {
    AsNone(IgnoredAny),
    AsTensor(Name),
    AsTensors(Vec<Name>),
    AsOptionalTensors(Vec<OptionalTensor>),
    AsOptionalTensor(OptionalTensor),
    AsInt(i64),
    AsInts(Vec<i64>),
    AsFloat(Float),
    AsFloats(Vec<Float>),
    AsBool(bool),
    AsBools(Vec<bool>),
    AsString(String),
    AsSymInt(Symbolic),
    AsSymInts(Vec<Symbolic>),
    AsSymFloat(Symbolic),
    AsSymBool(Symbolic),
    AsScalarType(u8),
    AsMemoryFormat(IgnoredAny),
    AsLayout(IgnoredAny),
    AsDevice(IgnoredAny),
    AsGraph(Box<GraphArgument>),
    #[serde(untagged)]
    Other(IgnoredAny),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OptionalTensor {
    AsTensor(Name),
    AsNone(IgnoredAny),
}

/// A number that is known only when sizes are, by its name, or a known one.
#[derive(Debug, Deserialize)]
pub(super) enum Symbolic {
    #[serde(rename = "as_name")]
    Name(String),
    #[serde(rename = "as_int")]
    Int(i64),
    #[serde(rename = "as_float")]
    Float(Float),
    #[serde(rename = "as_bool")]
    Bool(bool),
}

/// A number of JSON, or one that JSON does not have, as text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Float(pub f64);

impl<'de> Deserialize<'de> for Float {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Float, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(f64),
            Text(String),
        }
        match Either::deserialize(from)? {
            Either::Number(x) => Ok(Float(x)),
            Either::Text(text) => match text.as_str() {
                "Infinity" => Ok(Float(f64::INFINITY)),
                "-Infinity" => Ok(Float(f64::NEG_INFINITY)),
                "NaN" => Ok(Float(f64::NAN)),
                other => Err(D::Error::custom(format!("`{other}` is no number"))),
            },
        }
    }
}

/// A size: a number, or an expression of symbols.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Size {
    AsInt(i64),
    AsExpr(Expression),
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Expression {
    pub expr_str: String,
}

impl Size {
    /// The number, if the symbols in it are known.
    pub fn known(&self, symbols: &BTreeMap<String, i64>) -> Option<i64> {
        match self {
            Size::AsInt(n) => Some(*n),
            Size::AsExpr(e) => expression::parse(&e.expr_str).ok()?.value(symbols),
        }
    }
}

/// A tensor's type, and how it lies in its storage; sizes, strides and offset are numbers of elements.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct TensorMeta {
    pub dtype: Scalar,
    pub sizes: Vec<Size>,
    pub strides: Vec<Size>,
    #[serde(default)]
    pub storage_offset: Option<Size>,
    pub layout: u8,
}

impl TensorMeta {
    /// The layout of tensors whose elements are all stored.
    pub const STRIDED: u8 = 7;

    /// Whether elements lie one after the other in the order of the dimensions.
    pub fn is_contiguous(&self, symbols: &BTreeMap<String, i64>) -> bool {
        let mut step = 1i64;
        self.sizes.iter().zip(&self.strides).rev().all(|(size, stride)| {
            let (Some(size), Some(stride)) = (size.known(symbols), stride.known(symbols)) else { return false };
            let fits = size == 1 || stride == step;
            step = step.saturating_mul(size);
            fits
        })
    }

    /// Whether a reshape to another shape is a view: each run of dimensions whose elements are at equal distances is made of
    /// whole dimensions of the other shape (PyTorch's `computeStride`).
    pub fn is_viewed_as(&self, to: &TensorMeta, symbols: &BTreeMap<String, i64>) -> bool {
        let (Some(own), Some(to)) = (known(self, symbols), known(to, symbols)) else { return false };
        if own.iter().chain(&to).any(|[size, _]| *size < 1) {
            return true;
        }
        let mut left = to.iter().map(|[size, _]| *size).rev().peekable();
        let mut at = own.len();
        while at > 0 {
            // The dimensions that are one run, from the innermost one out.
            let mut count = own[at - 1][0];
            at -= 1;
            while at > 0 && own[at - 1][1] == own[at][1].saturating_mul(own[at][0]) {
                count = count.saturating_mul(own[at - 1][0]);
                at -= 1;
            }
            let mut taken = 1i64;
            while taken < count {
                let Some(size) = left.next() else { return false };
                taken = taken.saturating_mul(size);
            }
            if taken != count {
                return false;
            }
        }
        left.peek().is_none()
    }
}

/// Known sizes and strides of dimensions with more than one element.
fn known(meta: &TensorMeta, symbols: &BTreeMap<String, i64>) -> Option<Vec<[i64; 2]>> {
    let pair = |(size, stride): (&Size, &Size)| Some([size.known(symbols)?, stride.known(symbols)?]);
    let all = meta.sizes.iter().zip(&meta.strides).map(pair).collect::<Option<Vec<_>>>()?;
    Some(all.into_iter().filter(|[size, _]| *size != 1).collect())
}

/// An element type, by its number in the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    Known {
        dtype: DType,
        /// The type in the file, if the graph has a wider one.
        float: Option<NarrowFloat>,
    },
    Other(u8),
}

impl Scalar {
    pub const fn plain(dtype: DType) -> Scalar {
        Scalar::Known { dtype, float: None }
    }

    pub const fn narrow(float: NarrowFloat) -> Scalar {
        Scalar::Known { dtype: DType::F32, float: Some(float) }
    }

    pub fn of(number: u8) -> Scalar {
        match number {
            1 => Scalar::plain(DType::U8),
            2 => Scalar::plain(DType::I8),
            3 => Scalar::plain(DType::I16),
            4 => Scalar::plain(DType::I32),
            5 => Scalar::plain(DType::I64),
            6 => Scalar::narrow(NarrowFloat::F16),
            7 => Scalar::plain(DType::F32),
            8 => Scalar::plain(DType::F64),
            12 => Scalar::plain(DType::Bool),
            13 => Scalar::narrow(NarrowFloat::Bf16),
            28 => Scalar::plain(DType::U16),
            34 => Scalar::plain(DType::U32),
            35 => Scalar::plain(DType::U64),
            other => Scalar::Other(other),
        }
    }

    /// The type in the file, if the graph has a wider one.
    pub fn narrowed(self) -> Option<NarrowFloat> {
        if let Scalar::Known { float, .. } = self { float } else { None }
    }

    /// Bytes of an element in the file.
    pub fn size_bytes(self) -> usize {
        match self {
            Scalar::Known { float: Some(float), .. } => float.size(),
            Scalar::Known { dtype, float: None } => dtype.size_bytes(),
            Scalar::Other(_) => 1,
        }
    }

    /// The type of the graph.
    pub fn dtype(self) -> Result<DType, String> {
        match self {
            Scalar::Known { dtype, .. } => Ok(dtype),
            Scalar::Other(number) => {
                let names = ["complex half", "complex float", "complex double"];
                let name = usize::from(number).checked_sub(9).and_then(|i| names.get(i));
                let name = name.map_or_else(|| format!("number {number}"), |name| (*name).to_owned());
                Err(format!("the element type {name} is not supported"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Scalar, D::Error> {
        u8::deserialize(from).map(Scalar::of)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Signature {
    pub input_specs: Vec<InputSpec>,
    pub output_specs: Vec<OutputSpec>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum InputSpec {
    UserInput {
        arg: Argument,
    },
    Parameter {
        parameter_name: String,
    },
    Buffer {
        buffer_name: String,
        persistent: Option<bool>,
    },
    TensorConstant {
        tensor_constant_name: String,
    },
    ConstantInput(IgnoredAny),
    #[serde(untagged)]
    Other(HashMap<String, IgnoredAny>),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OutputSpec {
    UserOutput {
        arg: Argument,
    },
    BufferMutation(IgnoredAny),
    UserInputMutation(IgnoredAny),
    #[serde(untagged)]
    Other(IgnoredAny),
}

impl Argument {
    /// Names of the values that the argument has.
    pub fn names<'s>(&'s self, all: &mut Vec<&'s str>) {
        let symbol = |of: &'s Symbolic| if let Symbolic::Name(name) = of { Some(name.as_str()) } else { None };
        match self {
            Argument::AsTensor(of) | Argument::AsOptionalTensor(OptionalTensor::AsTensor(of)) => all.push(&of.name),
            Argument::AsTensors(list) => all.extend(list.iter().map(|of| of.name.as_str())),
            Argument::AsOptionalTensors(list) => all.extend(list.iter().filter_map(|one| match one {
                OptionalTensor::AsTensor(of) => Some(of.name.as_str()),
                OptionalTensor::AsNone(_) => None,
            })),
            Argument::AsSymInt(of) | Argument::AsSymFloat(of) | Argument::AsSymBool(of) => all.extend(symbol(of)),
            Argument::AsSymInts(list) => all.extend(list.iter().filter_map(symbol)),
            _ => {}
        }
    }
}

impl Graph {
    /// For each node, whether its results are used, or `changes` says that it changes its operand.
    pub fn used(&self, changes: impl Fn(&str) -> bool) -> Vec<bool> {
        let mut needed = Vec::new();
        self.outputs.iter().for_each(|output| output.names(&mut needed));
        let mut needed: HashSet<&str> = needed.into_iter().collect();
        let mut used = vec![false; self.nodes.len()];
        for (node, used) in self.nodes.iter().zip(&mut used).rev() {
            let mut names = Vec::new();
            node.outputs.iter().for_each(|output| output.names(&mut names));
            *used = names.iter().any(|name| needed.contains(name)) || changes(&node.target);
            if *used {
                let mut names = Vec::new();
                node.inputs.iter().for_each(|input| input.arg.names(&mut names));
                needed.extend(names);
            }
        }
        used
    }
}

/// A list of stored tensors.
#[derive(Debug, Deserialize)]
pub(super) struct Payloads {
    pub config: HashMap<String, Payload>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Payload {
    pub path_name: String,
    #[serde(default)]
    pub use_pickle: bool,
    pub tensor_meta: Option<TensorMeta>,
}

/// Reads a program. Texts of torch 2.6 have numbers that JSON does not have; they become texts.
pub(super) fn program(text: &[u8]) -> Result<Program, String> {
    let damaged = |e: serde_json::Error| format!("its program is damaged: {e}");
    match serde_json::from_slice(text) {
        Ok(program) => Ok(program),
        Err(e) if e.is_syntax() => serde_json::from_slice(&quoted(text)).map_err(damaged),
        Err(e) => Err(damaged(e)),
    }
}

/// The text with quotes around `Infinity`, `-Infinity` and `NaN` outside of texts.
fn quoted(text: &[u8]) -> Vec<u8> {
    const WORDS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];
    let (mut out, mut at, mut inside) = (Vec::with_capacity(text.len()), 0, false);
    while let Some(&byte) = text.get(at) {
        let word = WORDS.iter().find(|word| !inside && text[at..].starts_with(word));
        if let Some(word) = word {
            out.push(b'"');
            out.extend_from_slice(word);
            out.push(b'"');
            at += word.len();
            continue;
        }
        if inside && byte == b'\\' {
            out.push(byte);
            at += 1;
        } else if byte == b'"' {
            inside = !inside;
        }
        out.extend(text.get(at));
        at += 1;
    }
    out
}
