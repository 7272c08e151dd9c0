//! Activation functions of recurrent cells.

use crate::frontend::reason::Reason;
use crate::frontend::semantic::SemanticBuilder;
use crate::frontend::semantic::elementwise::thresholded;
use crate::graph::ValueId;
use crate::graph::op::{BinaryKind, Clip, Unary, UnaryKind};

/// An activation function with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Activation {
    pub function: Function,
    pub alpha: f32,
    pub beta: f32,
}

/// A function of one element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Function {
    Relu,
    /// `x` if it is above alpha, else 0.
    ThresholdedRelu,
    /// `alpha * x + beta`.
    Affine,
    /// `alpha * tanh(beta * x)`.
    ScaledTanh,
    Other(UnaryKind),
}

impl Activation {
    /// A function without parameters.
    pub const fn of(kind: UnaryKind) -> Activation {
        Activation { function: Function::Other(kind), alpha: 0.0, beta: 0.0 }
    }

    /// Applies the function to each element.
    pub fn apply(&self, n: &mut SemanticBuilder, suffix: &str, v: ValueId) -> Result<ValueId, Reason> {
        let &Activation { function, alpha, beta } = self;
        match function {
            Function::Relu => n.node(suffix, Clip { lo: 0.0, hi: f32::INFINITY }, &[v]),
            Function::ThresholdedRelu => thresholded(n, suffix, v, alpha),
            Function::Other(kind) => n.node(suffix, Unary { kind, alpha, beta }, &[v]),
            Function::Affine => {
                let (alpha, beta) = self.parameters(n, suffix);
                let v = n.binary(&format!("{suffix}/scaled"), BinaryKind::Mul, v, alpha)?;
                n.add(suffix, v, beta)
            }
            Function::ScaledTanh => {
                let (alpha, beta) = self.parameters(n, suffix);
                let v = n.binary(&format!("{suffix}/scaled"), BinaryKind::Mul, v, beta)?;
                let v = n.unary(&format!("{suffix}/tanh"), UnaryKind::Tanh, v)?;
                n.binary(suffix, BinaryKind::Mul, v, alpha)
            }
        }
    }

    fn parameters(&self, n: &mut SemanticBuilder, suffix: &str) -> (ValueId, ValueId) {
        (n.scalar(&format!("{suffix}/alpha"), self.alpha), n.scalar(&format!("{suffix}/beta"), self.beta))
    }
}
