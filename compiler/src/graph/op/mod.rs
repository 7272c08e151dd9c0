//! The operators. Each has a file with its attributes, type rule, checks and reference evaluation.
//!
//! Image data are `[N,H,W,C]` or `[N,C,H,W]`, depending on the attribute [`Layout`]. Convolution weights are always
//! `[O, KH, KW, I/groups]`, weights of `dense` `[N, K]`.

mod arithmetic;
pub mod attr;
mod check;
mod signature;

/// Declares an operator's struct with its attributes; the text form prints and reads them. Behind the operator's name
/// are the names of its operands: `name`, `[optional]` or `{several}`. An attribute's default is for callers that name
/// attributes; the text form always has all.
macro_rules! operator {
    ($(#[doc = $doc:literal])* $name:ident = $text:literal ($($operand:tt),*) {
        $($(#[doc = $field_doc:literal])* $field:ident : $ty:ty $(= $default:expr)?,)*
    }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name { $($(#[doc = $field_doc])* pub $field: $ty,)* }

        impl $name {
            /// The operator's name in the text form.
            pub const NAME: &'static str = $text;

            pub(crate) fn signature() -> $crate::graph::op::Signature {
                $crate::graph::op::Signature {
                    name: $text,
                    doc: concat!($($doc, "\n",)*),
                    operands: vec![$($crate::graph::op::signature::operand!($operand),)*],
                    attributes: vec![$($crate::graph::op::Attribute {
                        name: stringify!($field),
                        doc: concat!($($field_doc, "\n",)*),
                        expected: <$ty as $crate::graph::op::AttrValue>::EXPECTED,
                        words: <$ty as $crate::graph::op::AttrValue>::WORDS,
                        default: None$(.or(Some(<$ty as $crate::graph::op::AttrValue>::to_attr(&$default))))?,
                    },)*],
                }
            }

            pub(crate) fn attrs(&self) -> Vec<(&'static str, $crate::graph::op::attr::Attr)> {
                vec![$((stringify!($field), $crate::graph::op::attr::AttrValue::to_attr(&self.$field)),)*]
            }

            #[allow(unused_variables, clippy::unnecessary_wraps)]
            pub(crate) fn from_attrs(r: &mut $crate::graph::op::attr::AttrReader) -> Option<Self> {
                $(let $field = r.take(stringify!($field));)*
                Some($name { $($field: $field?,)* })
            }
        }

        impl $crate::graph::network::Apply<'_, $name> {
            $($(#[doc = $field_doc])*
            pub fn $field(self, value: $ty) -> Self {
                self.set(stringify!($field), $crate::graph::op::AttrValue::to_attr(&value))
            })*
        }
    };
}

macro_rules! operators {
    ($($file:ident $name:ident;)*) => {
        $(mod $file; pub use $file::$name;)*

        /// A function for each operator, which applies it to operands; see [`network`](crate::graph::network).
        pub mod functions {
            use crate::graph::network::{Apply, Value};

            $(#[doc = concat!("[`", stringify!($name), "`](super::", stringify!($name), ") on these operands.")]
            pub fn $file<'n>(operands: impl IntoIterator<Item = Value<'n>>) -> Apply<'n, super::$name> {
                Apply::new(super::$name::NAME, operands)
            })*
        }

        /// An operator with its attributes.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs)]
        pub enum Op {
            Constant(Constant),
            Packed(Packed),
            If(If),
            Loop(Loop),
            $($name($name),)*
        }

        $(impl From<$name> for Op {
            fn from(op: $name) -> Op {
                Op::$name(op)
            }
        })*

        impl Op {
            /// Names of all operators in the text form.
            pub const NAMES: &'static [&'static str] = &[Constant::NAME, Packed::NAME, If::NAME, Loop::NAME, $($name::NAME,)*];

            /// What each operator takes, except `constant`, `packed` and those with regions.
            pub fn signatures() -> Vec<Signature> {
                vec![$($name::signature(),)*]
            }

            /// The operator's name in the text form.
            pub fn name(&self) -> &'static str {
                match self {
                    Op::Constant(_) => Constant::NAME,
                    Op::Packed(_) => Packed::NAME,
                    Op::If(_) => If::NAME,
                    Op::Loop(_) => Loop::NAME,
                    $(Op::$name(_) => $name::NAME,)*
                }
            }

            /// Infers the types of the values that it defines from the types of the operands.
            ///
            /// # Errors
            /// If the operands or the attributes break the operator's rules.
            pub fn infer(&self, inputs: &[&TensorType]) -> Result<Vec<TensorType>, OpError> {
                let types = match self {
                    Op::Constant(c) => vec![c.infer(inputs)?],
                    Op::Packed(op) => op.infer(inputs)?,
                    Op::If(op) => op.infer(inputs)?,
                    Op::Loop(op) => op.infer(inputs)?,
                    $(Op::$name(op) => vec![op.infer(inputs)?],)*
                };
                for ty in &types {
                    check::rank_in_bounds(ty.rank())?;
                }
                Ok(types)
            }

            /// Computes the values that it defines, in plain Rust; `packed` calls its function.
            ///
            /// # Errors
            /// Like [`Op::infer`], and [`OpError::Function`].
            pub fn eval(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>, OpError> {
                let types: Vec<_> = inputs.iter().map(|t| t.ty()).collect();
                for ty in self.infer(&types.iter().collect::<Vec<_>>())? {
                    check::size(&ty)?;
                }
                match self {
                    Op::Constant(c) => Ok(c.value.as_ref().clone()),
                    Op::Packed(op) => return op.eval(inputs),
                    Op::If(op) => return op.eval(inputs),
                    Op::Loop(op) => return op.eval(inputs),
                    $(Op::$name(op) => op.eval(inputs),)*
                }.map(|t| vec![t])
            }

            /// The operator's regions, in the order of the text form.
            pub fn regions(&self) -> Vec<&Arc<Graph>> {
                match self {
                    Op::If(op) => vec![&op.then, &op.otherwise],
                    Op::Loop(op) => vec![&op.body],
                    _ => Vec::new(),
                }
            }

            /// The operator with other regions; `None` if it has another number of them.
            pub fn with_regions(&self, regions: Vec<Arc<Graph>>) -> Option<Op> {
                match self {
                    Op::If(op) => Some(Op::If(op.with_regions(regions)?)),
                    Op::Loop(op) => Some(Op::Loop(op.with_regions(regions)?)),
                    other => regions.is_empty().then(|| other.clone()),
                }
            }

            /// Whether a node of this operator is a step of its own: the host calls a function of the program, or runs
            /// regions. No pass evaluates it: a function can have effects, and a loop can take long.
            pub fn is_own_step(&self) -> bool {
                matches!(self, Op::Packed(_) | Op::If(_) | Op::Loop(_))
            }

            /// The same operator with symbols of its own types replaced by sizes.
            pub(crate) fn bind(&self, sizes: &std::collections::BTreeMap<String, usize>) -> Op {
                match self {
                    Op::Packed(op) => op.bind(sizes).into(),
                    Op::If(op) => Op::If(op.bind(sizes)),
                    Op::Loop(op) => Op::Loop(op.bind(sizes)),
                    other => other.clone(),
                }
            }

            /// Whether each element is a function of the same element of the only operand, and of nothing else.
            pub fn is_map(&self) -> bool {
                matches!(
                    self,
                    Op::Unary(_) | Op::Cast(_) | Op::Bitcast(_) | Op::Narrow(_) | Op::Relu(_) | Op::Clip(_)
                )
            }

            /// Attributes in the order of the text form, without a constant's value.
            pub fn attrs(&self) -> Vec<(&'static str, attr::Attr)> {
                match self {
                    Op::Constant(_) | Op::If(_) => Vec::new(),
                    Op::Packed(op) => op.attrs(),
                    Op::Loop(op) => op.attrs(),
                    $(Op::$name(op) => op.attrs(),)*
                }
            }

            /// The operator with this name. Attributes that are left out have their defaults.
            ///
            /// # Errors
            /// Everything that is wrong, as texts: no operator has the name, or attributes are missing, wrong or unknown.
            pub fn of(name: &str, mut attrs: std::collections::BTreeMap<String, Attr>) -> Result<Op, Vec<String>> {
                if name == Constant::NAME || !Op::NAMES.contains(&name) {
                    let known = Op::NAMES[1..].join(", ");
                    return Err(vec![format!("there is no operator `{name}`; there are {known}")]);
                }
                let signature = Op::signatures().into_iter().find(|signature| signature.name == name);
                for Attribute { name, default, .. } in signature.into_iter().flat_map(|s| s.attributes) {
                    if let Some(default) = default {
                        attrs.entry(name.to_string()).or_insert(default);
                    }
                }
                let mut reader = attr::AttrReader { attrs, errors: Vec::new() };
                let op = Op::from_attrs(name, &mut reader);
                reader.errors.extend(reader.attrs.keys().map(|attr| format!("`{name}` has no attribute `{attr}`")));
                match op {
                    Some(op) if reader.errors.is_empty() => Ok(op),
                    _ => Err(reader.errors),
                }
            }

            /// The operator with this name. `None` if there is no such operator, or if an attribute is missing or
            /// wrong; the reader then has the errors.
            pub(crate) fn from_attrs(name: &str, r: &mut attr::AttrReader) -> Option<Op> {
                match name {
                    Packed::NAME => Some(Op::Packed(Packed::from_attrs(r)?)),
                    If::NAME => Some(Op::If(If { then: flow::no_region(), otherwise: flow::no_region() })),
                    Loop::NAME => Some(Op::Loop(Loop::from_attrs(r)?)),
                    $($name::NAME => Some(Op::$name($name::from_attrs(r)?)),)*
                    _ => None,
                }
            }
        }
    };
}

use super::{Graph, OpError, Tensor, TensorType};
pub use attr::{Attr, AttrValue, Layout, QuantRounding};
pub use binary::BinaryKind;
pub use check::rank_in_bounds;
pub use compute::Expression;
pub use constant::Constant;
pub use flow::{If, Loop, MOST_STEPS};
pub use gather::check_indices;
pub use packed::Packed;
pub use reduce::ReduceKind;
pub use signature::{Attribute, Count, Operand, Signature};
use std::sync::Arc;
pub use tilewright_tensor::extreme;
pub use unary::UnaryKind;
pub(crate) use unary::{GELU_A, GELU_B};
mod constant;
pub(crate) mod flow;
mod packed;
pub(crate) mod window;

operators! {
    conv2d Conv2d;
    dense Dense;
    hybrid_dense HybridDense;
    hybrid_conv2d HybridConv2d;
    matmul MatMul;
    add Add;
    unary Unary;
    binary Binary;
    cast Cast;
    bitcast Bitcast;
    narrow Narrow;
    select Select;
    expand Expand;
    reduce Reduce;
    arg_reduce ArgReduce;
    concat Concat;
    slice Slice;
    gather Gather;
    gather_elements GatherElements;
    resample Resample;
    relu Relu;
    clip Clip;
    max_pool2d MaxPool2d;
    avg_pool2d AvgPool2d;
    sum_pool2d SumPool2d;
    global_avg_pool GlobalAvgPool;
    pad Pad;
    reshape Reshape;
    transpose Transpose;
    softmax Softmax;
    layer_norm LayerNorm;
    quantize Quantize;
    dequantize Dequantize;
    requantize Requantize;
    qadd QAdd;
    qavg_pool2d QAvgPool2d;
    qmul QMul;
    qsquared_difference QSquaredDifference;
    lookup Lookup;
    bilinear_u8 BilinearU8;
    conv_transpose2d ConvTranspose2d;
    qmatmul QMatMul;
    rescale Rescale;
    shift_sign ShiftSign;
    compute Compute;
}

impl From<Constant> for Op {
    fn from(op: Constant) -> Op {
        Op::Constant(op)
    }
}

impl From<Packed> for Op {
    fn from(op: Packed) -> Op {
        Op::Packed(op)
    }
}
