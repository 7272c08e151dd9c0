//! Products with weights, tile by tile.

use super::batch::{Group, fill, stride};
use super::build::{Emit, Place, Work};
use super::keep::{Border, OnChip, Target};
use super::layer::{Conv, Finish, Layer, Slope, Transposed};
use super::pooled::Pooled;
use super::product::Tile;
use super::rest::{Rest, pack, stored};
use super::then::Tail;
use super::tiles::{ConvTile, Sizes, column_span, row_span, skips_rows};
use super::vector::Requant;
use super::view::{ColumnWindows, View};
use super::window::Window;
use crate::graph::ValueId;
use std::ops::Range;
use tilewright_driver::{Dim, DriverError, Nest, Role};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{Descriptor, Load, PARAM_ROWS, Store, VecDst, VecOp, VecSrc, Vector};
use tilewright_hw::layout::{pack_descriptor, pack_params};

/// Parts of `size` in steps of `step`.
pub(super) fn cut(size: usize, step: usize) -> Vec<Range<usize>> {
    (0..size).step_by(step.max(1)).map(|at| at..(at + step).min(size)).collect()
}

struct Walk<'a> {
    conv: &'a Conv,
    name: &'a str,
    tile: ConvTile,
    sizes: Sizes,
    input: (Option<Place>, View),
    output: (Option<Place>, View),
    on_chip: OnChip,
    scatter: Option<Scatter>,
    weights: u64,
    /// What the array subtracts from every weight.
    zero_point: i8,
    /// Weights beyond 8 bits, and their offset in the constants.
    rest: Rest,
    rest_weights: u64,
    /// Offset in the constants of the parameters of each group of output blocks.
    params: Vec<(Range<usize>, u64)>,
    /// What becomes of the results.
    tail: Tail<'a>,
    /// The pooling behind them.
    pooled: Option<Pooled<'a>>,
}

/// Tiles of output that are computed at once.
struct Step {
    blocks: Range<usize>,
    /// What the product computes.
    pixels: Group,
    /// What is stored: the same, or what a pooling makes of it.
    results: Group,
    /// Rows and columns of the largest window, padding included.
    window: [usize; 2],
}

/// Emits a product.
pub(super) fn emit(
    e: &mut Emit,
    layer: &Layer,
    conv: &Conv,
    tile: ConvTile,
    root: &dyn Fn(ValueId) -> ValueId,
) -> Result<(), DriverError> {
    let input = (e.input(layer, root)?, layer.inputs[0].1);
    let output = (e.output(layer, root)?, layer.output.1);
    let behind = (Tail::new(e, layer, root)?, Pooled::new(e, layer, tile, output.0));
    walk(e, (&layer.name, behind, layer.on_chip), conv, tile, (input, output, None))
}

/// Emits a transposed convolution, phase by phase.
pub(super) fn emit_transposed(
    e: &mut Emit,
    layer: &Layer,
    transposed: &Transposed,
    tiles: &[ConvTile],
    root: &dyn Fn(ValueId) -> ValueId,
) -> Result<(), DriverError> {
    let input = (e.place(layer.inputs[0], root)?, layer.inputs[0].1);
    let output = e.place(layer.output, root)?;
    for (phase, tile) in transposed.phases.iter().zip(tiles) {
        // Tiles are named by their place in the phase.
        e.forget();
        let scatter = Some(Scatter { first: phase.first, step: transposed.strides });
        let ends = ((Some(input.0), input.1), (Some(output), phase.view), scatter);
        walk(e, (&layer.name, (Tail::none(), None), OnChip::default()), &phase.conv, *tile, ends)?;
    }
    Ok(())
}

/// Where a product's results lie in a larger tensor: its first row and column, and those from one result to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scatter {
    first: [usize; 2],
    step: [usize; 2],
}

/// Input, output, and where the output's elements lie, if not beside one another.
type Ends = ((Option<Place>, View), (Option<Place>, View), Option<Scatter>);

