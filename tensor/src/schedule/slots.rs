//! `slots`: sets how many iterations of a pipeline can have their part of a buffer at the same time.

use super::error::{Reason, refuse};
use super::tree::local;
use crate::te::Name;
use crate::tir::Function;

/// Most slots of a buffer.
const MAX_SLOTS: i64 = 64;

/// Checks the step. The loop program stays the same; the number is used when buffers get their entries of a scratchpad.
pub fn slots(f: &Function, buffer: &Name, count: i64) -> Result<Vec<Name>, Reason> {
    local(f, buffer)?;
    if !(1..=MAX_SLOTS).contains(&count) {
        refuse!("a buffer has 1 to {MAX_SLOTS} slots, not {count}");
    }
    Ok(Vec::new())
}
