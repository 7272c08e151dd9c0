//! NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::loss::{Loss, Reduction, negative_log_likelihood};
use crate::frontend::semantic::reduce::log_softmax;

/// Operands and attributes behind the data.
fn read(n: &mut NodeContext) -> Result<Loss, Reason> {
    let reduction = match n.word("reduction").as_deref() {
        None | Some("mean") => Reduction::Mean,
        Some("sum") => Reduction::Sum,
        Some("none") => Reduction::None,
        Some(other) => return Err(format!("unknown reduction `{other}`; use none, sum or mean").into()),
    };
    let target = n.plain(1)?;
    let weight = n.optional(2)?;
    Ok(Loss { target, weight, ignored: n.int("ignore_index"), reduction })
}

pub(super) fn negative_log(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, of) = (n.plain(0)?, read(n)?);
    let v = negative_log_likelihood(n, data, of)?;
    n.output(v)
}

pub(super) fn cross_entropy(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, of) = (n.plain(0)?, read(n)?);
    if n.ty(data).rank() < 2 {
        return Err(format!("its scores must have classes in dimension 1, found {}", n.ty(data)).into());
    }
    let logarithms = log_softmax(n, data, 1)?;
    let v = negative_log_likelihood(n, logarithms, of)?;
    n.outputs(&[v, logarithms])
}
