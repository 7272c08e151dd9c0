//! Products of two activations, tile by tile.
//!
//! The second operand takes the role of weights. Its columns are pixels in device memory, where `block_out` neighboring
//! pixels of a block already have the form of a weight tile. Zero points need additional products with entries of a
//! constant value: `sum (a - za)(b - zb) = sum a b + sum (-za) b + sum a (-zb) + K za zb`. The last term is added to
//! the bias. Channels past the depth are 0 in both operands.

use crate::codegen::accel::batch::Group;
use crate::codegen::accel::emit::{DeviceTensor, Emit};
use crate::codegen::accel::finish::Finish;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::limits::{ROW_BYTES, ROWS};
use crate::codegen::accel::operator::{AccelOperator, Extracted, InpUse, LayoutFreedom};
use crate::codegen::accel::padded_range::PaddedRange;
use crate::codegen::accel::parts::cut;
use crate::codegen::accel::product::ProductTile;
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::requant::{RequantTile, requant_params};
use crate::codegen::accel::view::View;
use crate::codegen::accel::window::Window;
use crate::codegen::accel::work::{UnitWork, beats, overhead};
use crate::graph::op::{self, Layout};
use crate::graph::{Node, NodeId, Op, ValueId};
use std::ops::Range;
use tilewright_driver::{DriverError, Nest, Role};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{Load, PARAM_ROWS, VecDst};

/// A product of two activations with its requantization: `[rows, depth]` times `[depth, columns]` for each image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatMul {
    /// Zero point of the first operand.
    pub a_zero_point: i32,
    /// Zero point of the second operand.
    pub b_zero_point: i32,
    /// Requantization of the sums. The product of the zero points is in the bias.
    pub finish: Finish,
    /// Whether the accelerator wrote an operand, so that its channels past the depth are undefined.
    pub on_device: bool,
}

impl AccelOperator for MatMul {
    type Plan = MatMulTile;

    fn takes(op: &Op) -> Option<LayoutFreedom> {
        matches!(op, Op::QMatMul(_)).then_some(LayoutFreedom::Fixed)
    }

    fn extract(reader: &Reader<'_>, id: NodeId, node: &Node) -> Read<Extracted<MatMul>> {
        match &node.op {
            Op::QMatMul(op) => extract(reader, id, node, op),
            other => Err(format!("{} is not a product of two activations", other.name())),
        }
    }

    fn preferred_views(reader: &Reader<'_>, node: &Node, operand: ValueId) -> Vec<View> {
        let [Ok(a), Ok(b)] = [reader.shape(node.inputs[0]), reader.shape(node.inputs[1])] else { return Vec::new() };
        let views = [View::matrices(&a), View::transposed_matrices(&b)].into_iter().zip(&node.inputs);
        views.filter(|(_, value)| **value == operand).map(|(view, _)| view).collect()
    }

    fn plan(&self, layer: &Layer, config: &HwConfig, _search: bool) -> Result<MatMulTile, String> {
        tile(self, layer.inputs[0].1, layer.inputs[1].1, config)
    }

    fn cycles(&self, tile: &MatMulTile, layer: &Layer, config: &HwConfig) -> u64 {
        let (a, b, output) = (layer.inputs[0].1, layer.inputs[1].1, layer.output_view());
        let block = config.block() as usize;
        let ratio = block / config.block_out as usize;
        let depth = a.c.div_ceil(block);
        let entries_of = a.w.div_ceil(config.batch as usize);
        let (row_tiles, column_tiles) = (entries_of.div_ceil(tile.rows), b.w.div_ceil(block).div_ceil(tile.blocks));
        let tiles = (a.n * row_tiles * column_tiles) as u64;
        let columns = b.w.div_ceil(block) * ratio;
        let values = usize::from(self.a_zero_point != 0) + usize::from(self.b_zero_point != 0);
        let weights = (a.n * row_tiles * columns * depth) as u64 * u64::from(config.entry_bytes(Mem::Wgt));
        let data = (a.n * column_tiles * entries_of * depth) as u64 * u64::from(config.entry_bytes(Mem::Inp));
        let results = (a.n * entries_of * columns) as u64;
        let work = UnitWork {
            tiles,
            insns: 7 * tiles,
            load: beats(weights + data, config),
            gemm: results * (depth + values) as u64,
            vector: results * u64::from(config.deep_row_cycles(1)) + overhead::VECTOR_TILE * tiles,
            store: beats(output.layout(config).bytes() as u64, config),
            ..UnitWork::default()
        };
        work.cycles(config)
    }

