//! `binary`: a function of two elements.

use super::add::broadcast_index;
use super::attr::words;
use super::arithmetic::Arithmetic;
use super::check;
use crate::graph::tensor::with_element;
use crate::graph::{DType, Element, OpError, Tensor, TensorType};

/// A function of two values of the same type. Addition is a separate operator, `add`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryKind {
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// `a / b`; integers truncate, and give 0 if `b` is 0.
    Div,
    /// Remainder of integers, with the divisor's sign; 0 if the divisor is 0.
    Mod,
    /// The smaller one; NaN if either is NaN.
    Min,
    /// The greater one; NaN if either is NaN.
    Max,
    /// `a` to the power of `b`, floats only.
    Pow,
    /// And of booleans, or of each bit of integers.
    And,
    /// Or of booleans, or of each bit of integers.
    Or,
    /// Exclusive or of booleans, or of each bit of integers.
    Xor,
    /// `a` shifted left by the low bits of `b`, integers only.
    ShiftLeft,
    /// `a` shifted right by the low bits of `b`, integers only; it keeps the sign, if the type has one.
    ShiftRight,
    /// `a == b`.
    Equal,
    /// `a < b`.
    Less,
    /// `a <= b`.
    LessEqual,
}

words! {
    BinaryKind, "a function such as `mul`" {
        BinaryKind::Sub = "sub", BinaryKind::Mul = "mul", BinaryKind::Div = "div", BinaryKind::Mod = "mod",
        BinaryKind::Min = "min", BinaryKind::Max = "max", BinaryKind::Pow = "pow", BinaryKind::And = "and",
        BinaryKind::Or = "or", BinaryKind::Xor = "xor", BinaryKind::ShiftLeft = "shift_left",
        BinaryKind::ShiftRight = "shift_right", BinaryKind::Equal = "equal", BinaryKind::Less = "less",
        BinaryKind::LessEqual = "less_equal",
    }
}

impl BinaryKind {
    /// Every function.
    pub const ALL: [BinaryKind; 15] = {
        use BinaryKind::*;
        [Sub, Mul, Div, Mod, Min, Max, Pow, And, Or, Xor, ShiftLeft, ShiftRight, Equal, Less, LessEqual]
    };

    /// True if the result is boolean for every operand type.
    pub fn compares(self) -> bool {
        matches!(self, BinaryKind::Equal | BinaryKind::Less | BinaryKind::LessEqual)
    }

    /// The element types that it accepts.
    pub fn operands(self) -> &'static [DType] {
        match self {
            BinaryKind::And | BinaryKind::Or | BinaryKind::Xor => {
                use DType::*;
                &[Bool, I8, U8, I32, I64, I16, U16, U32, U64]
            }
            BinaryKind::Pow => DType::FLOATS,
            BinaryKind::Mod | BinaryKind::ShiftLeft | BinaryKind::ShiftRight => DType::INTEGERS,
            BinaryKind::Equal => &DType::ALL,
            _ => DType::NUMBERS,
        }
    }
}

operator! {
    /// A function of two elements of the same type; shapes broadcast as in NumPy. Integers wrap.
    Binary = "binary"(a, b) {
        /// The function.
        kind: BinaryKind,
    }
}

impl Binary {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 2, 2)?;
        check::dtype("a", inputs[0], self.kind.operands())?;
        check::dtype("b", inputs[1], &[inputs[0].dtype])?;
        let dtype = if self.kind.compares() { DType::Bool } else { inputs[0].dtype };
        Ok(TensorType { dtype, dims: check::broadcast(inputs[0], inputs[1])? })
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = check::known("a", &self.infer(&[&inputs[0].ty(), &inputs[1].ty()])?)?;
        let (ia, ib) = broadcast_index(inputs[0].shape(), inputs[1].shape(), &shape);
        let at = |i: usize| (ia[i], ib[i]);
        with_element!(inputs[0].dtype(), T => {
            let (a, b) = (inputs[0].as_slice::<T>()?, inputs[1].as_slice::<T>()?);
            if self.kind.compares() {
                return Ok(Tensor::from_fn(&shape, |i| compared(self.kind, a[at(i).0], b[at(i).1])));
            }
            Ok(Tensor::from_fn(&shape, |i| T::binary(self.kind, a[at(i).0], b[at(i).1])))
        })
    }
}

fn compared<T: Element>(kind: BinaryKind, x: T, y: T) -> bool {
    match kind {
        BinaryKind::Equal => x == y,
        BinaryKind::Less => x < y,
        _ => x <= y,
    }
}
