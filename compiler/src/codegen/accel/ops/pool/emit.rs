//! Emits poolings and other operators that work channel by channel, for the vector unit.

use super::op::{Pool, PoolFinish, Reduce};
use super::plan::{PoolTile, source};
use super::windows::PoolWindows;
use crate::codegen::accel::batch::{Group, fill};
use crate::codegen::accel::emit::{Emit, LayerTensor};
use crate::codegen::accel::finish::Finish;
use crate::codegen::accel::kept::OnChip;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::parts::cut;
use crate::codegen::accel::requant::{RequantTile, requant_params};
use crate::codegen::accel::target::{PendingBorder, Target};
use crate::codegen::accel::window::Window;
use crate::tir::Scope;
use std::ops::Range;
use tilewright_driver::{Dim, DriverError, Nest, Role};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{Descriptor, Load, VecDst, VecOp, VecSrc, Vector};
use tilewright_hw::layout::{pack_descriptor, pack_params};
use tilewright_hw::num::{self, Rounding, average_multiplier};

/// A pooling while it is emitted. Its data are in device memory, in inp, or (fused into a product) in out.
pub struct PoolEmission<'a> {
    pool: &'a Pool,
    tile: PoolTile,
    ratio: u32,
    name: &'a str,
    input: LayerTensor,
    output: LayerTensor,
    on_chip: OnChip,
    /// Memory from which the vector unit reads the data.
    source: Mem,
    /// Whether the pooling is fused into a product, whose results are in the lower half of out.
    behind: bool,
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

