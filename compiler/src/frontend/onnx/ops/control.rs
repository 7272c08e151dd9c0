//! If: imports the branch that the condition selects.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::graph::TensorData;

pub(super) fn branch(n: &mut NodeContext) -> Result<(), Reason> {
    let graphs = [n.graph("else_branch"), n.graph("then_branch")];
    let Some(condition) = n.known(0) else {
        // Reports an undefined condition first.
        n.input(0)?;
        let name = &n.proto.input[0];
        return Err(format!(
            "its condition `{name}` is computed at run time, but the branch must be known when the model is imported; \
             make \
             the condition a constant, or give the sizes that it follows from with --shape or --bind"
        )
        .into());
    };
    let holds = match condition.data() {
        TensorData::Bool(v) if v.len() == 1 => v[0],
        _ => return Err(format!("its condition must be one truth value, found {}", condition.ty()).into()),
    };
    let name = if holds { "then_branch" } else { "else_branch" };
    if graphs[usize::from(holds)].is_none() {
        return Err(format!("its attribute `{name}` is missing").into());
    }
    n.branch = Some(name);
    Ok(())
}
