//! Quantized additions: pieces of two tensors, entry by entry.

use super::build::{Emit, Work};
use super::layer::{Add, Layer};
use super::plan::add_operands;
use super::vector::Addition;
use crate::graph::ValueId;
use crate::tir::Scope;
use tilewright_driver::{DriverError, Nest, Role};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{Descriptor, PARAM_ROWS, VecDst, VecOp, VecSrc, Vector};
use tilewright_hw::layout::pack_descriptor;
use tilewright_hw::num::Qadd;

/// The descriptor of a quantized addition.
pub(super) fn descriptor(q: &Qadd) -> Descriptor {
    Descriptor {
        scalar: 0,
        lo: q.lo,
        hi: q.hi,
        zero_point: q.out.zero_point,
        multiplier_a: q.a.multiplier,
        multiplier_b: q.b.multiplier,
        multiplier: q.out.multiplier,
        shift_a: q.a.shift,
        shift_b: q.b.shift,
        shift: q.out.shift,
        left_shift: q.left_shift,
        zero_a: q.a.zero_point as i8,
        zero_b: q.b.zero_point as i8,
        reserved: 0,
    }
}

/// First entries of a piece's operands and result: `turn` alternates between the halves of the banks.
fn entries(config: &HwConfig, places: [(Mem, u32); 2], turn: u32, count: u32) -> [u32; 3] {
    let bank = |mem: Mem| config.entries(mem) / config.banks(mem);
    let start = |(mem, index): (Mem, u32)| index * bank(mem) + turn * count;
    // A result beside operands in out lies in the other half of the first one's bank.
    let beside = places.iter().find(|(mem, _)| *mem == Mem::Out);
    let result = beside.map_or(turn * count, |&(mem, index)| index * bank(mem) + (2 + turn) * count);
    [start(places[0]), start(places[1]), result]
}

/// Emits an addition in pieces of `count` entries.
pub(super) fn emit(
    e: &mut Emit,
    layer: &Layer,
    add: &Add,
    count: u32,
    root: &dyn Fn(ValueId) -> ValueId,
) -> Result<(), DriverError> {
    let config = e.config;
    let operands = [e.place(layer.inputs[0], root)?, e.place(layer.inputs[1], root)?];
    let output = e.place(layer.output, root)?;
    let missing = || DriverError::Rule { index: 0, what: "an addition's operands have no banks".into() };
    let places = add_operands(config).ok_or_else(missing)?;
    let bytes = pack_descriptor(config, &descriptor(&add.params));
    let offset = e.b.constant(&format!("{} parameters", layer.name), Role::Params, &bytes);
    let rows = PARAM_ROWS * config.descriptor_entries();
    let row = e.param.take(rows);
    e.b.load_linear(Mem::Param, e.b.constants(), offset, row, bytes.len() as u64)?;
    let entry_bytes = u64::from(config.block_out);
    let total = output.layout.bytes() as u64 / entry_bytes;
    let source = |mem: Mem| if mem == Mem::Inp { VecSrc::Inp } else { VecSrc::Out };
    let sources = places.map(|(mem, _)| if mem == Mem::Inp { Scope::Inp } else { Scope::Out });
    let vector = Vector {
        op: VecOp::Qadd,
        dst: VecDst::Out,
        a: source(places[0].0),
        b: source(places[1].0),
        descriptor: row / PARAM_ROWS,
        ..Vector::default()
    };
    for (piece, first) in (0..total).step_by(count as usize).enumerate() {
        let here = (total - first).min(count.into());
        let [a, b, result] = entries(config, places, piece as u32 % 2, count);
        let (at, bytes) = (first * entry_bytes, here * entry_bytes);
        for ((operand, (mem, _)), entry) in operands.iter().zip(places).zip([a, b]) {
            e.b.load_linear(mem, operand.region, operand.offset + at, entry, bytes)?;
        }
        let nest = e.nest(&Work::Addition(Addition { entries: here as u32, params: add.params, sources }))?;
        e.b.vector_nest(vector, &Nest { at: [result, a, b], ..nest })?;
        store_piece(e, output.region.0, output.offset + at, result, bytes)?;
    }
    Ok(())
}

/// Stores consecutive entries to consecutive bytes.
fn store_piece(e: &mut Emit, base: u32, offset: u64, entry: u32, bytes: u64) -> Result<(), DriverError> {
    let entry_bytes = u64::from(e.config.entry_bytes(Mem::Out));
    let most = 65_535 / entry_bytes * entry_bytes;
    let (mut at, mut from, mut rest) = (offset, u64::from(entry), bytes);
    while rest > 0 {
        let row = rest.min(most);
        e.b.store(tilewright_hw::isa::Store {
            base,
            offset: at,
            entry: from as u32,
            row_bytes: row as u32,
            ..Default::default()
        })?;
        (at, from, rest) = (at + row, from + row / entry_bytes, rest - row);
    }
    Ok(())
}
