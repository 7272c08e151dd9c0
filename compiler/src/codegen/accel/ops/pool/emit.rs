//! Emits poolings that are fused into the tiles of a product. Their data are in the lower half of out.

use super::divisors::{Divisors, by_count, runs};
use super::op::{Pool, PoolFinish, Reduce};
use super::plan::PoolTile;
use super::windows::PoolWindows;
use crate::codegen::accel::batch::Group;
use crate::codegen::accel::emit::{Emit, LayerTensor};
use crate::codegen::accel::kept::OnChip;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::parts::cut;
use crate::codegen::accel::requant::{RequantTile, requant_params};
use crate::codegen::accel::target::{PendingBorder, Target};
use crate::tir::Scope;
use std::ops::Range;
use tilewright_driver::{Dim, DriverError, Nest, Role};
use tilewright_hw::isa::{Descriptor, VecDst, VecOp, VecSrc, Vector};
use tilewright_hw::layout::pack_descriptor;

/// A pooling while it is emitted as a part of a product.
pub struct PoolEmission<'a> {
    pool: &'a Pool,
    tile: PoolTile,
    ratio: u32,
    name: &'a str,
    input: LayerTensor,
    output: LayerTensor,
    on_chip: OnChip,
    /// Numbers by which a mean divides; each has its own parameter entry.
    divisors: Vec<usize>,
    /// Parameters of each range of blocks.
    params: Vec<BlockParams>,
}

/// Parameters of a range of blocks in the constants: a descriptor and the entries after it.
#[derive(Clone, Default)]
struct BlockParams {
    blocks: Range<usize>,
    offset: u64,
    entries: u32,
}

/// Entries of param with a pooling's parameters.
#[derive(Clone, Copy)]
pub struct PoolParams {
    descriptor: u32,
    /// The first requantization.
    finish: u32,
}

/// A tile's data in the scratchpads.
pub struct Data {
    /// Rows and columns of a block, padding included.
    pub size: [u32; 2],
    /// First entry of the data.
    pub at: u32,
    /// First entry of acc for the windows.
    pub acc: u32,
}

impl<'a> PoolEmission<'a> {
    /// Prepares a pooling, and adds its constants to the program.
    pub fn new(
        e: &mut Emit,
        layer: &'a Layer,
        pool: &'a Pool,
        tile: PoolTile,
        [input, output]: [LayerTensor; 2],
    ) -> PoolEmission<'a> {
        let mut emission = PoolEmission {
            pool,
            tile,
            ratio: e.config.block() / e.config.block_out,
            name: &layer.name,
            input,
            output,
            on_chip: layer.on_chip,
            divisors: pool.distinct_counts(input.view, output.view),
            params: Vec::new(),
        };
        emission.constants(e);
        emission
    }
}

