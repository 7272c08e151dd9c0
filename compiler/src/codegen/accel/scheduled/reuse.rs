//! Results that take the place of an operand.
//!
//! If an element-wise block is the last to read results of other instructions, its own results can be written over them,
//! so that both buffers need the entries of one. Elements that were loaded are not written over: the next load would
//! have to wait until the results are stored.

use std::collections::HashMap;

use super::intrinsics::{Instruction, called};
use crate::schedule::{bounds, private};
use crate::te::{Expr, Name};
use crate::tir::{Action, Block, For, Function, Scope};

/// Returns the buffers that can use the entries of another one. `pipelines` has the loop whose iterations use the slots
/// of a buffer in turn.
pub fn reuses(
    f: &Function,
    instructions: &HashMap<Name, Instruction>,
    pipelines: &HashMap<Name, Name>,
) -> HashMap<Name, Name> {
    let mut blocks: Vec<(Vec<&For>, &Block)> = Vec::new();
    f.body.visit_blocks(&mut |loops, block| blocks.push((loops.to_vec(), block)));
    let mut found: HashMap<Name, Name> = HashMap::new();
    for (at, (loops, block)) in blocks.iter().enumerate() {
        let Some((result, operands)) = elementwise(block, instructions) else { continue };
        for operand in operands {
            let alike = f.locals.iter().find(|b| b.name == result).zip(f.locals.iter().find(|b| b.name == operand));
            let alike = alike.is_some_and(|(a, b)| {
                a.scope == b.scope && (&a.shape, a.dtype) == (&b.shape, b.dtype) && a.scope != Scope::Global
            });
            let first = blocks.iter().take(at).all(|(_, other)| !uses(other, &result));
            let loaded = blocks.iter().any(|(_, other)| writes(other, &operand) && reads_device_memory(f, other));
            let same_slots = pipelines.get(&result) == pipelines.get(&operand);
            let read_before = |(i, (around, other)): (usize, &(Vec<&For>, &Block))| {
                if i == at || !uses(other, &operand) {
                    return true;
                }
                let common = loops.iter().zip(around).take_while(|(a, b)| a.var == b.var).last();
                i < at && common.is_none_or(|(l, _)| private(f, &l.body, &operand, &bounds(f)))
            };
            if alike && first && !loaded && same_slots && blocks.iter().enumerate().all(read_before) {
                let root = found.get(&operand).cloned().unwrap_or(operand);
                found.insert(result.clone(), root);
                break;
            }
        }
    }
    found
}

/// Returns the result of an element-wise block, and the operands that it reads at the same place.
fn elementwise(block: &Block, instructions: &HashMap<Name, Instruction>) -> Option<(Name, Vec<Name>)> {
    if !block.reduce.is_empty() {
        return None;
    }
    match &block.action {
        Action::Store { buffer, indices, value: Expr::Load { buffer: from, indices: read, .. } } => {
            (indices == read).then(|| (buffer.clone(), vec![from.clone()]))
        }
        Action::Store { .. } => None,
        Action::Call { args, .. } => {
            let Some(Instruction::Vector(v)) = called(block, instructions) else { return None };
            let [dst, sources @ ..] = v.params;
            let dst = args.get(dst?)?;
            let same = sources.into_iter().flatten().filter_map(|i| args.get(i));
            let same = same.filter(|a| a.buffer != dst.buffer && (&a.indices, &a.dims) == (&dst.indices, &dst.dims));
            Some((dst.buffer.clone(), same.map(|a| a.buffer.clone()).collect()))
        }
    }
}

fn reads_device_memory(f: &Function, block: &Block) -> bool {
    let mut found = false;
    block.each_expr(&mut |e| {
        e.visit(&mut |e| {
            if let Expr::Load { buffer, .. } = e {
                found |= f.buffer(buffer).is_some_and(|b| b.scope == Scope::Global);
            }
        });
    });
    found
}

fn writes(block: &Block, buffer: &Name) -> bool {
    match &block.action {
        Action::Store { buffer: to, .. } => to == buffer,
        Action::Call { args, .. } => args.last().is_some_and(|view| view.buffer == *buffer),
    }
}

fn uses(block: &Block, buffer: &Name) -> bool {
    let mut found = writes(block, buffer);
    if let Action::Call { args, .. } = &block.action {
        found |= args.iter().any(|view| view.buffer == *buffer);
    }
    block.each_expr(&mut |e| e.visit(&mut |e| found |= matches!(e, Expr::Load { buffer: from, .. } if from == buffer)));
    found
}
