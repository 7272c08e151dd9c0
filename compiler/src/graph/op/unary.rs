//! `unary`: a function of each element.

use super::attr::words;
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::{BinaryKind, check};
use crate::graph::tensor::{Real, with_element};
use crate::graph::{DType, Element, OpError, Tensor, TensorData, TensorType};

/// A function of one number. `alpha` and `beta` are the operator's attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryKind {
    /// Absolute value.
    Abs,
    /// `-x`.
    Neg,
    /// -1, 0 or 1; NaN for NaN.
    Sign,
    /// Not of a boolean, or of each bit of an integer.
    Not,
    /// e to the power of x.
    Exp,
    /// Natural logarithm.
    Log,
    /// Square root.
    Sqrt,
    /// `1 / x`.
    Reciprocal,
    /// Rounds down.
    Floor,
    /// Rounds up.
    Ceil,
    /// Nearest integer, ties to even.
    Round,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Hyperbolic tangent.
    Tanh,
    /// Gauss error function.
    Erf,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `log(1 + exp(x))`.
    Softplus,
    /// `x / (1 + |x|)`.
    Softsign,
    /// `alpha * x` if `x < 0`, else `x`.
    LeakyRelu,
    /// `alpha * (exp(x) - 1)` if `x < 0`, else `x`.
    Elu,
    /// `alpha * x + beta` clamped to 0 and 1.
    HardSigmoid,
    /// `x` times its hard sigmoid with `alpha = 1/6` and `beta = 1/2`.
    HardSwish,
    /// `x * sigmoid(x)`.
    Silu,
    /// `x * (1 + erf(x / sqrt(2))) / 2`.
    Gelu,
    /// `gelu` approximated with `tanh`.
    GeluTanh,
    /// `x * tanh(softplus(x))`.
    Mish,
}

words! {
    UnaryKind, "a function such as `exp`" {
        UnaryKind::Abs = "abs", UnaryKind::Neg = "neg", UnaryKind::Sign = "sign", UnaryKind::Not = "not",
        UnaryKind::Exp = "exp", UnaryKind::Log = "log", UnaryKind::Sqrt = "sqrt", UnaryKind::Reciprocal = "reciprocal",
        UnaryKind::Floor = "floor", UnaryKind::Ceil = "ceil", UnaryKind::Round = "round", UnaryKind::Sin = "sin",
        UnaryKind::Cos = "cos", UnaryKind::Tanh = "tanh", UnaryKind::Erf = "erf", UnaryKind::Sigmoid = "sigmoid",
        UnaryKind::Softplus = "softplus", UnaryKind::Softsign = "softsign", UnaryKind::LeakyRelu = "leaky_relu",
        UnaryKind::Elu = "elu", UnaryKind::HardSigmoid = "hard_sigmoid", UnaryKind::HardSwish = "hard_swish",
        UnaryKind::Silu = "silu", UnaryKind::Gelu = "gelu", UnaryKind::GeluTanh = "gelu_tanh", UnaryKind::Mish = "mish",
    }
}

impl UnaryKind {
    /// Every function.
    pub const ALL: [UnaryKind; 26] = {
        use UnaryKind::*;
        [
            Abs, Neg, Sign, Not, Exp, Log, Sqrt, Reciprocal, Floor, Ceil, Round, Sin, Cos, Tanh, Erf, Sigmoid, Softplus,
            Softsign, LeakyRelu, Elu, HardSigmoid, HardSwish, Silu, Gelu, GeluTanh, Mish,
        ]
    };

    /// Returns the number of its parameters: `alpha`, then `beta`.
    pub fn parameters(self) -> usize {
        match self {
            UnaryKind::LeakyRelu | UnaryKind::Elu => 1,
            UnaryKind::HardSigmoid => 2,
            _ => 0,
        }
    }

    /// Computes the function in single precision.
    pub fn apply(self, x: f32, alpha: f32, beta: f32) -> f32 {
        self.compute(x, alpha, beta)
    }