/// Emits a pooling.
///
/// # Errors
/// The driver refuses an instruction or a constant.
pub fn emit(e: &mut Emit, layer: &Layer, pool: &Pool, tile: PoolTile) -> Result<(), DriverError> {
    let (input, output) = (layer.inputs[0], layer.output);
    let (fill, [from, to]) = fill(pool.is_pointwise(), [input.1, output.1], e.config);
    let input = LayerTensor { place: e.input(layer)?, view: from };
    let output = LayerTensor { place: e.output(layer)?, view: to };
    let emission = PoolEmission::new(e, layer, pool, tile, [input, output], false);
    let mut border = PendingBorder::of(&emission.on_chip);
    border.early(e, emission.name)?;
    let groups = Group::all(fill, to, [tile.rows, tile.columns], e.config);
    for image in 0..to.n {
        for blocks in cut(to.layout(e.config).blocks(), tile.blocks) {
            for group in groups.iter().filter(|g| g.key()[0] == image) {
                emission.step(e, group, &blocks, &mut border)?;
            }
        }
    }
    Ok(())
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
    /// Prepares a pooling, and adds its constants to the program. `behind`: it is fused into the layer's product.
    pub fn new(
        e: &mut Emit,
        layer: &'a Layer,
        pool: &'a Pool,
        tile: PoolTile,
        [input, output]: [LayerTensor; 2],
        behind: bool,
    ) -> PoolEmission<'a> {
        let mut emission = PoolEmission {
            pool,
            tile,
            ratio: e.config.block() / e.config.block_out,
            name: &layer.name,
            input,
            output,
            on_chip: layer.on_chip,
            source: if behind { Mem::Out } else { source(e.config) },
            behind,
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
                let of_one = by_count(&self.pool.finish, 1);
                let (lo, hi, zero_point) = (of_one.lo, of_one.hi, of_one.zero_point);
                let mut bytes = pack_descriptor(config, &Descriptor { lo, hi, zero_point, ..Descriptor::default() });
                for &count in &self.divisors {
                    bytes.extend(uniform(config, &by_count(&self.pool.finish, count)));
                }
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
        let key = [params.blocks.start, usize::from(self.behind), 0, 0, 0];
        let descriptor = e.load_param_entries(key, params.offset, params.entries)?;
        Ok(PoolParams { descriptor, finish: descriptor + e.config.descriptor_entries() })
    }

    /// Loads a group's data, unless they are in inp. Returns rows and columns with padding, and the first entry.
    fn data(&self, e: &mut Emit, group: &Group, blocks: &Range<usize>) -> Result<([u32; 2], u32), DriverError> {
        let (pool, ratio, from) = (self.pool, self.ratio, self.input.view);
        let Some(place) = self.input.place else {
            let missing = || DriverError::Rule { index: e.b.len(), what: "an input has no place".into() };
            let kept = self.on_chip.input.ok_or_else(missing)?;
            let [_, row, column] = group.key();
            let first = |k: usize, at: usize| (at * pool.strides[k]) as i64 - pool.pads[k] as i64;
            return Ok((kept.size(), kept.at(blocks.start, first(0, row), first(1, column))));
        };
        let windows: Vec<Window> = group
            .tiles
            .iter()
            .map(|t| Window {
                image: t.image,
                blocks: blocks.clone(),
                rows: pool.rows(t.rows.start, t.rows.len(), from),
                skip: 1,
                columns: pool.columns(t.columns.start, t.columns.len(), from),
            })
            .collect();
        let size = [pool.rows(0, group.size[0], from).padded(), pool.columns(0, group.size[1], from).padded()];
        let [height, width] = size.map(|n| n as u32);
        let ring = if self.source == Mem::Inp { &mut e.inp } else { &mut e.out };
        let data = ring.take(blocks.len() as u32 * height * width * ratio);
        let load = Load { mem: self.source, entry: data, pad_value: pool.pad_value, ..Load::default() };
        group.load(e, place, &windows, size, load, ratio as usize)?;
        Ok(([height, width], data))
    }

    /// Returns the destination of a group's results, and its first entry in out (0 if the results go to inp).
    fn target(&self, e: &mut Emit, group: &Group, blocks: &Range<usize>) -> (u32, Target) {
        let size = group.size.map(|n| n as u32);
        match (self.on_chip.output.filter(|_| !self.on_chip.stored), group.tiles.first()) {
            (Some(kept), Some(t)) => (0, kept.target(blocks.start, t.rows.start, t.columns.start)),
            _ => {
                let entries = blocks.len() as u32 * size[0] * size[1] * self.ratio;
                let ring = match self.on_chip.output {
                    _ if self.behind => &mut e.upper,
                    Some(_) => &mut e.banks,
                    None => &mut e.out,
                };
                let out = ring.take(entries);
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

    fn step(
        &self,
        e: &mut Emit,
        group: &Group,
        blocks: &Range<usize>,
        border: &mut PendingBorder,
    ) -> Result<(), DriverError> {
        let params = self.load_params(e, blocks)?;
        let (size, at) = self.data(e, group, blocks)?;
        let acc = e.acc.take(self.entries(group, blocks));
        self.reduce(e, group, blocks, &Data { size, at, acc }, params, border)
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
            source: if self.source == Mem::Inp { Scope::Inp } else { Scope::Out },
        })?;
        let source = if self.source == Mem::Inp { VecSrc::Inp } else { VecSrc::Out };
        let first = Vector { op: VecOp::Move, dst: VecDst::Acc, a: source, ..Vector::default() };
        // The first element of each window is moved to acc, so there is only one operand.
        let moved = |[result, _, data]: [u32; 3]| [result, data, 0];
        let dims = windows.dims.iter().map(|d| Dim::new(d.count, moved(d.steps))).collect();
        e.b.vector_nest(first, &Nest { at: [acc, data, 0], body: vec![moved(windows.body[0])], dims })?;
        let op = if pool.reduce == Reduce::Max { VecOp::Max } else { VecOp::Add };
        let rest = Vector { op, dst: VecDst::Acc, a: VecSrc::Acc, b: source, ..Vector::default() };
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

/// Returns the requantization that turns the sum of `count` elements into their mean.
fn by_count(finish: &PoolFinish, count: usize) -> num::Requant {
    match finish {
        PoolFinish::Count(op) => {
            let bias = op.data_zero_point.wrapping_mul(count as i32).wrapping_neg();
            num::Requant { bias, ..op.requant(count) }
        }
        PoolFinish::Mean { lo, hi, unsigned, .. } => {
            let (multiplier, shift, mode) = division(count);
            // Unsigned bytes, and so their mean, are greater by 128.
            let zero = if *unsigned { 128 } else { 0 };
            num::Requant { bias: zero * count as i32, multiplier, shift, zero_point: -zero, lo: *lo, hi: *hi, mode }
        }
        PoolFinish::Clip { lo, hi } | PoolFinish::Requant(Finish { lo, hi, .. }) => {
            let (multiplier, shift, mode) = division(1);
            num::Requant { bias: 0, multiplier, shift, zero_point: 0, lo: *lo, hi: *hi, mode }
        }
    }
}

/// Returns the bytes of a parameter entry with the same requantization in every lane.
fn uniform(config: &HwConfig, r: &num::Requant) -> Vec<u8> {
    let lanes = config.block_out as usize;
    pack_params(config, &vec![r.bias; lanes], &vec![r.multiplier; lanes], &vec![r.shift; lanes])
}

/// Returns the ranges of equal consecutive values.
fn runs(values: &[usize]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (i, value) in values.iter().enumerate() {
        match found.last_mut() {
            Some(run) if values[run.start] == *value => run.end = i + 1,
            _ => found.push(i..i + 1),
        }
    }
    found
}

/// Returns multiplier, shift and mode that divide a sum by `count`, ties away from zero.
fn division(count: usize) -> (i32, i8, Rounding) {
    match count {
        // Twice the value times one half: unchanged.
        0 | 1 => (1 << 30, 1, Rounding::Double),
        _ => (average_multiplier(count as u32), 0, Rounding::Single),
    }
}
