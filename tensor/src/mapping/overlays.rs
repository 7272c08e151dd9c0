//! Buffers that take the entries of others, whose elements are needed no more.
//!
//! In each iteration of the innermost loop around all uses of both, all blocks that use the elements come before those
//! that use the buffer, and no iteration needs what another left.

use super::error::LowerError;
use crate::schedule::{accesses_in, bounds, private};
use crate::te::{Name, NameMap, NameSet};
use crate::tir::{Bounds, Function, Stmt};

/// The blocks of a program in their order, with what they use.
struct Uses<'f> {
    f: &'f Function,
    bounds: Bounds,
    /// For each block, the loops around it, outermost first, and its buffers.
    blocks: Vec<(Vec<Name>, Vec<Name>)>,
}

/// Adds overlays, each of a buffer and the one whose entries it takes, to `reuses`. Both must be `compacted`. `pipelines`
/// has the loop whose iterations use the slots of a buffer in turn, `slots` their number.
///
/// # Errors
/// The buffer that cannot take the entries of the other one, with the reason.
pub fn overlays(
    f: &Function,
    list: &[(Name, Name)],
    compacted: &NameSet,
    pipelines: &NameMap<Name>,
    slots: &NameMap<u32>,
    reuses: &mut NameMap<Name>,
) -> Result<(), LowerError> {
    if list.is_empty() {
        return Ok(());
    }
    let mut blocks = Vec::new();
    f.body.visit_blocks(&mut |loops, block| {
        let used = accesses_in(f, &Stmt::Block(block.clone())).into_iter().map(|a| a.buffer).collect();
        blocks.push((loops.iter().map(|l| l.var.clone()).collect(), used));
    });
    let uses = Uses { f, bounds: bounds(f), blocks };
    for (buffer, other) in list {
        let refuse = |reason: String| LowerError::Buffer { buffer: buffer.clone(), reason };
        let root = |name: &Name| reuses.get(name).unwrap_or(name).clone();
        let (own, theirs) = (root(buffer), root(other));
        if own == theirs {
            continue;
        }
        if let Some(whole) = [&own, &theirs].into_iter().find(|name| !compacted.contains(*name)) {
            return Err(refuse(format!("it takes the entries of {other}, so compact {whole} first")));
        }
        let in_turn = |name: &Name| (pipelines.get(name), slots.get(name));
        if in_turn(&own) != in_turn(&theirs) {
            return Err(refuse(format!(
                "it takes the entries of {other}, so both need the same pipeline loop and number of slots"
            )));
        }
        let group = |root: &Name| {
            let members = reuses.iter().filter(|(_, of)| *of == root).map(|(name, _)| name.clone());
            members.chain([root.clone()]).collect::<Vec<_>>()
        };
        let (later, earlier) = (group(&own), group(&theirs));
        uses.check(&later, &earlier).map_err(|reason| refuse(format!("it takes the entries of {other}, {reason}")))?;
        for name in later {
            reuses.insert(name, theirs.clone());
        }
    }
    Ok(())
}

impl Uses<'_> {
    /// Checks that buffers of `earlier` are needed no more where those of `later` are used.
    fn check(&self, later: &[Name], earlier: &[Name]) -> Result<(), String> {
        let of = |names: &[Name]| -> Vec<usize> {
            let uses = |i: &usize| self.blocks[*i].1.iter().any(|used| names.contains(used));
            (0..self.blocks.len()).filter(uses).collect()
        };
        let (first, then) = (of(earlier), of(later));
        let common = |a: &[Name], b: &[Name]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let mut all = first.iter().chain(&then).map(|&i| self.blocks[i].0.as_slice());
        let Some(around) = all.next() else { return Ok(()) };
        let home = all.fold(around.len(), |depth, loops| depth.min(common(around, loops)));
        for (&a, &b) in first.iter().flat_map(|a| then.iter().map(move |b| (a, b))) {
            if a >= b || common(&self.blocks[a].0, &self.blocks[b].0) > home {
                return Err("whose elements are still used when it is written".into());
            }
        }
        let home = match around[..home].last() {
            None => Some(&self.f.body),
            Some(var) => self.f.body.find_loop(var).map(|l| &*l.body),
        };
        let alone = |name: &&Name| !home.is_some_and(|body| private(self.f, body, name, &self.bounds));
        match earlier.iter().chain(later).find(alone) {
            Some(name) => Err(format!("but an iteration needs what another left in {name}")),
            None => Ok(()),
        }
    }
}