    fn compute<T: Function>(self, x: T, alpha: T, beta: T) -> T {
        let softplus = |x: T| x.max(T::of(0.0)) + (T::of(1.0) + (-x.abs()).exp()).ln();
        let sigmoid = |x: T| T::of(1.0) / (T::of(1.0) + (-x).exp());
        match self {
            UnaryKind::Abs => x.abs(),
            UnaryKind::Neg => -x,
            UnaryKind::Sign if x > T::of(0.0) => T::of(1.0),
            UnaryKind::Sign if x < T::of(0.0) => T::of(-1.0),
            UnaryKind::Sign if x == T::of(0.0) => T::of(0.0),
            UnaryKind::Sign => x,
            UnaryKind::Not => if x == T::of(0.0) { T::of(1.0) } else { T::of(0.0) },
            UnaryKind::Exp => x.exp(),
            UnaryKind::Log => x.ln(),
            UnaryKind::Sqrt => x.sqrt(),
            UnaryKind::Reciprocal => T::of(1.0) / x,
            UnaryKind::Floor => x.floor(),
            UnaryKind::Ceil => x.ceil(),
            UnaryKind::Round => x.round_ties_even(),
            UnaryKind::Sin => x.sin(),
            UnaryKind::Cos => x.cos(),
            UnaryKind::Tanh => x.tanh(),
            UnaryKind::Erf => T::erf(x),
            UnaryKind::Sigmoid => sigmoid(x),
            UnaryKind::Softplus => softplus(x),
            UnaryKind::Softsign => x / (T::of(1.0) + x.abs()),
            UnaryKind::LeakyRelu => if x < T::of(0.0) { alpha * x } else { x },
            UnaryKind::Elu => if x < T::of(0.0) { alpha * (x.exp() - T::of(1.0)) } else { x },
            UnaryKind::HardSigmoid => (alpha * x + beta).clamp(T::of(0.0), T::of(1.0)),
            UnaryKind::HardSwish => x * (x / T::of(6.0) + T::of(0.5)).clamp(T::of(0.0), T::of(1.0)),
            UnaryKind::Silu => x * sigmoid(x),
            UnaryKind::Gelu => T::of(0.5) * x * (T::of(1.0) + T::erf(x * T::of(std::f64::consts::FRAC_1_SQRT_2))),
            UnaryKind::GeluTanh => T::of(0.5) * x * (T::of(1.0) + (T::of(GELU_A) * (x + T::of(GELU_B) * x * x * x)).tanh()),
            UnaryKind::Mish => x * softplus(x).tanh(),
        }
    }
}

/// A float type with the functions of [`UnaryKind`].
trait Function:
    Real + Neg<Output = Self> + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    fn of(x: f64) -> Self;
    fn max(self, other: Self) -> Self;
    fn clamp(self, least: Self, greatest: Self) -> Self;
    fn abs(self) -> Self;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn sqrt(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn round_ties_even(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tanh(self) -> Self;
    fn erf(self) -> Self;
}

macro_rules! functions {
    ($t:ident, $erf:path) => {
        impl Function for $t {
            functions! { $t: abs exp ln sqrt floor ceil round_ties_even sin cos tanh }
            fn of(x: f64) -> $t {
                x as $t
            }
            fn max(self, other: $t) -> $t {
                $t::max(self, other)
            }
            fn clamp(self, least: $t, greatest: $t) -> $t {
                $t::clamp(self, least, greatest)
            }
            fn erf(self) -> $t {
                $erf(self)
            }
        }
    };
    ($t:ident: $($f:ident)*) => {
        $(fn $f(self) -> $t {
            $t::$f(self)
        })*
    };
}

functions! { f32, libm::erff }
functions! { f64, libm::erf }

/// `sqrt(2 / pi)`.
pub(crate) const GELU_A: f64 = 0.797_884_560_802_865_4;
/// Factor of the cube in the `tanh` approximation of `gelu`.
pub(crate) const GELU_B: f64 = 0.044_715;

operator! {
    /// A function of each float; `abs`, `neg` and `sign` also of integers (wrapping), `not` only of booleans and of each
    /// bit of integers.
    Unary = "unary"(data) {
        /// The function.
        kind: UnaryKind,
        /// First parameter, for functions that have one.
        alpha: f32 = 0.0,
        /// Second parameter, for functions that have one.
        beta: f32 = 0.0,
    }
}

impl Unary {
    /// A function without parameters.
    pub fn new(kind: UnaryKind) -> Unary {
        Unary { kind, alpha: 0.0, beta: 0.0 }
    }

    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        let allowed: &[DType] = match self.kind {
            UnaryKind::Not => BinaryKind::And.operands(),
            UnaryKind::Abs | UnaryKind::Neg | UnaryKind::Sign => DType::NUMBERS,
            _ => DType::FLOATS,
        };
        check::dtype("data", inputs[0], allowed)?;
        Ok(inputs[0].clone())
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = inputs[0].shape();
        let (alpha, beta) = (f64::from(self.alpha), f64::from(self.beta));
        Ok(match inputs[0].data() {
            TensorData::Bool(v) => Tensor::from_fn(shape, |i| !v[i]),
            TensorData::F32(v) => Tensor::from_fn(shape, |i| self.kind.apply(v[i], self.alpha, self.beta)),
            TensorData::F64(v) => Tensor::from_fn(shape, |i| self.kind.compute(v[i], alpha, beta)),
            // Without the high bits, the results are those of the type.
            _ => {
                let v = inputs[0].ints();
                let int = |i: usize| match self.kind {
                    UnaryKind::Neg => -v[i],
                    UnaryKind::Sign => v[i].signum(),
                    UnaryKind::Not => !v[i],
                    _ => v[i].abs(),
                };
                with_element!(inputs[0].dtype(), T => Tensor::from_fn(shape, |i| <T as Element>::of_int(int(i))))
            }
        })
    }
}