    fn describe(&self, tile: &MatMulTile, _: &Layer) -> String {
        format!("product of two activations, in tiles of {} rows and {} blocks of columns", tile.rows, tile.blocks)
    }

    fn inp_use(&self, _: &Layer) -> InpUse {
        InpUse::All
    }

    fn emit(&self, tile: &MatMulTile, layer: &Layer, e: &mut Emit) -> Result<(), DriverError> {
        emit(e, layer, self, *tile)
    }
}

/// Reads a product for each matrix of the first operand. The second operand has as many matrices, or one.
fn extract(reader: &Reader<'_>, id: NodeId, node: &Node, op: &op::QMatMul) -> Read<Extracted<MatMul>> {
    let [a, b] = [node.inputs[0], node.inputs[1]];
    let (sa, sb, out) = (reader.shape(a)?, reader.shape(b)?, reader.shape(node.output())?);
    let images = |s: &[usize]| s[..s.len() - 2].iter().product::<usize>();
    let (m, k, n) = (sa[sa.len() - 2], sa[sa.len() - 1], sb[sb.len() - 1]);
    let (na, nb) = (images(&sa), images(&sb));
    let alike = nb == 1 || sb[..sb.len() - 2] == sa[..sa.len() - 2];
    if images(&out) != na || !alike {
        return Err("its operands' outer dimensions broadcast".into());
    }
    if [a, b].iter().any(|v| reader.graph.constant(*v).is_some()) {
        return Err("an operand is a constant".into());
    }
    let [view_a, view_b] = [View::matrices(&sa), View::transposed_matrices(&sb)];
    if reader.sloped(node, out.len() - 1).is_some() {
        return Err("its sums are requantized twice, which is only supported for products with constants".into());
    }
    let (next, mut finish) = reader.requantize(node, out.len() - 1)?;
    let both = i32::try_from(k).map_err(|_| "its depth is too large")?;
    let both = both.wrapping_mul(op.a_zero_point.wrapping_mul(op.b_zero_point));
    finish.bias.iter_mut().for_each(|b| *b = b.wrapping_add(both));
    let mut nodes = vec![id, next];
    reader.fuse_clip(&mut nodes, &mut finish.lo, &mut finish.hi);
    let on_device = (reader.known)(a) == Some(view_a) || (reader.known)(b) == Some(view_b);
    let (a_zero_point, b_zero_point) = (op.a_zero_point, op.b_zero_point);
    let work = MatMul { a_zero_point, b_zero_point, finish, on_device };
    let view = View::new(Layout::Nhwc, na, n, 1, m);
    Ok(Extracted::Layer(reader.layer(nodes, vec![(a, view_a), (b, view_b)], view)?, work))
}

/// The tile of a product of two activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatMulTile {
    /// Entries for rows of the first operand. Each holds as many rows as there are batch rows.
    pub rows: usize,
    /// Blocks of columns of the second operand.
    pub blocks: usize,
}

/// Maximum number of entries with a constant value that follow a tile.
const VALUES: usize = 2;

/// Returns bytes whose sum is the negated zero point.
fn values(zero_point: i32) -> Vec<i8> {
    match -zero_point {
        0 => Vec::new(),
        128 => vec![64, 64],
        v => vec![v as i8],
    }
}

/// Returns the tile of a product.
///
/// # Errors
/// The reason why no tile fits.
fn tile(m: &MatMul, a: View, b: View, config: &HwConfig) -> Result<MatMulTile, String> {
    let (block, block_in) = (config.block() as usize, config.block_in as usize);
    if block_in != block {
        return Err(format!(
            "its second operand would need tiles of {block_in} channels from blocks of {block}; for products of two \
             activations, block_in must be at least block_out and dma_align"
        ));
    }
    if m.on_device && !a.c.is_multiple_of(block) {
        return Err(format!(
            "its depth of {} is not a multiple of a block's {block} channels, and the other channels are undefined on \
             the device",
            a.c
        ));
    }
    let (depth, ratio) = (a.c.div_ceil(block), block / config.block_out as usize);
    let batch = config.batch as usize;
    let half = |mem: Mem| config.entries(mem) as usize / 2;
    let fits = |t: &MatMulTile| {
        let out = t.blocks * ratio * t.rows;
        t.rows * depth + VALUES <= half(Mem::Inp)
            && t.blocks * ratio * depth + VALUES <= half(Mem::Wgt)
            && out <= half(Mem::Acc)
            && out <= half(Mem::Out)
            && PARAM_ROWS as usize * (config.descriptor_entries() as usize + t.blocks * ratio) <= half(Mem::Param)
            && t.rows * batch * block <= ROW_BYTES
            && depth <= ROWS.min(config.gemm_uop_depth as usize)
    };
    let mut t = MatMulTile { rows: a.w.div_ceil(batch), blocks: b.w.div_ceil(block) };
    while !fits(&t) {
        if t.rows <= 1 && t.blocks <= 1 {
            return Err(format!("even the smallest tile, with its depth of {}, does not fit the scratchpads", a.c));
        }
        // Halve the larger side, so that tiles stay close to squares.
        if t.rows > t.blocks * block || t.blocks == 1 {
            t.rows = t.rows.div_ceil(2);
        } else {
            t.blocks = t.blocks.div_ceil(2);
        }
    }
    Ok(t)
}

