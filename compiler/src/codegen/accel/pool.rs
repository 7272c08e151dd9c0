//! Poolings, and what else works channel by channel, on the vector unit.

use super::batch::{Group, fill};
use super::build::{Emit, Place, Work};
use super::conv::{Window, cut, requant_params};
use super::extract::division;
use super::layer::{Finish, Layer, Pool, PoolFinish, Reduce};
use super::plan::{PoolTile, counts, distinct_counts, pool_columns, pool_rows, pool_source};
use super::vector::{Requant, Windows};
use super::view::View;
use crate::graph::ValueId;
use crate::tir::Scope;
use std::ops::Range;
use tilewright_driver::{Dim, DriverError, Nest, Role};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{Descriptor, Load, PARAM_ROWS, VecDst, VecOp, VecSrc, Vector};
use tilewright_hw::layout::{pack_descriptor, pack_params};
use tilewright_hw::num::Rounding;

struct Walk<'a> {
    pool: &'a Pool,
    tile: PoolTile,
    ratio: u32,
    input: (Place, View),
    output: (Place, View),
    source: Mem,
    /// Counts that a mean divides by; each has its parameter entry.
    divisors: Vec<usize>,
    /// Offset in the constants of the parameters of each range of blocks.
    params: Vec<(Range<usize>, u64, u32)>,
}

/// Emits a pooling.
pub(super) fn emit(
    e: &mut Emit,
    layer: &Layer,
    pool: &Pool,
    tile: PoolTile,
    root: &dyn Fn(ValueId) -> ValueId,
) -> Result<(), DriverError> {
    let (input, output) = (layer.inputs[0], layer.output);
    let (fill, [from, to]) = fill(pool.is_pointwise(), [input.1, output.1], e.config);
    let mut walk = Walk {
        pool,
        tile,
        ratio: e.config.block() / e.config.block_out,
        input: (e.place(input, root)?, from),
        output: (e.place(output, root)?, to),
        source: pool_source(e.config),
        divisors: distinct_counts(pool, from, to),
        params: Vec::new(),
    };
    walk.constants(e, &layer.name);
    let groups = Group::all(fill, to, [tile.rows, tile.columns], e.config);
    for image in 0..to.n {
        for blocks in cut(walk.output.0.layout.blocks(), tile.blocks) {
            for group in groups.iter().filter(|g| g.key()[0] == image) {
                walk.step(e, group, &blocks)?;
            }
        }
    }
    Ok(())
}