impl PoolEmission<'_> {
    fn constants(&mut self, e: &mut Emit) {
        let (config, name) = (e.config, self.name);
        let blocks = self.output.view.layout(config).blocks();
        let descriptor = |lo, hi| pack_descriptor(config, &Descriptor { lo, hi, ..Descriptor::default() });
        let mut add = |params: &mut Vec<_>, blocks: Range<usize>, bytes: Vec<u8>| {
            let entries = bytes.len() as u32 / config.param_entry_bytes();
            let offset = e.b.constant(&format!("{name} parameters"), Role::Params, &bytes);
            params.push(BlockParams { blocks, offset, entries });
        };
        match &self.pool.finish {
            PoolFinish::Clip { lo, hi } => add(&mut self.params, 0..blocks, descriptor(*lo, *hi)),
            PoolFinish::Mean { .. } | PoolFinish::Count(_) => {
                let divisors = Divisors::of(self.pool, self.input.view, self.output.view);
                let bytes = requant_params(config, &divisors.finish(config), 0..divisors.counts.len());
                add(&mut self.params, 0..blocks, bytes);
            }
            PoolFinish::Requant(finish) => {
                let ratio = self.ratio as usize;
                for range in cut(blocks, self.tile.blocks) {
                    let bytes = requant_params(config, finish, range.start * ratio..range.end * ratio);
                    add(&mut self.params, range, bytes);
                }
            }
        }
    }

    /// Loads the parameters of some blocks.
    pub fn load_params(&self, e: &mut Emit, blocks: &Range<usize>) -> Result<PoolParams, DriverError> {
        let found = self.params.iter().find(|p| p.blocks.contains(&blocks.start)).cloned();
        let params = found.unwrap_or_default();
        // The product into which the pooling is fused uses keys with a block and zeros for its own parameters.
        let key = [params.blocks.start, 1, 0, 0, 0];
        let descriptor = e.load_param_entries(key, params.offset, params.entries)?;
        Ok(PoolParams { descriptor, finish: descriptor + e.config.descriptor_entries() })
    }

    /// Returns the destination of a group's results, and its first entry in out (0 if the results go to inp).
    fn target(&self, e: &mut Emit, group: &Group, blocks: &Range<usize>) -> (u32, Target) {
        let size = group.size.map(|n| n as u32);
        match (self.on_chip.output.filter(|_| !self.on_chip.stored), group.tiles.first()) {
            (Some(kept), Some(t)) => (0, kept.target(blocks.start, t.rows.start, t.columns.start)),
            _ => {
                let entries = blocks.len() as u32 * size[0] * size[1] * self.ratio;
                let out = e.upper.take(entries);
                (out, Target::out(out, size, self.ratio))
            }
        }
    }

    /// Stores a group's results from entry `out` on, and copies them to inp if they are also kept. Only tiles in batch
    /// rows for which `lanes` returns true are stored.
    fn finish(
        &self,
        e: &mut Emit,
        group: &Group,
        blocks: &Range<usize>,
        out: u32,
        lanes: &dyn Fn(usize) -> bool,
    ) -> Result<(), DriverError> {
        let Some(place) = self.output.place else { return Ok(()) };
        if let (Some(kept), Some(t)) = (self.on_chip.output, group.tiles.first()) {
            let target = kept.target(blocks.start, t.rows.start, t.columns.start);
            target.fill(e, out, blocks.len() as u32, group.size.map(|n| n as u32))?;
        }
        group.store(e, place, self.output.view, blocks, out, lanes)
    }

    /// Number of entries of a group's results.
    pub fn entries(&self, group: &Group, blocks: &Range<usize>) -> u32 {
        (blocks.len() * group.size[0] * group.size[1]) as u32 * self.ratio
    }

    /// Reduces a group's windows of loaded data, and writes and stores the results.
    pub fn reduce(
        &self,
        e: &mut Emit,
        group: &Group,
        blocks: &Range<usize>,
        data: &Data,
        params: PoolParams,
        border: &mut PendingBorder,
    ) -> Result<(), DriverError> {
        let Data { size: [height, width], at: data, acc } = *data;
        let PoolParams { descriptor, finish: param } = params;
        let (pool, ratio) = (self.pool, self.ratio);
        let (from, to) = (self.input.view, self.output.view);
        let [out_rows, out_columns] = group.size.map(|n| n as u32);
        let pixels = out_rows * out_columns;
        let entries = self.entries(group, blocks);
        let pair = |v: [usize; 2]| v.map(|n| n as u32);
        let windows = e.nest(&PoolWindows {
            blocks: blocks.len() as u32,
            ratio,
            pixels: [out_rows, out_columns],
            window: [height, width],
            kernel: pair(pool.kernel),
            steps: pair(pool.strides),
            dilations: pair(pool.dilations),
            reduce: pool.reduce,
            source: Scope::Out,
        })?;
        let first = Vector { op: VecOp::Move, dst: VecDst::Acc, a: VecSrc::Out, ..Vector::default() };
        // The first element of each window is moved to acc, so there is only one operand.
        let moved = |[result, _, data]: [u32; 3]| [result, data, 0];
        let dims = windows.dims.iter().map(|d| Dim::new(d.count, moved(d.steps))).collect();
        e.b.vector_nest(first, &Nest { at: [acc, data, 0], body: vec![moved(windows.body[0])], dims })?;
        let op = if pool.reduce == Reduce::Max { VecOp::Max } else { VecOp::Add };
        let rest = Vector { op, dst: VecDst::Acc, a: VecSrc::Acc, b: VecSrc::Out, ..Vector::default() };
        e.b.vector_nest(rest, &Nest { at: [acc, acc, data], body: windows.body[1..].to_vec(), dims: windows.dims })?;
        let (count, size) = (blocks.len() as u32, [out_rows, out_columns]);
        let finish = |target: Target| Vector { dst: target.dst, a: VecSrc::Acc, descriptor, ..Vector::default() };
        match &pool.finish {
            PoolFinish::Clip { lo, hi } => {
                let (out, target) = self.target(e, group, blocks);
                let op = if (*lo, *hi) == (-128, 127) { VecOp::Move } else { VecOp::Clip };
                let nest = Nest { at: [out, acc, 0], body: vec![[0; 3]], dims: vec![Dim::new(entries, [1, 1, 0])] };
                e.b.vector_nest(Vector { op, ..finish(target) }, &target.results(nest, count, size))?;
                border.late(e, self.name, acc)?;
                self.finish(e, group, blocks, out, &|_| true)
            }
            PoolFinish::Requant(finish) => {
                let (out, target) = self.target(e, group, blocks);
                let work = RequantTile::new(finish, count, ratio, pixels);
                let requant = work.instruction(target.dst, descriptor);
                let nest = Nest { at: [out, acc, param], ..e.nest(&work)? };
                e.b.vector_nest(requant, &target.results(nest, count, size))?;
                border.late(e, self.name, acc)?;
                self.finish(e, group, blocks, out, &|_| true)
            }
            PoolFinish::Mean { .. } | PoolFinish::Count(_) => {
                let count_pads = matches!(pool.finish, PoolFinish::Mean { count_pads: true, .. });
                let [y_counts, x_counts] = pool.counts(from, to, count_pads);
                let of = |lane: usize| {
                    let t = &group.tiles[lane];
                    (&y_counts[t.rows.clone()], &x_counts[t.columns.clone()])
                };
                // All batch rows of an entry share a divisor, so tiles with different divisors are divided and stored
                // separately.
                let mut done = vec![false; group.tiles.len()];
                for lane in 0..group.tiles.len() {
                    if done[lane] {
                        continue;
                    }
                    let (ys, xs) = of(lane);
                    let alike: Vec<bool> = (0..done.len()).map(|other| of(other) == (ys, xs)).collect();
                    done.iter_mut().zip(&alike).for_each(|(done, &now)| *done |= now);
                    let (out, target) = self.target(e, group, blocks);
                    for (y, x) in runs(ys).into_iter().flat_map(|y| runs(xs).into_iter().map(move |x| (y.clone(), x))) {
                        let count = ys[y.start] * xs[x.start];
                        let entry = self.divisors.iter().position(|&d| d == count).unwrap_or(0) as u32;
                        let at = (y.start as u32 * out_columns + x.start as u32) * ratio;
                        let to = target.at + y.start as u32 * target.row + x.start as u32 * ratio;
                        let dims = vec![
                            Dim::new(blocks.len() as u32, [target.plane, pixels * ratio, 0]),
                            Dim::new(y.len() as u32, [target.row, out_columns * ratio, 0]),
                            Dim::new(x.len() as u32 * ratio, [1, 1, 0]),
                        ];
                        let mode = by_count(&pool.finish, count).mode;
                        let requant = Vector { op: VecOp::Requant, mode, b: VecSrc::Param, ..finish(target) };
                        let nest = Nest { at: [to, acc + at, param + entry], body: vec![[0; 3]], dims };
                        e.b.vector_nest(requant, &nest)?;
                    }
                    self.finish(e, group, blocks, out, &|lane| alike[lane])?;
                }
                border.late(e, self.name, acc)
            }
        }
    }
}
