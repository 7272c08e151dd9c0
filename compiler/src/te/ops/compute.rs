//! `compute`.

use super::library::renamed;
use crate::graph::op::Compute;
use crate::te::{Builder, Definition, Name, NameMap, TensorRef};

/// Appends the tensors of the expression, which read the operands in place of its inputs.
pub(super) fn compute(b: &mut Builder, op: &Compute, args: &[TensorRef]) -> Option<TensorRef> {
    let program = op.expression.within()?;
    let mut names: NameMap<Name> =
        program.inputs().zip(args).map(|(input, arg)| (input.name.clone(), arg.name.clone())).collect();
    for tensor in program.tensors.iter().filter(|tensor| tensor.definition != Definition::Input) {
        let name = b.unique(tensor.name.as_str());
        names.insert(tensor.name.clone(), name);
        b.append(vec![renamed(tensor.clone(), &|name| names.get(name).unwrap_or(name).clone())])?;
    }
    let output = program.tensor(program.outputs.first()?)?.reference();
    Some(TensorRef { name: names.get(&output.name)?.clone(), ..output })
}
