//! Results that take the place of an operand.
//!
//! If an element-wise block is the last to read results of other instructions, its own results can be written over them,
//! so that both buffers share the same entries. Elements that were loaded are not written over: the next load would have
//! to wait until the results are stored.

use super::intrinsics::{Instruction, called};
use crate::schedule::{bounds, injective, private};
use crate::te::{Expr, Name, NameMap};
use crate::tir::{Action, Block, Bounds, For, Function, Scope};

/// Returns the buffers that can use the entries of another one. `pipelines` has the loop whose iterations use the slots
/// of a buffer in turn, `slots` their number.
pub fn reuses(
    f: &Function,
    instructions: &NameMap<Instruction>,
    pipelines: &NameMap<Name>,
    slots: &NameMap<u32>,
) -> NameMap<Name> {
    let mut blocks: Vec<(Vec<&For>, &Block)> = Vec::new();
    f.body.visit_blocks(&mut |loops, block| blocks.push((loops.to_vec(), block)));
    let program = Blocks { f, bounds: bounds(f), blocks };
    let mut found: NameMap<Name> = NameMap::default();
    for at in 0..program.blocks.len() {
        let Some(candidate) = elementwise(f, program.blocks[at].1, instructions) else { continue };
        let in_turn = |buffer: &Name| (pipelines.get(buffer), slots.get(buffer));
        let same_slots = |operand: &Name| in_turn(&candidate.result) == in_turn(operand);
        let fits = |operand: &&Name| same_slots(operand) && program.can_replace(at, &candidate, operand);
        if let Some(operand) = candidate.operands.iter().find(fits) {
            let root = found.get(operand).unwrap_or(operand).clone();
            found.insert(candidate.result.clone(), root);
        }
    }
    found
}

/// The blocks of a program in their order, each with the loops around it.
struct Blocks<'f> {
    f: &'f Function,
    bounds: Bounds,
    blocks: Vec<(Vec<&'f For>, &'f Block)>,
}

/// A block that computes each element of its result from elements at the same place.
struct Elementwise {
    result: Name,
    /// Indices of the result, and its dimensions within an entry with their extents.
    indices: Vec<Expr>,
    dims: Vec<(Name, i64)>,
    operands: Vec<Name>,
}

impl Blocks<'_> {
    /// Returns whether the results of block `at` can be written over an operand.
    fn can_replace(&self, at: usize, block: &Elementwise, operand: &Name) -> bool {
        let f = self.f;
        let local = |name: &Name| f.locals.iter().find(|b| b.name == *name);
        let alike = local(&block.result).zip(local(operand)).is_some_and(|(a, b)| {
            a.scope == b.scope && (&a.shape, a.dtype) == (&b.shape, b.dtype) && a.scope != Scope::Global
        });
        let first = self.blocks.iter().take(at).all(|(_, other)| !uses(other, &block.result));
        let loaded = self.blocks.iter().any(|(_, other)| writes(other, operand) && reads(f, other)[0]);
        if !alike || !first || loaded {
            return false;
        }
        let loops = &self.blocks[at].0;
        // The operand is computed again in each iteration of the loops around, up to this one.
        let home = loops.iter().rposition(|l| private(f, &l.body, operand, &self.bounds));
        let inner: Vec<Name> = loops.iter().skip(home.map_or(0, |h| h + 1)).map(|l| l.var.clone()).collect();
        // No element is computed twice from one operand, and no result is needed when the operand is computed again.
        let once = injective(&block.indices, &inner, &block.dims, &self.bounds);
        let ends = home.is_none_or(|h| private(f, &loops[h].body, &block.result, &self.bounds));
        let read_before = |(i, (around, other)): (usize, &(Vec<&For>, &Block))| {
            if i == at || !uses(other, operand) {
                return true;
            }
            let common = loops.iter().zip(around).take_while(|(a, b)| a.var == b.var).last();
            i < at && common.is_none_or(|(l, _)| private(f, &l.body, operand, &self.bounds))
        };
        once && ends && self.blocks.iter().enumerate().all(read_before)
    }
}

/// Returns an element-wise block. Its operands are those that it reads only at the place of its result.
fn elementwise(f: &Function, block: &Block, instructions: &NameMap<Instruction>) -> Option<Elementwise> {
    if !block.reduce.is_empty() {
        return None;
    }
    match &block.action {
        Action::Store { buffer, indices, value: Expr::Load { buffer: from, indices: read, .. } } => (indices == read)
            .then(|| Elementwise {
                result: buffer.clone(),
                indices: indices.clone(),
                dims: Vec::new(),
                operands: vec![from.clone()],
            }),
        Action::Store { .. } => None,
        Action::Call { intrinsic, args } => {
            let Some(Instruction::Vector(v)) = called(block, instructions) else { return None };
            let [dst, sources @ ..] = v.params;
            let dst = args.get(dst?)?;
            let same = |name: &Name| {
                let all = args.iter().filter(|a| a.buffer == *name);
                all.clone().all(|a| (&a.indices, &a.dims) == (&dst.indices, &dst.dims))
            };
            let operands = sources.into_iter().flatten().filter_map(|i| args.get(i)).map(|a| a.buffer.clone());
            let param = f.intrinsic(intrinsic)?.params.last()?;
            Some(Elementwise {
                result: dst.buffer.clone(),
                indices: dst.indices.clone(),
                dims: dst.dims.iter().cloned().zip(param.shape.iter().copied()).collect(),
                operands: operands.filter(|name| *name != dst.buffer && same(name)).collect(),
            })
        }
    }
}

/// Returns whether a block reads device memory, and whether it reads anything else.
fn reads(f: &Function, block: &Block) -> [bool; 2] {
    let [mut device, mut other] = [false, matches!(block.action, Action::Call { .. })];
    block.each_expr(&mut |e| {
        e.visit(&mut |e| {
            if let Expr::Load { buffer, .. } = e {
                let is_global = f.buffer(buffer).is_some_and(|b| b.scope == Scope::Global);
                device |= is_global;
                other |= !is_global;
            }
        });
    });
    [device, other]
}

/// Returns whether a block reads nothing but device memory and constants.
pub fn reads_only_device_memory(f: &Function, block: &Block) -> bool {
    !reads(f, block)[1]
}

/// Returns whether a block writes a buffer.
pub fn writes(block: &Block, buffer: &Name) -> bool {
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
