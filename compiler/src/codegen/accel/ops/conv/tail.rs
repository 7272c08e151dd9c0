//! Emits the element-wise operators that are fused into a product's tiles: operators of two tensors, and lookups.
//!
//! A tile's results are in the lower half of out and the second tensor's elements in the upper half, because a bank has
//! only one read port. The operator's results overwrite the product's results.

use super::epilogue::Epilogue;
use super::op::Conv;
use crate::codegen::accel::batch::Group;
use crate::codegen::accel::emit::{DeviceTensor, Emit};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::ops::pairwise::PairwiseTile;
use crate::codegen::accel::padded_range::PaddedRange;
use crate::codegen::accel::target::Target;
use crate::codegen::accel::window::Window;
use crate::tir::Scope;
use std::ops::Range;
use tilewright_driver::{Dim, DriverError, Nest, Role};
use tilewright_hw::config::Mem;
use tilewright_hw::isa::{VecDst, VecOp, VecSrc, Vector};
use tilewright_hw::layout::{pack_descriptor, pack_table};

/// An operator with its constants and its second operand.
struct TailStep<'a> {
    step: &'a Epilogue,
    /// Its scalars or table, if any.
    constants: Option<ConstantBytes>,
    operand: Option<DeviceTensor>,
}

/// A part of the program's constants.
#[derive(Clone, Copy)]
struct ConstantBytes {
    offset: u64,
    bytes: u64,
}

/// A tile's results, to which the fused operators are applied.
#[derive(Clone, Copy)]
pub struct TailResults {
    /// First entry in out.
    pub out: u32,
    /// Number of entries.
    pub entries: u32,
    /// Destination of the last operator's results, if it is not `out`.
    pub target: Option<Target>,
}

/// The fused element-wise operators of a layer.
pub struct Tail<'a>(Vec<TailStep<'a>>);

impl<'a> Tail<'a> {
    /// Collects the fused element-wise operators of a layer and adds their constants to the program.
    pub fn new(e: &mut Emit, layer: &Layer, conv: &'a Conv) -> Result<Tail<'a>, DriverError> {
        let mut steps = Vec::new();
        for step in conv.epilogue.iter().filter(|step| step.operation().is_some()) {
            let bytes = match step {
                Epilogue::Pool { .. } => None,
                Epilogue::Pair { op, .. } => op.descriptor().map(|d| pack_descriptor(e.config, &d)),
                Epilogue::Lookup(table) => {
                    // The hardware indexes the table with the byte as an unsigned number.
                    let unsigned = std::array::from_fn(|i| table.get(i ^ 0x80).copied().unwrap_or(0));
                    Some(pack_table(e.config, &unsigned))
                }
            };
            let constants = bytes.map(|b| {
                let offset = e.b.constant(&format!("{} parameters", layer.name), Role::Params, &b);
                ConstantBytes { offset, bytes: b.len() as u64 }
            });
            let operand = match step {
                Epilogue::Pair { input, .. } => Some(e.place(layer.inputs[*input])?),
                Epilogue::Lookup(_) | Epilogue::Pool { .. } => None,
            };
            steps.push(TailStep { step, constants, operand });
        }
        Ok(Tail(steps))
    }

    /// Whether there are no operators.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Allocates entries of out for a tile's results. `again`: the vector unit also reads the results without these
    /// operators.
    pub fn room(&self, e: &mut Emit, entries: u32, again: bool) -> u32 {
        match self.0.as_slice() {
            [] if !again => e.out.take(entries),
            steps if steps.iter().any(|s| s.operand.is_some()) => e.lower.take(entries),
            // Consecutive tiles are in different banks, so that one is stored while the next is computed.
            _ => e.banks.take(entries),
        }
    }

    /// Applies the operators to the results of a group's tiles.
    pub fn apply(
        &self,
        e: &mut Emit,
        group: &Group,
        blocks: &Range<usize>,
        results: TailResults,
    ) -> Result<(), DriverError> {
        let TailResults { out, entries, target } = results;
        for (k, s) in self.0.iter().enumerate() {
            let target = target.filter(|_| k + 1 == self.0.len());
            let put = |nest: Nest| match target {
                Some(t) => t.results(nest, blocks.len() as u32, group.size.map(|n| n as u32)),
                None => nest,
            };
            let dst = target.map_or(VecDst::Out, |t| t.dst);
            let descriptor = match s.constants {
                Some(constants) => load_constants(e, k, constants)?,
                None => 0,
            };
            let vector = Vector { dst, a: VecSrc::Out, descriptor, ..Vector::default() };
            match (s.step, s.operand) {
                (Epilogue::Pair { op, .. }, Some(place)) => {
                    let b = e.upper.take(entries);
                    load_operand(e, place, group, blocks, b)?;
                    let work = PairwiseTile { entries, op: *op, sources: [Scope::Out, Scope::Out] };
                    let nest = e.nest(&work)?;
                    let vector = Vector { op: op.operation(), mode: op.mode(), b: VecSrc::Out, ..vector };
                    e.b.vector_nest(vector, &put(Nest { at: [out, out, b], ..nest }))?;
                }
                _ => {
                    let dims = vec![Dim::new(entries, [1, 1, 0])];
                    let nest = Nest { at: [out, out, 0], body: vec![[0; 3]], dims };
                    e.b.vector_nest(Vector { op: VecOp::Lut, ..vector }, &put(nest))?;
                }
            }
        }
        Ok(())
    }
}

/// Loads the constants of operator `k`, and returns their first entry of param.
fn load_constants(e: &mut Emit, k: usize, constants: ConstantBytes) -> Result<u32, DriverError> {
    let ConstantBytes { offset, bytes } = constants;
    let key = [usize::MAX - k, 0, 0, 0, 0];
    let rows = e.config.rows_of_entry(Mem::Param);
    let needed = bytes.div_ceil(u64::from(e.config.block_out)) as u32;
    Ok(e.load_params(key, (offset, bytes), needed)? / rows)
}

/// Loads the same tiles of the second operand to out.
fn load_operand(
    e: &mut Emit,
    place: DeviceTensor,
    group: &Group,
    blocks: &Range<usize>,
    entry: u32,
) -> Result<(), DriverError> {
    let all = |r: &Range<usize>| PaddedRange { start: r.start, inside: r.len(), before: 0, after: 0 };
    let windows: Vec<Window> = group
        .tiles
        .iter()
        .map(|t| Window {
            image: t.image,
            blocks: blocks.clone(),
            rows: all(&t.rows),
            skip: 1,
            columns: all(&t.columns),
        })
        .collect();
    let ratio = place.layout.block / e.config.block_out as usize;
    let load = tilewright_hw::isa::Load { mem: Mem::Out, entry, ..Default::default() };
    group.load(e, place, &windows, group.size, load, ratio)
}
