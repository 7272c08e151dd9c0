//! The names of the activation functions that a recurrent node selects.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::recurrent::{Activation, Function};
use crate::graph::op::UnaryKind;

/// A parameter of a function.
#[derive(Debug, Clone, Copy)]
enum Parameter {
    /// The function has no such parameter.
    None,
    /// It has the default of the operator with the same name.
    Default(f32),
    /// It must be given.
    Needed,
}

use Parameter::{Default, Needed, None as Without};

/// The format's names of the functions, with alpha and beta.
const FUNCTIONS: [(&str, Function, Parameter, Parameter); 11] = [
    ("Affine", Function::Affine, Needed, Needed),
    ("Elu", Function::Other(UnaryKind::Elu), Default(1.0), Without),
    ("HardSigmoid", Function::Other(UnaryKind::HardSigmoid), Default(0.2), Default(0.5)),
    ("LeakyRelu", Function::Other(UnaryKind::LeakyRelu), Default(0.01), Without),
    ("Relu", Function::Relu, Without, Without),
    ("ScaledTanh", Function::ScaledTanh, Needed, Needed),
    ("Sigmoid", Function::Other(UnaryKind::Sigmoid), Without, Without),
    ("Softplus", Function::Other(UnaryKind::Softplus), Without, Without),
    ("Softsign", Function::Other(UnaryKind::Softsign), Without, Without),
    ("Tanh", Function::Other(UnaryKind::Tanh), Without, Without),
    ("ThresholdedRelu", Function::ThresholdedRelu, Default(1.0), Without),
];

/// The activations of each direction, in order: the named ones, else `defaults`.
///
/// Values of `activation_alpha` and `activation_beta` are assigned, in order, to the functions that have such a
/// parameter.
pub(super) fn activations(
    n: &NodeContext,
    directions: usize,
    defaults: &[Activation],
) -> Result<Vec<Activation>, Reason> {
    let count = directions * defaults.len();
    let mut alphas = n.list("activation_alpha").unwrap_or_default().iter();
    let mut betas = n.list("activation_beta").unwrap_or_default().iter();
    let Some(names) = n.words("activations") else { return Ok(defaults.repeat(directions)) };
    if names.len() != count {
        return Err(format!("its activations must be {count} names, found {}", names.len()).into());
    }
    let mut made = Vec::with_capacity(count);
    for name in names {
        let known = FUNCTIONS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(&name));
        let &(name, function, alpha, beta) = known.ok_or_else(|| {
            let all: Vec<&str> = FUNCTIONS.iter().map(|f| f.0).collect();
            Reason(format!("unknown activation `{name}`; use one of {}", all.join(", ")))
        })?;
        let take = |parameter, which: &str, given: &mut std::slice::Iter<f32>| match parameter {
            Without => Ok(0.0),
            Default(value) => Ok(given.next().copied().unwrap_or(value)),
            Needed => given
                .next()
                .copied()
                .ok_or_else(|| Reason(format!("its activation {name} needs a parameter; add it to `{which}`"))),
        };
        let alpha = take(alpha, "activation_alpha", &mut alphas)?;
        let beta = take(beta, "activation_beta", &mut betas)?;
        made.push(Activation { function, alpha, beta });
    }
    for (left, which) in [(alphas.len(), "activation_alpha"), (betas.len(), "activation_beta")] {
        if left > 0 {
            return Err(format!("its {which} has {left} more values than its activations use").into());
        }
    }
    Ok(made)
}
