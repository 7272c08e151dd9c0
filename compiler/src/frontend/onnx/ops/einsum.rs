//! Einsum.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::einsum;

pub(super) fn einsum(n: &mut NodeContext) -> Result<(), Reason> {
    let equation = n.word("equation").ok_or("it has no `equation`")?;
    let values = (0..n.proto.input.len()).map(|i| n.plain(i)).collect::<Result<Vec<_>, _>>()?;
    let v = einsum::einsum(n, &equation, &values)?;
    n.output(v)
}
