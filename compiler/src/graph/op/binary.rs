//! `binary`: a function of two elements.

use super::add::broadcast_index;
use super::attr::words;
use super::{check, extreme};
use crate::graph::{DType, Element, OpError, Tensor, TensorData, TensorType};

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
    /// Logical and.
    And,
    /// Logical or.
    Or,
    /// Logical exclusive or.
    Xor,
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
        BinaryKind::Or = "or", BinaryKind::Xor = "xor", BinaryKind::Equal = "equal", BinaryKind::Less = "less",
        BinaryKind::LessEqual = "less_equal",
    }
}

impl BinaryKind {
    /// Every function.
    pub const ALL: [BinaryKind; 13] = {
        use BinaryKind::*;
        [Sub, Mul, Div, Mod, Min, Max, Pow, And, Or, Xor, Equal, Less, LessEqual]
    };

    /// True if the result is boolean for every operand type.
    pub fn compares(self) -> bool {
        matches!(self, BinaryKind::Equal | BinaryKind::Less | BinaryKind::LessEqual)
    }

    /// The element types that it accepts.
    pub fn operands(self) -> &'static [DType] {
        match self {
            BinaryKind::And | BinaryKind::Or | BinaryKind::Xor => &[DType::Bool],
            BinaryKind::Pow => &[DType::F32],
            BinaryKind::Mod => &[DType::I8, DType::U8, DType::I32, DType::I64],
            BinaryKind::Equal => &DType::ALL,
            _ => &[DType::F32, DType::I8, DType::U8, DType::I32, DType::I64],
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
        match inputs[0].data() {
            TensorData::F32(_) if self.kind.compares() => self.compare::<f32>(inputs, &shape, at),
            TensorData::F32(_) => map::<f32>(inputs, &shape, at, |a, b| self.float(a, b)),
            TensorData::I8(_) if !self.kind.compares() => {
                map::<i8>(inputs, &shape, at, |a, b| self.int(a.into(), b.into()) as i8)
            }
            TensorData::U8(_) if !self.kind.compares() => {
                map::<u8>(inputs, &shape, at, |a, b| self.int(a.into(), b.into()) as u8)
            }
            TensorData::I32(_) if !self.kind.compares() => {
                map::<i32>(inputs, &shape, at, |a, b| self.int(a.into(), b.into()) as i32)
            }
            TensorData::I64(_) if !self.kind.compares() => map::<i64>(inputs, &shape, at, |a, b| self.int(a, b)),
            TensorData::I8(_) => self.compare::<i8>(inputs, &shape, at),
            TensorData::U8(_) => self.compare::<u8>(inputs, &shape, at),
            TensorData::I32(_) => self.compare::<i32>(inputs, &shape, at),
            TensorData::I64(_) => self.compare::<i64>(inputs, &shape, at),
            TensorData::Bool(_) => map::<bool>(inputs, &shape, at, |a, b| match self.kind {
                BinaryKind::And => a && b,
                BinaryKind::Or => a || b,
                BinaryKind::Equal => a == b,
                _ => a != b,
            }),
        }
    }

    fn float(&self, a: f32, b: f32) -> f32 {
        match self.kind {
            BinaryKind::Sub => a - b,
            BinaryKind::Mul => a * b,
            BinaryKind::Div => a / b,
            BinaryKind::Min => extreme::least(a, b),
            BinaryKind::Max => extreme::greatest(a, b),
            BinaryKind::Pow => a.powf(b),
            _ => a,
        }
    }

    fn int(&self, a: i64, b: i64) -> i64 {
        match self.kind {
            BinaryKind::Sub => a.wrapping_sub(b),
            BinaryKind::Mul => a.wrapping_mul(b),
            BinaryKind::Div | BinaryKind::Mod if b == 0 => 0,
            BinaryKind::Div => a.wrapping_div(b),
            BinaryKind::Mod => {
                let r = a.wrapping_rem(b);
                if r != 0 && (r < 0) != (b < 0) { r + b } else { r }
            }
            BinaryKind::Min => a.min(b),
            BinaryKind::Max => a.max(b),
            _ => a,
        }
    }

    fn compare<T: Element + PartialOrd>(
        &self, inputs: &[&Tensor], shape: &[usize], at: impl Fn(usize) -> (usize, usize),
    ) -> Result<Tensor, OpError> {
        let (a, b) = (inputs[0].as_slice::<T>()?, inputs[1].as_slice::<T>()?);
        Ok(Tensor::from_fn(shape, |i| {
            let (x, y) = (a[at(i).0], b[at(i).1]);
            match self.kind {
                BinaryKind::Equal => x == y,
                BinaryKind::Less => x < y,
                _ => x <= y,
            }
        }))
    }
}

fn map<T: Element>(
    inputs: &[&Tensor], shape: &[usize], at: impl Fn(usize) -> (usize, usize), f: impl Fn(T, T) -> T,
) -> Result<Tensor, OpError> {
    let (a, b) = (inputs[0].as_slice::<T>()?, inputs[1].as_slice::<T>()?);
    Ok(Tensor::from_fn(shape, |i| f(a[at(i).0], b[at(i).1])))
}