/// Emits a product of two activations.
fn emit(e: &mut Emit, layer: &Layer, m: &MatMul, tile: MatMulTile) -> Result<(), DriverError> {
    let config = e.config;
    let (block, bo) = (config.block() as usize, config.block_out as usize);
    let [(_, av), (_, bv)] = [layer.inputs[0], layer.inputs[1]];
    let (a, b, output) = (e.place(layer.inputs[0])?, e.place(layer.inputs[1])?, e.place(layer.output)?);
    let (depth, ratio) = (av.c.div_ceil(block), block / bo);
    let row_values = values(m.a_zero_point);
    let tile_values = values(m.b_zero_point);
    let name = &layer.name;
    // Entries with a constant value, and entries of 0 for columns that the last block does not have.
    let fill = |e: &mut Emit, mem: Mem, values: &[i8]| -> u64 {
        let entry = e.config.entry_bytes(mem) as usize;
        let bytes: Vec<u8> = values.iter().flat_map(|&v| std::iter::repeat_n(v as u8, entry)).collect();
        e.b.constant(&format!("{name} values"), Role::Weights, &bytes)
    };
    let row_values = ValueEntries { offset: fill(e, Mem::Inp, &row_values), count: row_values.len() };
    let tile_values = ValueEntries { offset: fill(e, Mem::Wgt, &tile_values), count: tile_values.len() };
    let blocks = cut(bv.w.div_ceil(block), tile.blocks);
    let missing = blocks.last().is_some_and(|b| b.end * ratio > bv.w.div_ceil(bo));
    let zeros = if missing { fill(e, Mem::Wgt, &vec![0; depth]) } else { 0 };
    let mut params = Vec::new();
    for chunk in &blocks {
        let bytes = requant_params(config, &m.finish, chunk.start * ratio..chunk.end * ratio);
        params.push((e.b.constant(&format!("{name} parameters"), Role::Params, &bytes), bytes.len() as u64));
    }
    for image in 0..av.n {
        for (chunk, &(offset, bytes)) in blocks.iter().zip(&params) {
            for rows in cut(av.w.div_ceil(config.batch as usize), tile.rows) {
                let key = [chunk.start, 0, 0, 0, 0];
                let entries = config.descriptor_entries() + (chunk.len() * ratio) as u32;
                let param = e.load_params(key, (offset, bytes), PARAM_ROWS * entries)?;
                let columns = TileColumns { blocks: chunk, columns: bv.w, zeros };
                let weights = load_tiles(e, b, if bv.n == 1 { 0 } else { image }, &columns, depth, tile_values)?;
                let work = ProductTile {
                    blocks: chunk.len() as u32,
                    out_ratio: ratio as u32,
                    pixels: [1, rows.len() as u32],
                    tiles: depth as u32,
                    first: 0,
                    in_ratio: 1,
                    window: [depth as u32, 1, rows.len() as u32],
                    kernel: [1, 1],
                    steps: [1, 1],
                    dilations: [1, 1],
                };
                let nest = e.nest(&work)?;
                let inputs = load_rows(e, a, image, &rows, depth, row_values)?;
                let pixels = rows.len();
                let count = (chunk.len() * ratio * pixels) as u32;
                let acc = e.acc.take(count);
                let at = [nest.at[0] + acc, nest.at[1] + inputs, nest.at[2] + weights];
                let nest = Nest { at, ..nest };
                e.b.gemm_nest(false, &Nest { body: nest.body[..1].to_vec(), ..nest.clone() })?;
                e.b.gemm_nest(true, &Nest { body: nest.body[1..].to_vec(), ..nest.clone() })?;
                for i in 0..row_values.count {
                    let value = inputs + (depth * pixels + i) as u32;
                    e.b.gemm_nest(true, &standing(&nest, 1, value))?;
                }
                for i in 0..tile_values.count {
                    let value = weights + (depth * chunk.len() * ratio + i) as u32;
                    e.b.gemm_nest(true, &standing(&nest, 2, value))?;
                }
                let out = e.out.take(count);
                let finish = &m.finish;
                let work = RequantTile::new(finish, chunk.len() as u32, ratio as u32, pixels as u32);
                let requant = e.nest(&work)?;
                let descriptor = param / PARAM_ROWS;
                let vector = work.instruction(VecDst::Out, descriptor);
                let first = descriptor + config.descriptor_entries();
                e.b.vector_nest(vector, &Nest { at: [out, acc, first], ..requant })?;
                Group::columns(image, rows).store(e, output, layer.output.1, chunk, out, |_| true)?;
            }
        }
    }
    Ok(())
}