impl Walk<'_> {
    fn constants(&mut self, e: &mut Emit, name: &str) {
        let config = e.config;
        let blocks = self.output.0.layout.blocks();
        let descriptor = |lo, hi| pack_descriptor(config, &Descriptor { lo, hi, ..Descriptor::default() });
        let mut add = |params: &mut Vec<_>, range: Range<usize>, bytes: Vec<u8>| {
            let entries = bytes.len() as u32 / config.param_entry_bytes();
            let offset = e.b.constant(&format!("{name} parameters"), Role::Params, &bytes);
            params.push((range, offset, entries));
        };
        match &self.pool.finish {
            PoolFinish::Clip { lo, hi } => add(&mut self.params, 0..blocks, descriptor(*lo, *hi)),
            PoolFinish::Mean { lo, hi, unsigned, .. } => {
                // Unsigned bytes are 128 greater each, and so is their mean.
                let zero = if *unsigned { 128 } else { 0 };
                let descriptor = Descriptor { lo: *lo, hi: *hi, zero_point: -zero, ..Descriptor::default() };
                let mut bytes = pack_descriptor(config, &descriptor);
                for &count in &self.divisors {
                    bytes.extend(uniform(config, count, zero * count as i32));
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

    /// Entries of the descriptor and of what follows it.
    fn load_params(&self, e: &mut Emit, blocks: &Range<usize>) -> Result<(u32, u32), DriverError> {
        let found = self.params.iter().find(|(range, ..)| range.contains(&blocks.start)).cloned();
        let (range, offset, entries) = found.unwrap_or((0..0, 0, 0));
        let key = [range.start, 0, 0, 0, 0];
        let row = match e.param.find(&key) {
            Some(row) => row,
            None => {
                let row = e.param.hold(key, PARAM_ROWS * entries);
                let bytes = u64::from(entries * e.config.param_entry_bytes());
                e.b.load_linear(Mem::Param, e.b.constants(), offset, row, bytes)?;
                row
            }
        };
        Ok((row / PARAM_ROWS, row / PARAM_ROWS + e.config.descriptor_entries()))
    }

    fn step(&self, e: &mut Emit, group: &Group, blocks: &Range<usize>) -> Result<(), DriverError> {
        let (pool, ratio) = (self.pool, self.ratio);
        let (descriptor, param) = self.load_params(e, blocks)?;
        let (from, to) = (self.input.1, self.output.1);
        let windows: Vec<Window> = group
            .tiles
            .iter()
            .map(|t| Window {
                image: t.image,
                blocks: blocks.clone(),
                rows: pool_rows(pool, t.rows.start, t.rows.len(), from),
                skip: 1,
                columns: pool_columns(pool, t.columns.start, t.columns.len(), from),
            })
            .collect();
        let size =
            [pool_rows(pool, 0, group.size[0], from).padded(), pool_columns(pool, 0, group.size[1], from).padded()];
        let [height, width] = size.map(|n| n as u32);
        let ring = if self.source == Mem::Inp { &mut e.inp } else { &mut e.out };
        let data = ring.take(blocks.len() as u32 * height * width * ratio);
        let load = Load { mem: self.source, entry: data, pad_value: pool.pad_value, ..Load::default() };
        group.load(e, self.input.0, &windows, size, load, ratio as usize)?;
        let [out_rows, out_columns] = group.size.map(|n| n as u32);
        let pixels = out_rows * out_columns;
        let entries = blocks.len() as u32 * pixels * ratio;
        let acc = e.acc.take(entries);
        let pair = |v: [usize; 2]| v.map(|n| n as u32);
        let walk = e.nest(&Work::Windows(Windows {
            blocks: blocks.len() as u32,
            ratio,
            pixels: [out_rows, out_columns],
            window: [height, width],
            kernel: pair(pool.kernel),
            steps: pair(pool.strides),
            dilations: pair(pool.dilations),
            reduce: pool.reduce,
            source: if self.source == Mem::Inp { Scope::Inp } else { Scope::Out },
        }))?;
        let source = if self.source == Mem::Inp { VecSrc::Inp } else { VecSrc::Out };
        let first = Vector { op: VecOp::Move, dst: VecDst::Acc, a: source, ..Vector::default() };
        // The first element of each window is moved: its data are the only operand.
        let moved = |[result, _, data]: [u32; 3]| [result, data, 0];
        let dims = walk.dims.iter().map(|d| Dim::new(d.count, moved(d.steps))).collect();
        e.b.vector_nest(first, &Nest { at: [acc, data, 0], body: vec![moved(walk.body[0])], dims })?;
        let op = if pool.reduce == Reduce::Max { VecOp::Max } else { VecOp::Add };
        let rest = Vector { op, dst: VecDst::Acc, a: VecSrc::Acc, b: source, ..Vector::default() };
        e.b.vector_nest(rest, &Nest { at: [acc, acc, data], body: walk.body[1..].to_vec(), dims: walk.dims })?;
        let finish = Vector { dst: VecDst::Out, a: VecSrc::Acc, descriptor, ..Vector::default() };
        match &pool.finish {
            PoolFinish::Clip { lo, hi } => {
                let out = e.out.take(entries);
                let op = if (*lo, *hi) == (-128, 127) { VecOp::Move } else { VecOp::Clip };
                let nest = Nest { at: [out, acc, 0], body: vec![[0; 3]], dims: vec![Dim::new(entries, [1, 1, 0])] };
                e.b.vector_nest(Vector { op, ..finish }, &nest)?;
                group.store(e, self.output.0, to, blocks, out, |_| true)
            }
            PoolFinish::Requant(Finish { mode, zero_point, lo, hi, .. }) => {
                let out = e.out.take(entries);
                let (count, bounds, mode) = (blocks.len() as u32, [*zero_point, *lo, *hi], *mode);
                let nest = e.nest(&Work::Requant(Requant { blocks: count, ratio, pixels, bounds, mode }))?;
                let requant = Vector { op: VecOp::Requant, mode, b: VecSrc::Param, ..finish };
                e.b.vector_nest(requant, &Nest { at: [out, acc, param], ..nest })?;
                group.store(e, self.output.0, to, blocks, out, |_| true)
            }
            PoolFinish::Mean { count_pads, .. } => {
                let [y_counts, x_counts] = counts(pool, from, to, *count_pads);
                let of = |lane: usize| {
                    let t = &group.tiles[lane];
                    (&y_counts[t.rows.clone()], &x_counts[t.columns.clone()])
                };
                // Batch rows share an entry's divisor: tiles with other ones are divided, and stored, apart.
                let mut done = vec![false; group.tiles.len()];
                for lane in 0..group.tiles.len() {
                    if done[lane] {
                        continue;
                    }
                    let (ys, xs) = of(lane);
                    let alike: Vec<bool> = (0..done.len()).map(|other| of(other) == (ys, xs)).collect();
                    done.iter_mut().zip(&alike).for_each(|(done, &now)| *done |= now);
                    let out = e.out.take(entries);
                    for (y, x) in runs(ys).into_iter().flat_map(|y| runs(xs).into_iter().map(move |x| (y.clone(), x))) {
                        let count = ys[y.start] * xs[x.start];
                        let entry = self.divisors.iter().position(|&d| d == count).unwrap_or(0) as u32;
                        let at = (y.start as u32 * out_columns + x.start as u32) * ratio;
                        let walk = |step: u32| [step, step, 0];
                        let dims = vec![
                            Dim::new(blocks.len() as u32, walk(pixels * ratio)),
                            Dim::new(y.len() as u32, walk(out_columns * ratio)),
                            Dim::new(x.len() as u32 * ratio, walk(1)),
                        ];
                        let requant =
                            Vector { op: VecOp::Requant, mode: division(count).2, b: VecSrc::Param, ..finish };
                        let nest = Nest { at: [out + at, acc + at, param + entry], body: vec![[0; 3]], dims };
                        e.b.vector_nest(requant, &nest)?;
                    }
                    group.store(e, self.output.0, to, blocks, out, |lane| alike[lane])?;
                }
                Ok(())
            }
        }
    }
}

/// The parameter entry that adds `bias` to every lane's sum and divides it by `count`.
fn uniform(config: &HwConfig, count: usize, bias: i32) -> Vec<u8> {
    let lanes = config.block_out as usize;
    let (multiplier, shift, _): (i32, i8, Rounding) = division(count);
    pack_params(config, &vec![bias; lanes], &vec![multiplier; lanes], &vec![shift; lanes])
}

/// Ranges of equal neighbours.
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
