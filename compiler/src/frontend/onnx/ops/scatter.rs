//! ScatterND and ScatterElements.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::scatter::{self, Reduction};
use crate::graph::ValueId;

fn reduction(n: &NodeContext) -> Result<Reduction, Reason> {
    Ok(match n.word("reduction").as_deref() {
        None | Some("none") => Reduction::None,
        Some("add") => Reduction::Add,
        Some("mul") => Reduction::Mul,
        Some("max") => Reduction::Max,
        Some("min") => Reduction::Min,
        Some(other) => {
            return Err(format!("unknown reduction `{other}`; use none, add, mul, max or min").into());
        }
    })
}

/// Data and updates in the same form: stored as int8 if both are uint8 and only their order matters, else as in the
/// file.
fn pair(n: &mut NodeContext, reduction: Reduction) -> Result<[ValueId; 2], Reason> {
    let (data, updates) = (n.input(0)?, n.input(2)?);
    let summed = matches!(reduction, Reduction::Add | Reduction::Mul);
    if n.unsigned(data) && n.unsigned(updates) && !summed {
        return Ok([data, updates]);
    }
    Ok([n.plain(0)?, n.plain(2)?])
}

pub(super) fn nd(n: &mut NodeContext) -> Result<(), Reason> {
    let reduction = reduction(n)?;
    let [data, updates] = pair(n, reduction)?;
    let indices = n.plain(1)?;
    let v = scatter::nd(n, data, indices, updates, reduction)?;
    n.output_like(v, data)
}

pub(super) fn elements(n: &mut NodeContext) -> Result<(), Reason> {
    let reduction = reduction(n)?;
    let [data, updates] = pair(n, reduction)?;
    let indices = n.plain(1)?;
    let axis = n.axis_attribute(0, n.ty(data).rank())?;
    let v = scatter::elements(n, data, indices, updates, axis, reduction)?;
    n.output_like(v, data)
}