fn walk(
    e: &mut Emit,
    (name, (tail, pooled), on_chip): (&str, (Tail, Option<Pooled>), OnChip),
    conv: &Conv,
    tile: ConvTile,
    (input, output, scatter): Ends,
) -> Result<(), DriverError> {
    let (fill, [from, to]) =
        fill(scatter.is_none() && pooled.is_none() && conv.is_pointwise(), [input.1, output.1], e.config);
    let (input, output) = ((input.0, from), (output.0, to));
    let sizes = Sizes::new(conv, input.1, output.1, e.config);
    let rest = Rest::new(conv, &sizes, input.1, e.config);
    let mut walk = Walk {
        conv,
        name,
        tile,
        sizes,
        input,
        output,
        on_chip,
        scatter,
        weights: 0,
        zero_point: 0,
        rest,
        rest_weights: 0,
        params: Vec::new(),
        tail,
        pooled,
    };
    walk.constants(e);
    let blocks = cut(walk.sizes.out_blocks, tile.out_blocks);
    let pixels = Group::all(fill, output.1, [tile.rows, tile.columns], e.config);
    let computed = |results: &Group| walk.pooled.as_ref().map_or(results.clone(), |pooled| pooled.pixels(results));
    let step = |b: &Range<usize>, p: &Group| {
        let pixels = computed(p);
        let [rows, columns] = pixels.size;
        let rows = row_span(conv, 0, rows, input.1).0.padded();
        let columns = column_span(conv, 0, columns, input.1).padded();
        let window = on_chip.input.map_or([rows, columns], |kept| kept.size().map(|n| n as usize));
        Step { blocks: b.clone(), pixels, results: p.clone(), window }
    };
    let steps: Vec<Step> = if tile.pixels_inside {
        blocks.iter().flat_map(|b| pixels.iter().map(move |p| step(b, p))).collect()
    } else {
        pixels.iter().flat_map(|p| blocks.iter().map(move |b| step(b, p))).collect()
    };
    let mut border = Border::of(&on_chip);
    border.early(e, name)?;
    steps.iter().try_for_each(|s| walk.step(e, s, &mut border))
}

/// Descriptor and entries of requantization for a range of output tiles, as they are loaded.
pub(super) fn requant_params(config: &HwConfig, finish: &Finish, tiles: Range<usize>) -> Vec<u8> {
    let descriptor =
        Descriptor { lo: finish.lo, hi: finish.hi, zero_point: finish.zero_point, ..Descriptor::default() };
    let mut bytes = pack_descriptor(config, &descriptor);
    bytes.extend(requant_entries(config, finish, tiles));
    bytes
}

/// Entries of requantization for a range of output tiles.
pub(super) fn requant_entries(config: &HwConfig, finish: &Finish, tiles: Range<usize>) -> Vec<u8> {
    let block = config.block_out as usize;
    let lanes = |i: usize| tiles.start * block + i;
    let take =
        |v: &[i32]| -> Vec<i32> { (0..tiles.len() * block).map(|i| v.get(lanes(i)).copied().unwrap_or(0)).collect() };
    let shift: Vec<i8> = (0..tiles.len() * block).map(|i| finish.shift.get(lanes(i)).copied().unwrap_or(0)).collect();
    pack_params(config, &take(&finish.bias), &take(&finish.multiplier), &shift)
}

/// Requantizes sums by a slope in their own place, where nothing reads them any more, and gives the instruction that chooses
/// between these results and the others in out.
fn below(
    e: &mut Emit,
    slope: &Slope,
    (work, requant): (Requant, Vector),
    [acc, param]: [u32; 2],
) -> Result<Vector, DriverError> {
    let nest = e.nest(&Work::Requant(Requant { mode: slope.mode, ..work }))?;
    let below = Vector { mode: slope.mode, dst: VecDst::Acc, ..requant };
    e.b.vector_nest(below, &Nest { at: [acc, acc, param], ..nest })?;
    Ok(Vector { op: slope.op, dst: VecDst::Out, a: VecSrc::Out, b: VecSrc::Acc, ..Vector::default() })
}

