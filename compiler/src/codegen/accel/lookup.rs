//! Functions of each byte, by a table.

use super::build::Emit;
use super::extract::{Read, Reader, any_view};
use super::layer::{Kind, Layer};
use super::pair::{entries, store_piece};
use super::plan::pair_operands;
use crate::graph::{Node, NodeId, ValueId};
use tilewright_driver::{Dim, DriverError, Nest, Role};
use tilewright_hw::config::Mem;
use tilewright_hw::isa::{VecDst, VecOp, VecSrc, Vector};
use tilewright_hw::layout::pack_table;

impl Reader<'_> {
    pub(super) fn lookup(&self, id: NodeId, node: &Node) -> Read<Layer> {
        let data = node.inputs[0];
        self.int8(data)?;
        if self.graph.constant(data).is_some() {
            return Err("its operand is a constant".into());
        }
        let table = self.bytes(node.inputs[1]).map_err(|_| "its table is no constant")?.to_vec();
        let view = (self.known)(data).unwrap_or_else(|| any_view(&self.shape(data).unwrap_or_default()));
        self.layer(vec![id], vec![(data, view)], view, Kind::Lookup(table))
    }
}

/// Emits a lookup in pieces of at most `count` entries. `table` begins with the value of -128.
pub(super) fn emit(
    e: &mut Emit,
    layer: &Layer,
    table: &[i8],
    count: u32,
    root: &dyn Fn(ValueId) -> ValueId,
) -> Result<(), DriverError> {
    let (input, output) = (e.place(layer.inputs[0], root)?, e.place(layer.output, root)?);
    let missing = || DriverError::Rule { index: 0, what: "the operand has no bank".into() };
    let places = pair_operands(e.config).ok_or_else(missing)?;
    // The hardware takes the byte as an unsigned number.
    let unsigned = std::array::from_fn(|i| table.get(i ^ 0x80).copied().unwrap_or(0));
    let bytes = pack_table(e.config, &unsigned);
    let offset = e.b.constant(&format!("{} table", layer.name), Role::Params, &bytes);
    // Tables begin at whole entries of the rows of param.
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
        let [a, _, result] = entries(e.config, places, piece as u32 % 2, count);
        let at = first * entry_bytes;
        let bytes = (here * entry_bytes).min(whole - at);
        e.b.load_linear(places[0].0, input.region, input.offset + at, a, bytes)?;
        let dims = vec![Dim::new(here as u32, [1, 1, 0])];
        e.b.vector_nest(vector, &Nest { at: [result, a, 0], body: vec![[0; 3]], dims })?;
        store_piece(e, output.region.0, output.offset + at, result, bytes)?;
    }
    Ok(())
}
