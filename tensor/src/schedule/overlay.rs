//! `overlay`: gives a buffer the entries of another one, whose elements are needed no more.

use super::error::{Reason, refuse};
use super::tree::local;
use crate::te::Name;
use crate::tir::{Function, Scope};

/// Checks the step. The loop program stays the same; that the elements of `other` are needed no more is checked when
/// buffers get their entries of a scratchpad, because later steps can move blocks.
pub fn overlay(f: &Function, buffer: &Name, other: &Name) -> Result<Vec<Name>, Reason> {
    let (own, theirs) = (local(f, buffer)?.scope, local(f, other)?.scope);
    if buffer == other {
        refuse!("name two buffers");
    }
    if own != theirs || !matches!(own, Scope::Inp | Scope::Wgt | Scope::Acc | Scope::Out) {
        refuse!(
            "both buffers must be in inp, wgt, acc or out; {buffer} is in {} and {other} in {}",
            own.name(),
            theirs.name()
        );
    }
    Ok(Vec::new())
}
