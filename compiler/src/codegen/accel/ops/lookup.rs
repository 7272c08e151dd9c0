//! Functions of each byte, by a table.

use crate::codegen::accel::emit::Emit;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::operator::{AccelOperator, Extracted, InpUse, LayoutFreedom};
use crate::codegen::accel::pieces::{operand_banks, piece_entries, piece_places, store_piece};
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::view::View;
use crate::codegen::accel::work::{UnitWork, beats, entries, overhead, simple_row};
use crate::graph::{Node, NodeId, Op};
use tilewright_driver::{Dim, DriverError, Nest, Role};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{VecDst, VecOp, VecSrc, Vector};
use tilewright_hw::layout::pack_table;

/// A function of each byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// The function's values for -128 to 127.
    pub table: Vec<i8>,
}

/// The plan of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupPlan {
    /// Entries of a piece.
    pub entries: u32,
}

impl AccelOperator for Lookup {
    type Plan = LookupPlan;

    fn takes(op: &Op) -> Option<LayoutFreedom> {
        matches!(op, Op::Lookup(_)).then_some(LayoutFreedom::Any)
    }

    fn extract(reader: &Reader<'_>, id: NodeId, node: &Node) -> Read<Extracted<Lookup>> {
        let data = node.inputs[0];
        reader.int8(data)?;
        if reader.graph.constant(data).is_some() {
            return Err("its operand is a constant".into());
        }
        let table = reader.bytes(node.inputs[1]).map_err(|_| "its table is not constant")?.to_vec();
        let view = (reader.known)(data).unwrap_or_else(|| View::any(&reader.shape(data).unwrap_or_default()));
        Ok(Extracted::Layer(reader.layer(vec![id], vec![(data, view)], view)?, Lookup { table }))
    }

    fn plan(&self, _: &Layer, config: &HwConfig, _search: bool) -> Result<LookupPlan, String> {
        if 2 * config.table_entries() > config.param_depth {
            return Err(format!("its table does not fit half of param ({} entries)", config.param_depth));
        }
        piece_entries(VecOp::Lut, config).map(|entries| LookupPlan { entries })
    }

    fn cycles(&self, plan: &LookupPlan, layer: &Layer, config: &HwConfig) -> u64 {
        let output = layer.output_view();
        let (out, bytes) = (entries(output, config), output.layout(config).bytes() as u64);
        let tiles = out.div_ceil(u64::from(plan.entries).max(1));
        let work = UnitWork {
            tiles,
            insns: 3 * tiles,
            load: beats(bytes, config),
            vector: out * simple_row(config) + overhead::LOOKUP_PIECE * tiles,
            store: beats(bytes, config),
            ..UnitWork::default()
        };
        work.cycles(config)
    }

    fn describe(&self, plan: &LookupPlan, _: &Layer) -> String {
        format!("on the vector unit, {} entries at a time", plan.entries)
    }

    fn inp_use(&self, _: &Layer) -> InpUse {
        InpUse::All
    }

    fn emit(&self, plan: &LookupPlan, layer: &Layer, e: &mut Emit) -> Result<(), DriverError> {
        emit(e, layer, &self.table, plan.entries)
    }
}

/// Emits a lookup in pieces of at most `count` entries. `table` begins with the value of -128.
fn emit(e: &mut Emit, layer: &Layer, table: &[i8], count: u32) -> Result<(), DriverError> {
    let (input, output) = (e.place(layer.inputs[0])?, e.place(layer.output)?);
    let missing = || DriverError::Rule { index: 0, what: "the operand has no bank".into() };
    let places = operand_banks(e.config).ok_or_else(missing)?;
    // The hardware indexes the table with the byte as an unsigned number.
    let unsigned = std::array::from_fn(|i| table.get(i ^ 0x80).copied().unwrap_or(0));
    let bytes = pack_table(e.config, &unsigned);
    let offset = e.b.constant(&format!("{} table", layer.name), Role::Params, &bytes);
    // A table begins at a whole entry of param; `row` counts rows.
    let rows = e.config.param_entry_bytes() / e.config.block_out;
    let row = e.param.take(rows * e.config.table_entries());
    e.b.load_linear(Mem::Param, e.b.constants(), offset, row, bytes.len() as u64)?;
    let source = if places[0].0 == Mem::Inp { VecSrc::Inp } else { VecSrc::Out };
    let vector = Vector { op: VecOp::Lut, dst: VecDst::Out, a: source, descriptor: row / rows, ..Vector::default() };
    let entry_bytes = u64::from(e.config.entry_bytes(Mem::Out));
    let whole = output.layout.bytes() as u64;
    let total = whole.div_ceil(entry_bytes);
    for (piece, first) in (0..total).step_by(count as usize).enumerate() {
        let here = (total - first).min(count.into());
        let [a, _, result] = piece_places(e.config, places, piece as u32 % 2, count);
        let at = first * entry_bytes;
        let bytes = (here * entry_bytes).min(whole - at);
        e.b.load_linear(places[0].0, input.region, input.offset + at, a, bytes)?;
        let dims = vec![Dim::new(here as u32, [1, 1, 0])];
        e.b.vector_nest(vector, &Nest { at: [result, a, 0], body: vec![[0; 3]], dims })?;
        store_piece(e, output.region.0, output.offset + at, result, bytes)?;
    }
    Ok(())
}