/// Returns the same products with one operand fixed to an entry.
fn standing(nest: &Nest, operand: usize, entry: u32) -> Nest {
    let mut nest = nest.clone();
    nest.at[operand] = entry;
    nest.body.iter_mut().for_each(|op| op[operand] = 0);
    nest.dims.iter_mut().for_each(|d| d.steps[operand] = 0);
    nest
}

/// Entries with a constant value that are loaded after a tile.
#[derive(Clone, Copy)]
struct ValueEntries {
    /// Offset in the constants.
    offset: u64,
    /// Number of entries.
    count: usize,
}

/// Columns of the second operand that are loaded as weight tiles.
struct TileColumns<'a> {
    blocks: &'a Range<usize>,
    /// Number of columns of the whole operand.
    columns: usize,
    /// Offset in the constants of tiles of 0, for columns past the last one.
    zeros: u64,
}

/// Loads rows of the first operand followed by `values`, and returns their first entry.
fn load_rows(
    e: &mut Emit,
    place: DeviceTensor,
    image: usize,
    rows: &Range<usize>,
    depth: usize,
    values: ValueEntries,
) -> Result<u32, DriverError> {
    let key = [image, rows.start, 0, 0, 0];
    if let Some(entry) = e.inp.find(&key) {
        return Ok(entry);
    }
    let count = depth * rows.len();
    let entry = e.inp.hold(key, (count + values.count) as u32);
    let all = |start: usize, inside: usize| PaddedRange { start, inside, before: 0, after: 0 };
    let window = Window { image, blocks: 0..depth, rows: all(0, 1), skip: 1, columns: all(rows.start, rows.len()) };
    let group = Group::columns(image, rows.clone());
    group.load(e, place, &[window], group.size, Load { mem: Mem::Inp, entry, ..Load::default() }, 1)?;
    let bytes = values.count as u64 * u64::from(e.config.entry_bytes(Mem::Inp));
    if values.count > 0 {
        let constants = e.b.constants();
        e.b.load_linear(Mem::Inp, constants, values.offset, entry + count as u32, bytes)?;
    }
    Ok(entry)
}

/// Loads tiles of the second operand for some of its columns followed by `values`, and returns their first entry.
fn load_tiles(
    e: &mut Emit,
    place: DeviceTensor,
    image: usize,
    &TileColumns { blocks, columns, zeros }: &TileColumns,
    depth: usize,
    values: ValueEntries,
) -> Result<u32, DriverError> {
    let key = [image, blocks.start, 0, 0, 0];
    if let Some(entry) = e.wgt.find(&key) {
        return Ok(entry);
    }
    let (layout, bo) = (place.layout, e.config.block_out as usize);
    let ratio = layout.block / bo;
    let tile_bytes = u64::from(e.config.entry_bytes(Mem::Wgt));
    let constants = e.b.constants();
    let tiles = blocks.start * ratio..blocks.end * ratio;
    let entry = e.wgt.hold(key, (tiles.len() * depth + values.count) as u32);
    for (i, t) in tiles.clone().enumerate() {
        let (to, column) = (entry + (i * depth) as u32, t * bo);
        if column >= columns {
            e.b.load_linear(Mem::Wgt, constants, zeros, to, depth as u64 * tile_bytes)?;
            continue;
        }
        e.b.load(Load {
            mem: Mem::Wgt,
            entry: to,
            base: place.region.0,
            offset: place.offset + layout.offset(image, 0, 0, column) as u64,
            row_bytes: ((columns - column).min(bo) * layout.block) as u32,
            rows: depth as u32,
            planes: 1,
            row_stride: if depth == 1 { 0 } else { layout.block_stride() as u64 },
            ..Load::default()
        })?;
    }
    if values.count > 0 {
        let to = entry + (tiles.len() * depth) as u32;
        e.b.load_linear(Mem::Wgt, constants, values.offset, to, values.count as u64 * tile_bytes)?;
    }
    Ok(entry)
}
