//! `unary`: a function of each element.

use super::attr::words;
use super::check;
use crate::graph::{DType, OpError, Tensor, TensorData, TensorType};

/// A function of one number. `alpha` and `beta` are the operator's attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryKind {
    /// Absolute value.
    Abs,
    /// `-x`.
    Neg,
    /// -1, 0 or 1; NaN for NaN.
    Sign,
    /// Logical not.
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
        let softplus = |x: f32| x.max(0.0) + (1.0 + (-x.abs()).exp()).ln();
        let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
        match self {
            UnaryKind::Abs => x.abs(),
            UnaryKind::Neg => -x,
            UnaryKind::Sign if x > 0.0 => 1.0,
            UnaryKind::Sign if x < 0.0 => -1.0,
            UnaryKind::Sign if x == 0.0 => 0.0,
            UnaryKind::Sign => x,
            UnaryKind::Not => f32::from(x == 0.0),
            UnaryKind::Exp => x.exp(),
            UnaryKind::Log => x.ln(),
            UnaryKind::Sqrt => x.sqrt(),
            UnaryKind::Reciprocal => 1.0 / x,
            UnaryKind::Floor => x.floor(),
            UnaryKind::Ceil => x.ceil(),
            UnaryKind::Round => x.round_ties_even(),
            UnaryKind::Sin => x.sin(),
            UnaryKind::Cos => x.cos(),
            UnaryKind::Tanh => x.tanh(),
            UnaryKind::Erf => libm::erff(x),
            UnaryKind::Sigmoid => sigmoid(x),
            UnaryKind::Softplus => softplus(x),
            UnaryKind::Softsign => x / (1.0 + x.abs()),
            UnaryKind::LeakyRelu => if x < 0.0 { alpha * x } else { x },
            UnaryKind::Elu => if x < 0.0 { alpha * (x.exp() - 1.0) } else { x },
            UnaryKind::HardSigmoid => (alpha * x + beta).clamp(0.0, 1.0),
            UnaryKind::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
            UnaryKind::Silu => x * sigmoid(x),
            UnaryKind::Gelu => 0.5 * x * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2)),
            UnaryKind::GeluTanh => 0.5 * x * (1.0 + (GELU_A * (x + GELU_B * x * x * x)).tanh()),
            UnaryKind::Mish => x * softplus(x).tanh(),
        }
    }
}

/// `sqrt(2 / pi)`.
pub(crate) const GELU_A: f32 = 0.797_884_6;
/// Factor of the cube in the `tanh` approximation of `gelu`.
pub(crate) const GELU_B: f32 = 0.044_715;

operator! {
    /// A function of each f32; `abs`, `neg` and `sign` also of i32 and i64 (wrapping), `not` only of bool.
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
            UnaryKind::Not => &[DType::Bool],
            UnaryKind::Abs | UnaryKind::Neg | UnaryKind::Sign => &[DType::F32, DType::I32, DType::I64],
            _ => &[DType::F32],
        };
        check::dtype("data", inputs[0], allowed)?;
        Ok(inputs[0].clone())
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = inputs[0].shape();
        let int = |x: i64| match self.kind {
            UnaryKind::Neg => x.wrapping_neg(),
            UnaryKind::Sign => x.signum(),
            _ => x.wrapping_abs(),
        };
        Ok(match inputs[0].data() {
            TensorData::Bool(v) => Tensor::from_fn(shape, |i| !v[i]),
            TensorData::I32(v) => Tensor::from_fn(shape, |i| int(v[i].into()) as i32),
            TensorData::I64(v) => Tensor::from_fn(shape, |i| int(v[i])),
            _ => {
                let x = inputs[0].as_slice::<f32>()?;
                Tensor::from_fn(shape, |i| self.kind.apply(x[i], self.alpha, self.beta))
            }
        })
    }
}
