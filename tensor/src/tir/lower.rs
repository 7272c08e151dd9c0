//! Lowers tensor expressions to loops: each tensor becomes a loop nest around one block with the tensor's name.

use super::{Action, Block, Buffer, For, Function, LoopKind, Scope, Stmt, TirError, verify};
use crate::te::{Axis, Definition, Expr, Program, Tensor};

/// Lowers a tensor expression and verifies the result. Inputs and outputs become parameters, other tensors locals.
///
/// # Errors
/// [`TirError::Lower`] for an output that is an input or missing, [`TirError::Malformed`] for problems that the
/// verifier finds.
pub fn lower(program: &Program) -> Result<Function, TirError> {
    let fail = |problem: String| TirError::Lower { program: program.name.clone(), problem };
    let mut outputs = Vec::new();
    for name in &program.outputs {
        match program.tensor(name) {
            None => return Err(fail(format!("output {name} is not defined"))),
            Some(t) if t.definition == Definition::Input => return Err(fail(format!("output {name} is an input"))),
            Some(t) => outputs.push(buffer(t)),
        }
    }
    let mut params: Vec<Buffer> = program.inputs().map(buffer).collect();
    params.extend(outputs);
    let is_local = |t: &&Tensor| t.definition != Definition::Input && !program.outputs.contains(&t.name);
    let function = Function {
        name: program.name.clone(),
        intrinsics: Vec::new(),
        params,
        outputs: program.outputs.len(),
        locals: program.tensors.iter().filter(is_local).map(buffer).collect(),
        body: seq(program.tensors.iter().filter_map(nest).collect()),
    };
    verify(&function)?;
    Ok(function)
}

fn seq(mut items: Vec<Stmt>) -> Stmt {
    if items.len() == 1 { items.remove(0) } else { Stmt::Seq(items) }
}

fn buffer(t: &Tensor) -> Buffer {
    Buffer { name: t.name.clone(), dtype: t.dtype, shape: t.shape(), scope: Scope::Global }
}

fn nest(t: &Tensor) -> Option<Stmt> {
    let indices: Vec<Expr> = t.axes.iter().map(|a| Expr::Var(a.var.clone())).collect();
    let store = |value| Action::Store { buffer: t.name.clone(), indices: indices.clone(), value };
    let (reduce, init, action): (&[Axis], _, _) = match &t.definition {
        Definition::Input => return None,
        Definition::Compute(value) => (&[], None, store(value.clone())),
        Definition::Reduce { axes, combiner, init, value } => {
            let old = Expr::Load { buffer: t.name.clone(), dtype: t.dtype, indices: indices.clone() };
            (axes, Some(init.clone()), store(Expr::binary(combiner.op(), old, value.clone())))
        }
    };
    let block = Block {
        name: t.name.clone(),
        reduce: reduce.iter().map(|a| a.var.clone()).collect(),
        guards: Vec::new(),
        init,
        action,
    };
    let loops = t.axes.iter().chain(reduce).rev();
    Some(loops.fold(Stmt::Block(block), |body, a| {
        Stmt::For(For { var: a.var.clone(), extent: a.extent, kind: LoopKind::Serial, body: Box::new(body) })
    }))
}
