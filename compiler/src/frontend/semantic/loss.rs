//! Losses, which some files have at their end.

use super::SemanticBuilder;
use crate::frontend::reason::Reason;
use crate::graph::op::{BinaryKind, Gather, GatherElements, ReduceKind, Select, UnaryKind};
use crate::graph::{DType, Tensor, ValueId};

/// What becomes of the losses of all elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    None,
    Sum,
    /// The sum, divided by that of the weights.
    Mean,
}

/// Losses of classes.
#[derive(Debug, Clone, Copy)]
pub struct Loss {
    /// The class of each element, `[N, …]`.
    pub target: ValueId,
    /// A weight for each class.
    pub weight: Option<ValueId>,
    /// A class whose elements do not count.
    pub ignored: Option<i64>,
    pub reduction: Reduction,
}

/// The negative logarithm of each target's probability, from logarithms of probabilities, `[N, classes, …]`.
pub fn negative_log_likelihood(n: &mut SemanticBuilder, data: ValueId, of: Loss) -> Result<ValueId, Reason> {
    let (shape, of_targets) = (n.shape(data)?, n.shape(of.target)?);
    let mut wanted = shape.clone();
    if shape.len() >= 2 {
        wanted.remove(1);
    }
    if shape.len() < 2 || of_targets != wanted {
        return Err(format!("its target must be {wanted:?} for data {}, found {}", n.ty(data), n.ty(of.target)).into());
    }
    let mut target = n.cast("target", of.target, DType::I64)?;
    let ignored = match of.ignored {
        Some(class) => {
            let class = n.made("ignored/class", Tensor::scalar(class));
            let zero = n.made("ignored/zero", Tensor::scalar(0i64));
            let ignored = n.binary("ignored", BinaryKind::Equal, target, class)?;
            target = n.node("target/safe", Select {}, &[ignored, zero, target])?;
            Some(ignored)
        }
        None => None,
    };
    let mut column = shape;
    column[1] = 1;
    let index = n.reshape("target/column", target, &column)?;
    let chosen = n.node("chosen", GatherElements { axis: 1 }, &[data, index])?;
    let chosen = n.reshape("chosen/row", chosen, &of_targets)?;
    let mut loss = n.unary("loss", UnaryKind::Neg, chosen)?;
    let mut weights = match of.weight {
        Some(weight) => Some(n.node("weights", Gather { axis: 0 }, &[weight, target])?),
        None => None,
    };
    if let Some(ignored) = ignored {
        let (none, one) = (n.scalar("weights/none", 0.0), n.scalar("weights/one", 1.0));
        weights = Some(n.node("weights/kept", Select {}, &[ignored, none, weights.unwrap_or(one)])?);
    }
    if let Some(weights) = weights {
        loss = n.binary("weighted", BinaryKind::Mul, loss, weights)?;
    }
    let all: Vec<usize> = (0..of_targets.len()).collect();
    match (of.reduction, weights) {
        (Reduction::None, _) => Ok(loss),
        (Reduction::Sum, _) => n.reduce("", ReduceKind::Sum, &all, false, loss),
        (Reduction::Mean, None) => n.reduce("", ReduceKind::Mean, &all, false, loss),
        (Reduction::Mean, Some(weights)) => {
            let sum = n.reduce("sum", ReduceKind::Sum, &all, false, loss)?;
            let weight = n.reduce("weight", ReduceKind::Sum, &all, false, weights)?;
            n.binary("", BinaryKind::Div, sum, weight)
        }
    }
}
