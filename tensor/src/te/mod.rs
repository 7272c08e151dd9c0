//! Tensor expressions: what an operator computes, not how.
//!
//! A [`Program`] is a list of tensors in order of definition. A tensor is an input, or defines its elements by a scalar
//! expression over its axes, or by a reduction over further axes. `tir::lower` lowers a program to loops, and
//! evaluation runs the lowered loops. [`scalar`] defines the scalar operations, once for all evaluators.

mod array;
mod builder;
mod calls;
mod expr;
mod lists;
pub(crate) mod print;
pub(crate) mod read;
pub mod scalar;
pub mod text;

pub use crate::dtype::DType;
pub use array::Array;
pub use builder::{Builder, TensorRef};
pub use calls::{Attr, NoOperators, Operators, quote};
pub use expr::{BinOp, Expr, Func, Name, NameMap, NameSet};
pub use lists::by_choices;
pub use read::ParseError;
pub use scalar::Scalar;

/// How a reduction combines values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Combiner {
    /// Sum, wrapping for integers.
    Sum,
    /// Greatest value.
    Max,
    /// Least value.
    Min,
}

impl Combiner {
    /// Returns the operation that joins two partial results.
    pub fn op(self) -> BinOp {
        match self {
            Combiner::Sum => BinOp::Add,
            Combiner::Max => BinOp::Max,
            Combiner::Min => BinOp::Min,
        }
    }

    /// Returns the identity value, which changes nothing when combined.
    pub fn identity(self, t: DType) -> Expr {
        let float = |v: f32| Expr::Float(v as f64, t);
        let (lo, hi) = scalar::range(t);
        match (self, t) {
            (Combiner::Sum, t) if t.is_float() => float(0.0),
            (Combiner::Sum, _) => Expr::Int(0, t),
            (Combiner::Max, t) if t.is_float() => float(f32::NEG_INFINITY),
            (Combiner::Max, _) => Expr::Int(lo, t),
            (Combiner::Min, t) if t.is_float() => float(f32::INFINITY),
            (Combiner::Min, _) => Expr::Int(hi, t),
        }
    }
}

/// A variable that runs from 0 up to, but not including, its extent.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The variable, unique within the program.
    pub var: Name,
    /// Number of values.
    pub extent: i64,
}

/// The definition of a tensor's elements.
#[derive(Debug, Clone, PartialEq)]
pub enum Definition {
    /// Given by the caller.
    Input,
    /// An expression over the tensor's axes.
    Compute(Expr),
    /// `init` combined with `value` at every point of the reduction axes.
    Reduce {
        /// Reduction axes, outermost first.
        axes: Vec<Axis>,
        /// How values are joined.
        combiner: Combiner,
        /// The start value.
        init: Expr,
        /// The value at one point.
        value: Expr,
    },
}

/// One tensor of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Its name, unique within the program.
    pub name: Name,
    /// Element type.
    pub dtype: DType,
    /// One axis per dimension. An input's axes only hold the extents.
    pub axes: Vec<Axis>,
    /// How its elements are defined.
    pub definition: Definition,
}

impl Tensor {
    /// Returns the extents.
    pub fn shape(&self) -> Vec<i64> {
        self.axes.iter().map(|a| a.extent).collect()
    }

    /// Returns a handle, for reading the tensor in later expressions.
    pub fn reference(&self) -> TensorRef {
        TensorRef { name: self.name.clone(), dtype: self.dtype, shape: self.shape() }
    }
}

/// A list of tensors in order of definition. A tensor reads only earlier ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Name of the program, and of the function that it is lowered to.
    pub name: Name,
    /// All tensors.
    pub tensors: Vec<Tensor>,
    /// Names of the output tensors, in order.
    pub outputs: Vec<Name>,
}

impl Program {
    /// Returns the tensor called `name`.
    pub fn tensor(&self, name: &Name) -> Option<&Tensor> {
        self.tensors.iter().find(|t| &t.name == name)
    }

    /// Returns the inputs in order.
    pub fn inputs(&self) -> impl Iterator<Item = &Tensor> {
        self.tensors.iter().filter(|t| t.definition == Definition::Input)
    }
}
