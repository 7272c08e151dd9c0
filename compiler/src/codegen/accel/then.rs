//! What becomes of a product's results in its tiles, before they are stored: operators with another tensor, and tables.
//!
//! A tile's results lie in the lower half of out, the other tensor's elements in the upper: a bank has one read port. The
//! operator's results take the place of the product's.

use super::batch::Group;
use super::build::{Emit, Place, Work};
use super::keep::{OnChip, Target};
use super::layer::{Layer, Span, Then};
use super::pair::descriptor;
use super::pooled::Windows;
use super::vector::Pairwise;
use super::window::Window;
use crate::graph::ValueId;
use crate::tir::Scope;
use std::ops::Range;
use tilewright_driver::{Dim, DriverError, Nest, Role};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{VecDst, VecOp, VecSrc, Vector};
use tilewright_hw::layout::{pack_descriptor, pack_table};

/// What operators on a product's results need of a tile.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Need<'a> {
    /// Tensors loaded beside the results.
    pub operands: usize,
    /// Entries of param.
    pub params: usize,
    /// Vector's cycles for an entry.
    pub entry_cycles: u64,
    /// Vector's cycles for a tile beyond those of its entries.
    pub tile_cycles: u64,
    /// What lies in inp beside what is loaded.
    pub on_chip: OnChip,
    /// The pooling behind the product.
    pub pooling: Option<Windows<'a>>,
}

/// The need of a layer's operators.
///
/// # Errors
/// The reason, where the configuration has no way for them in a product's tiles.
pub(super) fn need<'a>(layer: &'a Layer, config: &HwConfig) -> Result<Need<'a>, String> {
    let mut need = Need { on_chip: layer.on_chip, pooling: Windows::of(layer), ..Need::default() };
    for step in &layer.then {
        let Some(op) = operation(step) else { continue };
        if !op.is_built(config) {
            return Err(format!("the configuration is built without vector_{}", op.name()));
        }
        if matches!(step, Then::Pair { .. }) {
            if config.out_banks < 2 {
                return Err("both operands would read one bank of out".into());
            }
            need.operands += 1;
        }
        need.params += config.constant_entries(op) as usize;
        need.entry_cycles += u64::from(match op {
            VecOp::Qadd => config.deep_row_cycles(3),
            op if op.is_deep() => config.deep_row_cycles(1),
            _ => config.row_elements().div_ceil(config.vector_lanes),
        });
        need.tile_cycles += if op == VecOp::Lut { 60 } else { 40 };
    }
    Ok(need)
}

/// The operation on single elements.
fn operation(step: &Then) -> Option<VecOp> {
    match step {
        Then::Pair { op, .. } => Some(op.operation()),
        Then::Lookup(_) => Some(VecOp::Lut),
        Then::Pool { .. } => None,
    }
}

/// An operator with its constants and its other operand.
struct Step<'a> {
    step: &'a Then,
    /// Offset and bytes of its scalars or table, if it has some.
    constants: Option<(u64, u64)>,
    operand: Option<Place>,
}

/// The operators of a layer on single elements.
pub(super) struct Tail<'a>(Vec<Step<'a>>);

impl<'a> Tail<'a> {
    /// None.
    pub fn none() -> Tail<'a> {
        Tail(Vec::new())
    }

    /// Those of a layer, with their constants among the program's.
    pub fn new(e: &mut Emit, layer: &'a Layer, root: &dyn Fn(ValueId) -> ValueId) -> Result<Tail<'a>, DriverError> {
        let mut steps = Vec::new();
        for step in layer.then.iter().filter(|step| operation(step).is_some()) {
            let bytes = match step {
                Then::Pool { .. } => None,
                Then::Pair { op, .. } => descriptor(op).map(|d| pack_descriptor(e.config, &d)),
                Then::Lookup(table) => {
                    // The hardware takes the byte as an unsigned number.
                    let unsigned = std::array::from_fn(|i| table.get(i ^ 0x80).copied().unwrap_or(0));
                    Some(pack_table(e.config, &unsigned))
                }
            };
            let constants = bytes.map(|b| {
                let offset = e.b.constant(&format!("{} parameters", layer.name), Role::Params, &b);
                (offset, b.len() as u64)
            });
            let operand = match step {
                Then::Pair { input, .. } => Some(e.place(layer.inputs[*input], root)?),
                Then::Lookup(_) | Then::Pool { .. } => None,
            };
            steps.push(Step { step, constants, operand });
        }
        Ok(Tail(steps))
    }

    /// Whether there are no operators.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Room for a tile's results; `again` says that vector reads them again.
    pub fn room(&self, e: &mut Emit, entries: u32, again: bool) -> u32 {
        match self.0.as_slice() {
            [] if !again => e.out.take(entries),
            steps if steps.iter().any(|s| s.operand.is_some()) => e.lower.take(entries),
            // Tiles in turn lie in different banks, so that one is stored while the next is computed.
            _ => e.banks.take(entries),
        }
    }

    /// Works on the results of a group's tiles, `entries` from `out` on; the last operator's go to a target, if there is one.
    pub fn apply(
        &self,
        e: &mut Emit,
        group: &Group,
        blocks: &Range<usize>,
        (out, entries, target): (u32, u32, Option<Target>),
    ) -> Result<(), DriverError> {
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
                (Then::Pair { op, .. }, Some(place)) => {
                    let b = e.upper.take(entries);
                    load_operand(e, place, group, blocks, b)?;
                    let work = Pairwise {
                        pixels: entries,
                        ratio: 1,
                        shared: false,
                        op: *op,
                        sources: [Scope::Out, Scope::Out],
                    };
                    let nest = e.nest(&Work::Pair(work))?;
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

/// The param entry of an operator's constants.
fn load_constants(e: &mut Emit, k: usize, (offset, bytes): (u64, u64)) -> Result<u32, DriverError> {
    let key = [usize::MAX - k, 0, 0, 0, 0];
    let rows = e.config.rows_of_entry(Mem::Param);
    let needed = bytes.div_ceil(u64::from(e.config.block_out)) as u32;
    Ok(e.load_params(key, (offset, bytes), needed)? / rows)
}

/// Loads the same tiles of another tensor.
fn load_operand(
    e: &mut Emit,
    place: Place,
    group: &Group,
    blocks: &Range<usize>,
    entry: u32,
) -> Result<(), DriverError> {
    let all = |r: &Range<usize>| Span { start: r.start, inside: r.len(), before: 0, after: 0 };
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
