//! `stage`: sets in which stage of a software pipeline a block runs.

use super::error::{Reason, refuse};
use super::tree::find_block;
use crate::te::Name;
use crate::tir::{Function, LoopKind};

/// Last stage.
const MAX_STAGE: i64 = 15;

/// Checks the step. The loop program stays the same; the number is used when its loops become instructions.
pub fn stage(f: &Function, block: &Name, number: i64) -> Result<Vec<Name>, Reason> {
    if !(0..=MAX_STAGE).contains(&number) {
        refuse!("a stage is a number from 0 to {MAX_STAGE}, not {number}");
    }
    let (loops, _) = find_block(f, block)?;
    let pipelined = |name: &Name| f.body.find_loop(name).is_some_and(|l| l.kind == LoopKind::Pipeline);
    if !loops.iter().any(pipelined) {
        refuse!("no loop around {block} is a pipeline; annotate one first");
    }
    Ok(Vec::new())
}