impl Walk<'_> {
    /// Entries of the descriptor and of the requantizations of some blocks.
    fn param_entries(&self, config: &HwConfig, blocks: usize) -> u32 {
        let each = if self.conv.slope.is_some() { 2 } else { 1 };
        config.descriptor_entries() + (each * blocks * self.sizes.out_ratio) as u32
    }

    fn taps(&self) -> usize {
        self.conv.kernel[0] * self.conv.kernel[1]
    }

    fn constants(&mut self, e: &mut Emit) {
        let (config, conv) = (e.config, self.conv);
        let (weights, zero_point) = stored(conv, config);
        self.zero_point = zero_point;
        let entries = self.sizes.out_blocks * self.sizes.out_ratio * self.sizes.in_tiles * self.taps();
        let bytes = e.values(entries * config.entry_bytes(Mem::Wgt) as usize, || {
            let packed = pack(conv, (&weights, zero_point), &self.sizes, self.input.1, config);
            packed.into_iter().map(|w| w as u8).collect()
        });
        self.weights = e.b.constant(&format!("{} weights", self.name), Role::Weights, &bytes);
        if !self.rest.bytes.is_empty() {
            let name = format!("{} weights beyond 8 bits", self.name);
            self.rest_weights = e.b.constant(&name, Role::Weights, &self.rest.bytes);
        }
        let entries = self.param_entries(config, self.sizes.out_blocks);
        let whole = 2 * PARAM_ROWS * entries <= config.entries(Mem::Param);
        let group = if whole { self.sizes.out_blocks } else { self.tile.out_blocks };
        for blocks in cut(self.sizes.out_blocks, group) {
            let tiles = blocks.start * self.sizes.out_ratio..blocks.end * self.sizes.out_ratio;
            let mut bytes = requant_params(config, &conv.finish, tiles.clone());
            if let Some(slope) = &conv.slope {
                bytes.extend(requant_entries(config, &slope.finish(&conv.finish), tiles));
            }
            let offset = e.b.constant(&format!("{} parameters", self.name), Role::Params, &bytes);
            self.params.push((blocks, offset));
        }
    }

    fn step(&self, e: &mut Emit, s: &Step, border: &mut Border) -> Result<(), DriverError> {
        let param = self.load_params(e, s)?;
        let pixels: usize = s.pixels.size.iter().product();
        let entries = (s.blocks.len() * self.sizes.out_ratio * pixels) as u32;
        let sums = self.pooled.as_ref().map_or(entries, |p| p.sums(entries, &s.results, &s.blocks));
        let acc = e.acc.take(sums);
        let passes = if self.conv.groups > 1 {
            let (first, count) = self.sizes.blocks_for(self.conv, s.blocks.clone(), self.input.1, e.config);
            std::iter::once(first..first + count).collect()
        } else {
            cut(self.sizes.in_blocks, self.tile.in_blocks)
        };
        for (pass, in_blocks) in passes.iter().enumerate() {
            let wgt = self.load_weights(e, s, in_blocks)?;
            let nests = self.nests(e, s, in_blocks)?;
            let further = self.rest_nests(e, s, in_blocks)?;
            for nest in &nests {
                e.b.prepare_gemm(&tail(nest, pass == 0))?;
            }
            for nest in &further {
                e.b.prepare_gemm(nest)?;
            }
            let inp = self.load_input(e, s, in_blocks)?;
            for nest in nests {
                let at = [nest.at[0] + acc, nest.at[1] + inp, nest.at[2] + wgt];
                let nest = Nest { at, ..nest };
                if pass == 0 {
                    let first = Nest { body: nest.body[..1].to_vec(), ..nest.clone() };
                    e.b.gemm_nest_less(false, self.zero_point, &first)?;
                }
                e.b.gemm_nest_less(true, self.zero_point, &tail(&nest, pass == 0))?;
            }
            for nest in further {
                let at = [nest.at[0] + acc, nest.at[1] + inp, nest.at[2] + wgt];
                e.b.gemm_nest(true, &Nest { at, ..nest })?;
            }
        }
        if let Some(pooled) = &self.pooled {
            return self.pool(e, s, (pooled, acc, param), border);
        }
        let size = s.pixels.size.map(|n| n as u32);
        // In inp the results lie in place; what is stored as well comes by out.
        let kept = self.on_chip.output.zip(s.pixels.tiles.first());
        let kept = kept.map(|(k, t)| k.target(s.blocks.start, t.rows.start, t.columns.start));
        let direct = kept.filter(|_| !self.on_chip.stored);
        let slope = self.conv.slope.as_ref();
        let last = direct.filter(|_| self.tail.is_empty());
        let again = kept.is_some() || slope.is_some();
        let out = if last.is_some() && slope.is_none() { 0 } else { self.tail.room(e, entries, again) };
        let first = last.filter(|_| slope.is_none());
        let target = first.unwrap_or(Target::out(out, size, self.sizes.out_ratio as u32));
        let blocks = s.blocks.len() as u32;
        let (work, requant) = self.requant(s, param.0);
        let requant = Vector { dst: target.dst, ..requant };
        let nest = e.nest(&Work::Requant(work))?;
        e.b.vector_nest(requant, &target.results(Nest { at: [out, acc, param.1], ..nest }, blocks, size))?;
        if let Some(slope) = slope {
            let to = last.unwrap_or(Target::out(out, size, self.sizes.out_ratio as u32));
            let choice = Vector { dst: to.dst, ..below(e, slope, (work, requant), [acc, param.2])? };
            let dims = vec![Dim::new(entries, [1, 1, 1])];
            let nest = Nest { at: [out, out, acc], body: vec![[0; 3]], dims };
            e.b.vector_nest(choice, &to.results(nest, blocks, size))?;
        }
        border.late(e, self.name, acc)?;
        self.tail.apply(e, &s.pixels, &s.blocks, (out, entries, direct))?;
        if let Some(kept) = kept.filter(|_| self.on_chip.stored) {
            kept.fill(e, out, blocks, size)?;
        }
        let (Some(place), view) = self.output else { return Ok(()) };
        if let Some(scatter) = self.scatter {
            return self.store_apart(e, s, (place, scatter), out);
        }
        s.pixels.store(e, place, view, &s.blocks, out, |_| true)
    }

    /// Requantizes a step's sums to where windows of them are reduced, and reduces these.
    fn pool(
        &self,
        e: &mut Emit,
        s: &Step,
        (pooled, acc, param): (&Pooled, u32, (u32, u32, u32)),
        border: &mut Border,
    ) -> Result<(), DriverError> {
        let frame = pooled.frame(e, &s.results, &s.blocks);
        let (work, requant) = self.requant(s, param.0);
        frame.requantize(e, requant, work, [acc, param.1])?;
        if let Some(slope) = &self.conv.slope {
            let choice = below(e, slope, (work, requant), [acc, param.2])?;
            frame.combine(e, choice, acc)?;
        }
        pooled.apply(e, &frame, (&s.results, &s.blocks), acc, border)
    }

    /// What a step's requantization does, and its instruction, with out for its results.
    fn requant(&self, s: &Step, descriptor: u32) -> (Requant, Vector) {
        let finish = &self.conv.finish;
        let work = Requant {
            blocks: s.blocks.len() as u32,
            ratio: self.sizes.out_ratio as u32,
            pixels: s.pixels.size.iter().product::<usize>() as u32,
            bounds: [finish.zero_point, finish.lo, finish.hi],
            mode: finish.mode,
        };
        let vector = Vector {
            op: VecOp::Requant,
            mode: finish.mode,
            dst: VecDst::Out,
            a: VecSrc::Acc,
            b: VecSrc::Param,
            descriptor,
            ..Vector::default()
        };
        (work, vector)
    }

    /// Stores tiles pixel by pixel, block by block.
    fn store_apart(
        &self,
        e: &mut Emit,
        s: &Step,
        (place, scatter): (Place, Scatter),
        out: u32,
    ) -> Result<(), DriverError> {
        let ratio = self.sizes.out_ratio;
        let (layout, Scatter { first, step }) = (place.layout, scatter);
        let at = |i: usize, place: usize| first[i] + place * step[i];
        let [height, width] = s.pixels.size;
        let entry_bytes = e.config.entry_bytes(Mem::Out) as usize;
        let batch = e.config.batch as usize;
        // With several batch rows each part of a pixel that an entry holds is a store of its own.
        let parts = if batch == 1 { 1 } else { ratio };
        let bytes = layout.block / parts;
        for (lane, t) in s.pixels.tiles.iter().enumerate() {
            for (i, block) in s.blocks.clone().enumerate() {
                for part in 0..parts {
                    let channel = block * layout.block + part * bytes;
                    let offset = layout.offset(t.image, channel, at(0, t.rows.start), at(1, t.columns.start));
                    let (rows, planes) = (t.columns.len(), t.rows.len());
                    let store = Store {
                        mem: Mem::Out,
                        base: place.region.0,
                        offset: place.offset + offset as u64,
                        entry: out + (i * height * width * ratio + part) as u32,
                        row_bytes: bytes as u32,
                        rows: rows as u32,
                        planes: planes as u32,
                        row_stride: stride(rows, step[1] * layout.block),
                        plane_stride: stride(planes, step[0] * layout.row_stride()),
                        ..Store::default()
                    };
                    e.b.store(if batch == 1 {
                        store
                    } else {
                        Store {
                            pack: true,
                            pack_byte: (lane * bytes) as u32,
                            pack_row_stride: (ratio * entry_bytes) as u32,
                            pack_plane_stride: (width * ratio * entry_bytes) as u32,
                            ..store
                        }
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Entries of the descriptor and of the step's first output tile in both requantizations.
    fn load_params(&self, e: &mut Emit, s: &Step) -> Result<(u32, u32, u32), DriverError> {
        let group = self.params.iter().find(|(blocks, _)| blocks.contains(&s.blocks.start));
        let (blocks, offset) = group.cloned().unwrap_or((0..0, 0));
        let descriptor = e.config.descriptor_entries();
        let entries = self.param_entries(e.config, blocks.len());
        let key = [blocks.start, 0, 0, 0, 0];
        let row = match e.param.find(&key) {
            Some(row) => row,
            None => {
                let row = e.param.hold(key, PARAM_ROWS * entries);
                let bytes = u64::from(entries * e.config.param_entry_bytes());
                e.b.load_linear(Mem::Param, e.b.constants(), offset, row, bytes)?;
                row
            }
        };
        let first = row / PARAM_ROWS + descriptor + ((s.blocks.start - blocks.start) * self.sizes.out_ratio) as u32;
        Ok((row / PARAM_ROWS, first, first + (blocks.len() * self.sizes.out_ratio) as u32))
    }

    /// Tiles over the input channels of a pass.
    fn pass_tiles(&self, in_blocks: &Range<usize>) -> Range<usize> {
        if self.conv.groups > 1 {
            return 0..self.sizes.in_tiles;
        }
        let ratio = self.sizes.in_ratio;
        in_blocks.start * ratio..(in_blocks.end * ratio).min(self.sizes.in_tiles)
    }

    fn load_weights(&self, e: &mut Emit, s: &Step, in_blocks: &Range<usize>) -> Result<u32, DriverError> {
        let tiles = self.pass_tiles(in_blocks);
        let key = [s.blocks.start, tiles.start, 0, 0, 0];
        if let Some(entry) = e.wgt.find(&key) {
            return Ok(entry);
        }
        let (taps, all) = (self.taps(), self.sizes.in_tiles);
        let out_tiles = s.blocks.len() * self.sizes.out_ratio;
        let first = s.blocks.start * self.sizes.out_ratio;
        let main = out_tiles * tiles.len() * taps;
        let entry = e.wgt.hold(key, (main + self.rest.count(first..first + out_tiles, &tiles)) as u32);
        let tile_bytes = u64::from(e.config.entry_bytes(Mem::Wgt));
        let row = (tiles.len() * taps) as u64 * tile_bytes;
        let offset = |t: usize| self.weights + (((first + t) * all + tiles.start) * taps) as u64 * tile_bytes;
        let constants = e.b.constants();
        let mut further = |from: usize, to: usize, count: usize| {
            let offset = self.rest_weights + from as u64 * tile_bytes;
            e.b.load_linear(Mem::Wgt, constants, offset, entry + (main + to) as u32, count as u64 * tile_bytes)
        };
        if tiles.len() == all {
            let count = self.rest.count(first..first + out_tiles, &tiles);
            if count > 0 {
                further(self.rest.tiles(first, &tiles).start, 0, count)?;
            }
            e.b.load_linear(Mem::Wgt, constants, offset(0), entry, row * out_tiles as u64)?;
            return Ok(entry);
        }
        let mut at = 0;
        for t in 0..out_tiles {
            let rest = self.rest.tiles(first + t, &tiles);
            if !rest.is_empty() {
                further(rest.start, at, rest.len())?;
            }
            at += rest.len();
        }
        for t in 0..out_tiles {
            let to = entry + (t * tiles.len() * taps) as u32;
            e.b.load_linear(Mem::Wgt, constants, offset(t), to, row)?;
        }
        Ok(entry)
    }

    fn load_input(&self, e: &mut Emit, s: &Step, in_blocks: &Range<usize>) -> Result<u32, DriverError> {
        let [image, row, column] = s.pixels.key();
        let (place, view) = self.input;
        let Some(place) = place else {
            let first = |k: usize, at: usize| (at * self.conv.strides[k]) as i64 - self.conv.pads[k] as i64;
            let kept = self.on_chip.input.map(|k| k.at(in_blocks.start, first(0, row), first(1, column)));
            return kept.ok_or_else(|| DriverError::Rule { index: e.b.len(), what: "an input has no place".into() });
        };
        // Windows of two tiles may begin with the same row.
        let [_, first_row, first_column] = s.results.key();
        let key = [image, first_row, first_column, in_blocks.start, in_blocks.end];
        if let Some(entry) = e.inp.find(&key) {
            return Ok(entry);
        }
        let ratio = self.sizes.in_ratio;
        let entries = in_blocks.len() * s.window[0] * s.window[1] * ratio;
        let entry = e.inp.hold(key, entries as u32);
        if let Some(columns) = view.windows() {
            self.load_windows(e, s, in_blocks, (place, entry, columns))?;
            return Ok(entry);
        }
        let windows: Vec<Window> = s
            .pixels
            .tiles
            .iter()
            .map(|t| {
                let (rows, skip) = row_span(self.conv, t.rows.start, t.rows.len(), view);
                let columns = column_span(self.conv, t.columns.start, t.columns.len(), view);
                Window { image: t.image, blocks: in_blocks.clone(), rows, skip, columns }
            })
            .collect();
        let load = Load { mem: Mem::Inp, entry, pad_value: self.conv.pad_value, ..Load::default() };
        s.pixels.load(e, place, &windows, s.window, load, ratio)?;
        Ok(entry)
    }

    /// Loads windows of columns, a row of bytes each, block by block of what they have.
    fn load_windows(
        &self,
        e: &mut Emit,
        s: &Step,
        in_blocks: &Range<usize>,
        (place, entry, windows): (Place, u32, ColumnWindows),
    ) -> Result<(), DriverError> {
        let view = self.input.1;
        let block = e.config.block() as usize;
        for t in &s.pixels.tiles {
            let (rows, skip) = row_span(self.conv, t.rows.start, t.rows.len(), view);
            let offset = place.layout.offset(t.image, 0, rows.start, t.columns.start * windows.step);
            for (i, first) in in_blocks.clone().map(|b| b * block).enumerate() {
                e.b.load(Load {
                    mem: Mem::Inp,
                    base: place.region.0,
                    offset: place.offset + (offset + first) as u64,
                    entry: entry + (i * s.window[0] * s.window[1]) as u32,
                    row_bytes: block.min(view.c - first) as u32,
                    rows: t.columns.len() as u32,
                    planes: rows.inside as u32,
                    row_stride: stride(t.columns.len(), windows.step * windows.c),
                    plane_stride: stride(rows.inside, skip * place.layout.row_stride()),
                    z_before: rows.before as u32,
                    z_after: rows.after as u32,
                    pad_value: self.conv.pad_value,
                    ..Load::default()
                })?;
            }
        }
        Ok(())
    }

    /// The work of a pass on all output tiles of a step.
    fn tile(&self, s: &Step, in_blocks: &Range<usize>) -> Tile {
        let (conv, sizes) = (self.conv, &self.sizes);
        let pair = |v: [usize; 2]| v.map(|n| n as u32);
        let row_step = if skips_rows(conv) && self.on_chip.input.is_none() { 1 } else { conv.strides[0] as u32 };
        Tile {
            blocks: s.blocks.len() as u32,
            out_ratio: sizes.out_ratio as u32,
            pixels: pair(s.pixels.size),
            tiles: self.pass_tiles(in_blocks).len() as u32,
            first: 0,
            in_ratio: sizes.in_ratio as u32,
            window: [in_blocks.len() as u32, s.window[0] as u32, s.window[1] as u32],
            kernel: pair(conv.kernel),
            steps: [row_step, conv.strides[1] as u32],
            dilations: pair(conv.dilations),
        }
    }

    /// The loops of a pass for one output tile of a step, which reads its weights from the first on.
    fn one_nest(&self, e: &mut Emit, s: &Step, in_blocks: &Range<usize>, t: usize) -> Result<Nest, DriverError> {
        let (sizes, all) = (&self.sizes, self.tile(s, in_blocks));
        let (ri, ro) = (all.in_ratio, all.out_ratio);
        let first = if self.conv.groups == 1 {
            in_blocks.start * sizes.in_ratio
        } else {
            sizes.first_tile(self.conv, s.blocks.start * sizes.out_ratio + t, self.input.1, e.config)
        };
        let block = (first / sizes.in_ratio - in_blocks.start) as u32;
        let (t, first) = (t as u32, (first % sizes.in_ratio) as u32);
        let blocks = (first + all.tiles).div_ceil(ri);
        let one = Tile { blocks: 1, out_ratio: 1, first, window: [blocks, all.window[1], all.window[2]], ..all };
        let mut nest = e.nest(&Work::Product(one))?;
        // Sums of neighbouring pixels stand as far apart as a block has entries.
        nest.dims.iter_mut().for_each(|d| d.steps[0] *= ro);
        let plane = all.window[1] * all.window[2] * ri;
        nest.at = [t / ro * all.pixels[0] * all.pixels[1] * ro + t % ro, block * plane, 0];
        Ok(nest)
    }

    /// The loops of a pass, for all output tiles at once or, with groups, for each.
    fn nests(&self, e: &mut Emit, s: &Step, in_blocks: &Range<usize>) -> Result<Vec<Nest>, DriverError> {
        let all = self.tile(s, in_blocks);
        if self.conv.groups == 1 {
            return Ok(vec![e.nest(&Work::Product(all))?]);
        }
        let per_tile = all.tiles * self.taps() as u32;
        let each = |t: usize| {
            let mut nest = self.one_nest(e, s, in_blocks, t)?;
            nest.at[2] = t as u32 * per_tile;
            Ok(nest)
        };
        (0..s.blocks.len() * self.sizes.out_ratio).map(each).collect()
    }

    /// The loops over the weights beyond 8 bits: of each output tile's micro-ops those that have some.
    fn rest_nests(&self, e: &mut Emit, s: &Step, in_blocks: &Range<usize>) -> Result<Vec<Nest>, DriverError> {
        let (tiles, taps) = (self.pass_tiles(in_blocks), self.taps());
        let (first, out_tiles) = (s.blocks.start * self.sizes.out_ratio, s.blocks.len() * self.sizes.out_ratio);
        // They lie behind the others in the order of output tiles.
        let mut at = (out_tiles * tiles.len() * taps) as u32;
        let mut nests = Vec::new();
        for t in 0..out_tiles {
            let places = self.rest.places(first + t, &tiles);
            if places.is_empty() {
                continue;
            }
            let mut nest = self.one_nest(e, s, in_blocks, t)?;
            let numbered = places.iter().enumerate();
            nest.body = numbered
                .map(|(k, &(tile, tap))| {
                    let [acc, inp, _] = nest.body[tile * taps + tap];
                    [acc, inp, k as u32]
                })
                .collect();
            nest.at[2] = at;
            at += places.len() as u32;
            nests.push(nest);
        }
        Ok(nests)
    }
}

/// What accumulates: all micro-ops, but on the first pass the one that overwrites.
fn tail(nest: &Nest, first_pass: bool) -> Nest {
    Nest { body: nest.body[usize::from(first_pass)..].to_vec(), ..nest.clone() }
}
