//! Numbers of a function that are arguments of its code, so that the code serves functions that differ in them.

use std::collections::BTreeMap;

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::values::{BasicMetadataValueEnum, IntValue};
use tilewright_compiler::te::{Name, NameMap};
use tilewright_compiler::tir::{Buffer, For, Function, Scope};

use super::{ALIGN, Emitter};
use crate::EmitError;

/// Name of the input whose elements are the sizes, followed by the offsets of local buffers in the workspace.
pub(crate) const SIZES: &str = "tw.sizes";

/// Name of the input whose elements are the floats.
pub(crate) const NUMBERS: &str = "tw.numbers";

/// Largest local buffer on the stack, in bytes.
const STACK_BYTES: usize = 4096;

/// Name of the variable that has a size.
pub(crate) fn size(number: u32) -> Name {
    format!("tw.size{number}").into()
}

/// Which numbers of a function are sizes. Sizes in expressions are variables ([`size`]).
#[derive(Debug, Clone, Default)]
pub(crate) struct Open {
    /// How many sizes there are.
    pub sizes: usize,
    /// Loops whose extent is a size, by their variable. It is at least 1.
    pub extents: NameMap<u32>,
    /// For each buffer, the dimensions that are sizes.
    pub dims: NameMap<BTreeMap<usize, u32>>,
}

impl Open {
    pub fn on_stack(&self, b: &Buffer) -> bool {
        b.scope == Scope::Local && b.size_bytes() <= STACK_BYTES && !self.dims.contains_key(&b.name)
    }

    /// Returns the workspace offset of each local buffer, or `None` if it is on the stack, and the size of the workspace.
    pub fn workspace(&self, f: &Function) -> (Vec<Option<usize>>, usize) {
        let mut at = 0;
        let places = f
            .locals
            .iter()
            .map(|b| {
                if self.on_stack(b) {
                    return None;
                }
                let place = at;
                at = (at + b.size_bytes()).next_multiple_of(ALIGN);
                Some(place)
            })
            .collect();
        (places, at)
    }

    /// Returns how many offsets of local buffers follow the sizes: none if all are known.
    pub fn offsets(&self, f: &Function) -> usize {
        let moves = f.locals.iter().any(|b| self.dims.contains_key(&b.name));
        if moves { self.workspace(f).0.iter().flatten().count() } else { 0 }
    }
}

/// Loads an i64 of an array.
pub(super) fn word<'c>(
    context: &'c Context,
    builder: &Builder<'c>,
    array: BasicMetadataValueEnum<'c>,
    at: usize,
) -> Result<IntValue<'c>, EmitError> {
    let i64t = context.i64_type();
    // SAFETY: the caller passes as many words as there are sizes and offsets, which is more than `at`.
    let place = unsafe {
        builder.build_in_bounds_gep(i64t, array.into_pointer_value(), &[i64t.const_int(at as u64, false)], "")?
    };
    Ok(builder.build_load(i64t, place, "")?.into_int_value())
}

impl<'c> Emitter<'_, 'c> {
    /// Makes all sizes variables.
    pub(super) fn load_sizes(&mut self) -> Result<(), EmitError> {
        let Some(&sizes) = self.buffers.get(&Name::from(SIZES)) else { return Ok(()) };
        for number in 0..self.open.sizes {
            let value = word(self.context, &self.builder, sizes.into(), number)?;
            self.vars.insert(size(number as u32), value.into());
        }
        Ok(())
    }

    fn size(&self, number: u32) -> Result<IntValue<'c>, EmitError> {
        let value = self.vars.get(&size(number)).map(|value| value.into_int_value());
        value.ok_or_else(|| EmitError::Program(format!("size {number} is not an argument")))
    }

    pub(super) fn extent(&self, l: &For) -> Result<IntValue<'c>, EmitError> {
        self.open.extents.get(&l.var).map_or_else(|| Ok(self.i64(l.extent)), |number| self.size(*number))
    }

    pub(super) fn dim(&self, b: &Buffer, axis: usize) -> Result<IntValue<'c>, EmitError> {
        let open = self.open.dims.get(&b.name).and_then(|dims| dims.get(&axis));
        open.map_or_else(|| Ok(self.i64(b.shape[axis])), |number| self.size(*number))
    }

    /// The buffer's dimensions that are known when code is generated.
    pub(super) fn known_dims(&self, b: &Buffer) -> Vec<Option<i64>> {
        let open = self.open.dims.get(&b.name);
        let known = |(axis, n): (usize, &i64)| Some(*n).filter(|_| open.is_none_or(|open| !open.contains_key(&axis)));
        b.shape.iter().enumerate().map(known).collect()
    }
}
