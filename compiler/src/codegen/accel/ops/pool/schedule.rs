//! Poolings as scheduled tensor expressions.
//!
//! The expression copies the data with their padding to the memory from which the vector unit reads, reduces the windows
//! to 32-bit values, and turns these into bytes. The schedule is made from the sizes of a [`PoolTile`].
//!
//! | entries | data, windows and results |
//! |---|---|
//! | one batch row | `[images, blocks, rows, columns, (entries of a pixel,) channels]` |
//! | [`Fill::Neighbors`] | runs of bytes: `[images, blocks, entries, 1, batch, channels]` |
//! | [`Fill::Tiles`] | `[groups of tiles, blocks, rows, columns, (entries of a pixel,) batch, channels]` |
//!
//! With [`Fill::Tiles`], the results have a further first dimension: one copy for each of the [`Patterns`] of divisors.

use super::divisors::{Divisors, Patterns};
use super::op::{Pool, PoolFinish, Reduce};
use super::plan::PoolTile;
use super::steps::{Steps, steps, tensorized};
use crate::codegen::accel::batch::{Fill, entry_lanes, fill, memory_lanes};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::padded_range::{inside, less, within};
use crate::codegen::accel::requant::{Parameters, keeps_params};
use crate::codegen::accel::runs::Runs;
use crate::codegen::accel::scheduled::{LayerInput, LayerSchedule, template};
use crate::codegen::accel::tile_groups::{GroupPlace, TileGroups, times};
use crate::codegen::accel::view::View;
use crate::te::{Builder, Combiner, DType, Expr, TensorRef};
use tilewright_hw::config::HwConfig;

/// The windows, reduced to 32-bit values.
pub const WINDOWS: &str = "windows";

/// An expression under construction.
pub struct PoolExpression<'a> {
    b: &'a mut Builder,
    /// Begins the names of the results and of the parameters.
    prefix: &'static str,
    pool: &'a Pool,
    tile: PoolTile,
    config: &'a HwConfig,
    fill: Fill,
    /// The input and the output as the tiles see them.
    views: [View; 2],
    inputs: Vec<LayerInput>,
    /// Steps that copy parameters to param.
    params: String,
    /// Blocks that copy parameters.
    copies: Vec<String>,
    /// Whether all parameters fit param.
    keeps_params: bool,
}

/// A pooling as a part of a product's expression.
pub struct PooledResults {
    /// The windows, reduced to 32-bit values.
    pub reduced: TensorRef,
    /// The results of the pooling.
    pub result: TensorRef,
    /// What is stored; the results themselves if they have that form.
    pub output: TensorRef,
    /// How often a tile's results are computed.
    pub patterns: usize,
    /// Steps that make instructions of both.
    pub instructions: String,
    /// Steps that copy parameters to param.
    pub params: String,
    /// Blocks that copy parameters.
    pub copies: Vec<String>,
    /// What the inputs with parameters are.
    pub inputs: Vec<LayerInput>,
}

/// Returns a pooling in tiles.
pub fn schedule(pool: &Pool, tile: PoolTile, layer: &Layer, config: &HwConfig) -> Option<LayerSchedule> {
    let whole = [layer.input_view(), layer.output_view()];
    let (fill, views) = fill(pool.is_pointwise(), whole, config);
    let mut b = Builder::new("pool");
    let mut e = PoolExpression {
        b: &mut b,
        prefix: "",
        pool,
        tile,
        config,
        fill,
        views,
        inputs: vec![LayerInput::Tensor(0)],
        params: String::new(),
        copies: Vec::new(),
        keeps_params: true,
    };
    // Neighboring pixels are runs of the tensor's own rows and columns.
    let runs = Runs::of_blocks(&layer.output_view().layout(config), config);
    let runs = (fill == Fill::Neighbors).then_some(&runs);
    let (data, is_copy) = e.data(runs);
    let reduced = e.reduced(&data);
    let (result, instruction) = e.finished(&data, &reduced);
    let output = e.output(&result, runs);
    let text = steps(&Steps {
        pool,
        tile,
        config,
        layer,
        fill,
        groups: e.is_in_groups().then(|| e.groups()),
        view: e.views[1],
        is_copy,
        data: &data,
        reduced: &reduced,
        result: &result,
        output: &output,
        patterns: e.patterns().count(),
        instruction,
        params: &e.params,
        copies: &e.copies,
        keeps_params: e.keeps_params,
    });
    Some(LayerSchedule { inputs: e.inputs, program: b.finish(&[output]), steps: template(&text)? })
}

impl PoolExpression<'_> {
    /// Adds a pooling of a product's results to the product's expression, in tiles of `size` rows and columns.
    pub fn of_results(
        b: &mut Builder,
        pool: &Pool,
        views: [View; 2],
        results: &TensorRef,
        size: [usize; 2],
        config: &HwConfig,
    ) -> PooledResults {
        let mut e = PoolExpression {
            b,
            prefix: "pool_",
            pool,
            tile: PoolTile { blocks: 1, rows: size[0], columns: size[1] },
            config,
            fill: Fill::Tiles,
            views,
            inputs: Vec::new(),
            params: String::new(),
            copies: Vec::new(),
            keeps_params: true,
        };
        let reduced = e.reduced(results);
        let (result, instruction) = e.finished(results, &reduced);
        let instructions = tensorized(pool, [&reduced, &result], instruction, config);
        let (output, patterns) = (e.output(&result, None), e.patterns().count());
        let PoolExpression { params, copies, inputs, .. } = e;
        PooledResults { reduced, result, output, patterns, instructions, params, copies, inputs }
    }

    /// Entries of a pixel of a block.
    fn ratio(&self) -> usize {
        (self.config.block() / self.config.block_out) as usize
    }

    /// See [`memory_lanes`].
    fn lanes(&self) -> Vec<i64> {
        memory_lanes(self.ratio(), self.config.block_out.into())
    }

    /// See [`entry_lanes`].
    fn own_lanes(&self) -> Vec<i64> {
        entry_lanes(self.ratio(), self.config.block_out.into(), self.config.batch.into())
    }

    fn blocks(&self) -> usize {
        self.views[1].layout(self.config).blocks()
    }

    fn groups(&self) -> TileGroups {
        TileGroups::new(self.views[1], [self.tile.rows, self.tile.columns], self.config)
    }

    fn divisors(&self) -> Divisors<'_> {
        Divisors::of(self.pool, self.views[0], self.views[1])
    }

    fn patterns(&self) -> Patterns {
        match self.is_in_groups() {
            true => self.divisors().patterns([self.tile.rows, self.tile.columns]),
            false => Patterns::default(),
        }
    }

    /// Whether the batch rows of an entry hold pixels of different tiles.
    fn is_in_groups(&self) -> bool {
        self.fill == Fill::Tiles && self.config.batch > 1
    }

    /// Adds the data as the windows read them, with padding. Returns whether they are a tensor of their own and no input.
    fn data(&mut self, runs: Option<&Runs>) -> (TensorRef, bool) {
        if let Some(runs) = runs {
            let input = runs.input(self.b, "x");
            return (input.tensor, input.is_copy);
        }
        let input = self.views[0];
        let shape =
            [vec![input.n, self.blocks(), input.h, input.w].into_iter().map(|n| n as i64).collect(), self.lanes()];
        let x = self.b.input("x", DType::I8, &shape.concat());
        if self.is_in_groups() {
            return (self.data_of_groups(&x), true);
        }
        let pads = [self.pool.pads[0], self.pool.pads[1]];
        let counts = [self.pool.span(0, self.views[1].h), self.pool.span(1, self.views[1].w)];
        let shape = [input.n, self.blocks(), counts[0], counts[1]].map(|n| n as i64);
        let pad = Expr::Int(self.pool.pad_value.into(), DType::I8);
        let data = self.b.compute("data", &[shape.to_vec(), self.lanes()].concat(), |i| {
            let place = |k: usize| padded(&i[2 + k], counts[k], pads[k], [input.h, input.w][k]);
            let [(row, of_rows), (column, of_columns)] = [place(0), place(1)];
            let element = x.at(&[&i[..2], &[row, column], &i[4..]].concat());
            within([of_rows, of_columns].concat(), element, pad)
        });
        (data, true)
    }

    /// Adds the data of groups of tiles: row `i` of an entry has a pixel of tile `i` of the group.
    fn data_of_groups(&mut self, x: &TensorRef) -> TensorRef {
        let ([input, output], tile, groups) = (self.views, self.tile, self.groups());
        let needed = [self.pool.span(0, output.h), self.pool.span(1, output.w)];
        let omits = groups.can_omit();
        let spans = [self.pool.span(0, tile.rows), self.pool.span(1, tile.columns)];
        let steps = [tile.rows * self.pool.strides[0], tile.columns * self.pool.strides[1]];
        let pads = [self.pool.pads[0], self.pool.pads[1]];
        let sizes = [input.h, input.w];
        let shape = [groups.count(), self.blocks(), spans[0], spans[1]].map(|n| n as i64);
        let pad = Expr::Int(self.pool.pad_value.into(), DType::I8);
        let lane = 4 + self.lanes().len() - 1;
        self.b.compute("data", &[shape.to_vec(), self.own_lanes()].concat(), |i| {
            let ([image, row, column], mut conditions) = groups.tile(&i[0], &i[lane]);
            let mut place = |k: usize, tile: Expr| {
                let at = groups.position(k, tile, &i[2 + k], steps[k]);
                let count = (groups.along(k) - 1) * steps[k] + spans[k];
                let read = if omits { count.min(needed[k]) } else { count };
                if count > read {
                    conditions.push(at.clone().lt(Expr::int(read as i64)));
                }
                let (at, inside) = padded(&at, read, pads[k], sizes[k]);
                conditions.extend(inside);
                at
            };
            let (row, column) = (place(0, row), place(1, column));
            let element = x.at(&[&[image, i[1].clone(), row, column], &i[4..lane], &i[lane + 1..]].concat());
            within(conditions, element, pad)
        })
    }

    /// Whether the maximum with the last element of each window is the result, so that nothing is left to do.
    fn ends_with_maximum(&self) -> bool {
        let whole = matches!(self.pool.finish, PoolFinish::Clip { lo: -128, hi: 127 });
        whole && self.pool.reduce == Reduce::Max && self.pool.kernel != [1, 1]
    }

    /// Adds the windows reduced to 32-bit values, without their last element if that is part of the result.
    fn reduced(&mut self, data: &TensorRef) -> TensorRef {
        let (pool, output) = (self.pool, self.views[1]);
        let shape = match self.fill {
            Fill::Neighbors => data.shape.clone(),
            Fill::Tiles => {
                let [rows, columns] =
                    if self.is_in_groups() { [self.tile.rows, self.tile.columns] } else { [output.h, output.w] };
                [&data.shape[..2], &[rows as i64, columns as i64], &data.shape[4..]].concat()
            }
        };
        let taps = [("r", pool.kernel[0] as i64), ("s", pool.kernel[1] as i64)];
        let combiner = match pool.reduce {
            Reduce::Max => Combiner::Max,
            Reduce::Sum => Combiner::Sum,
        };
        let skips_last = self.ends_with_maximum();
        self.b.reduce(WINDOWS, DType::I32, &shape, &taps, combiner, |i, t| {
            let element = tap(pool, data, i, t);
            if !skips_last {
                return element;
            }
            let number = times(t[0].clone(), pool.kernel[1]) + t[1].clone();
            let last = (pool.kernel[0] * pool.kernel[1] - 1) as i64;
            number.lt(Expr::int(last)).select(element, combiner.identity(DType::I32))
        })
    }

    /// Adds the results, and the inputs with parameters. Returns the instruction that computes them too.
    fn finished(&mut self, data: &TensorRef, reduced: &TensorRef) -> (TensorRef, &'static str) {
        let patterns = self.patterns();
        let skip = usize::from(self.is_in_groups());
        let shape = [vec![patterns.count() as i64; skip], reduced.shape.clone()].concat();
        let lanes = i64::from(self.config.block_out);
        let name = format!("{}result", self.prefix);
        match &self.pool.finish {
            PoolFinish::Clip { lo, hi } => {
                let clamped = |v: Expr| v.max(Expr::i32(*lo)).min(Expr::i32(*hi)).cast(DType::I8);
                if self.ends_with_maximum() {
                    let (pool, last) = (self.pool, self.pool.kernel.map(|size| Expr::int(size as i64 - 1)));
                    let result = self.b.compute(&name, &shape, |i| {
                        clamped(reduced.at(&i[skip..]).max(tap(pool, data, &i[skip..], &last)))
                    });
                    return (result, "max");
                }
                let instruction = if (*lo, *hi) == (-128, 127) { "move" } else { "clip" };
                (self.b.compute(&name, &shape, |i| clamped(reduced.at(&i[skip..]))), instruction)
            }
            PoolFinish::Requant(finish) => {
                let ratio = self.ratio() as i64;
                let tiles = self.blocks() as i64 * ratio;
                let parameters = Parameters::new(self.b, finish, [tiles, lanes], self.prefix);
                let result = self.b.compute(&name, &shape, |i| {
                    let block = i[1 + skip].clone();
                    let tile = if ratio == 1 { block } else { block * ratio + i[4 + skip].clone() };
                    parameters.apply(finish, reduced.at(&i[skip..]), &[tile, i[i.len() - 1].clone()])
                });
                self.params = parameters.steps(&name);
                self.copies = parameters.copies().to_vec();
                self.keeps_params = keeps_params(tiles as usize, self.config);
                self.inputs.extend(parameters.inputs);
                (result, "requant")
            }
            PoolFinish::Mean { .. } | PoolFinish::Count(_) => {
                let divisors = Divisors::of(self.pool, self.views[0], self.views[1]);
                let finish = divisors.finish(self.config);
                let parameters = Parameters::new(self.b, &finish, [divisors.counts.len() as i64, lanes], self.prefix);
                let result = self.b.compute(&name, &shape, |i| {
                    let entry = match self.fill {
                        Fill::Neighbors => Expr::int(0),
                        Fill::Tiles if skip == 1 => divisors.entry_of_pattern(&patterns, &i[0], [&i[3], &i[4]]),
                        Fill::Tiles => divisors.entry(&i[2], &i[3]),
                    };
                    parameters.apply(&finish, reduced.at(&i[skip..]), &[entry, i[i.len() - 1].clone()])
                });
                self.params = parameters.steps(&name);
                self.copies = parameters.copies().to_vec();
                self.inputs.extend(parameters.inputs);
                (result, "requant")
            }
        }
    }

    /// Adds the tensor that is stored, if the results are not in its form.
    fn output(&mut self, result: &TensorRef, runs: Option<&Runs>) -> TensorRef {
        if let Some(runs) = runs {
            return runs.output(self.b, result);
        }
        if !self.is_in_groups() {
            return result.clone();
        }
        let (output, groups, patterns) = (self.views[1], self.groups(), self.patterns());
        let shape = [output.n, self.blocks(), output.h, output.w].map(|n| n as i64);
        self.b.compute("output", &[shape.to_vec(), self.lanes()].concat(), |i| {
            let [row, column] = groups.tile_of([&i[2], &i[3]]);
            let pattern = patterns.of_tile([&row, &column]);
            let GroupPlace { group, pixel, lane } = groups.place(&i[0], [&i[2], &i[3]]);
            let (parts, channel) = i[4..].split_at(i.len() - 5);
            result.at(&[&[pattern, group, i[1].clone()], &pixel[..], parts, &[lane], channel].concat())
        })
    }
}

/// Returns an element of a window, widened.
fn tap(pool: &Pool, data: &TensorRef, i: &[Expr], t: &[Expr]) -> Expr {
    let at = |k: usize| i[2 + k].clone() * pool.strides[k] as i64 + t[k].clone() * pool.dilations[k] as i64;
    data.at(&[&i[..2], &[at(0), at(1)], &i[4..]].concat()).cast(DType::I32)
}

/// Returns a position in a padded dimension of `count` elements as one in its tensor, and the conditions for it to be
/// inside.
fn padded(at: &Expr, count: usize, before: usize, size: usize) -> (Expr, Vec<Expr>) {
    let [count, before, size] = [count, before, size].map(|n| n as i64);
    (less(at, before), inside(at, count, before, size))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::codegen::accel::kept::OnChip;
    use crate::codegen::accel::operator::AccelOperator;
    use crate::codegen::accel::padded_range::reach;
    use crate::codegen::accel::scheduled::tests::{
        finish as requantization, {check_layer, kept},
    };
    use crate::graph::ValueId;
    use crate::graph::op::Layout;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    fn finish(rng: &mut StdRng, channels: usize) -> PoolFinish {
        match rng.random_range(0..4) {
            0 => PoolFinish::Clip { lo: -128, hi: 127 },
            1 => PoolFinish::Clip { lo: -100, hi: 90 },
            2 => PoolFinish::Requant(requantization(channels, -2)),
            _ => PoolFinish::Mean { count_pads: rng.random(), lo: -128, hi: 127, unsigned: rng.random() },
        }
    }

    /// A random pooling of an image, and the view of its results; `None` if no window fits.
    pub fn random_pool(rng: &mut StdRng, input: View) -> Option<(Pool, View)> {
        let kernel = match rng.random_range(0..5) {
            0 => [input.h, input.w],
            1 => [1, 1],
            _ => [rng.random_range(1..=3), rng.random_range(1..=3)],
        };
        let strides = [rng.random_range(1..=3), rng.random_range(1..=3)];
        let dilations = [rng.random_range(1..=2), rng.random_range(1..=2)];
        let most = kernel.map(|k| k.div_ceil(2));
        let pads = [0, 1, 0, 1].map(|k| rng.random_range(0..most[k]));
        let out = |k: usize, size: usize| {
            let room = (size + pads[k] + pads[k + 2]).checked_sub(reach(kernel[k], dilations[k]))?;
            Some(room / strides[k] + 1)
        };
        let output = input.resized(input.c, out(0, input.h)?, out(1, input.w)?);
        let finish = finish(rng, input.c);
        let is_max = matches!(finish, PoolFinish::Clip { .. });
        let (reduce, pad_value) = if is_max { (Reduce::Max, -128) } else { (Reduce::Sum, 0) };
        Some((Pool { kernel, strides, pads, dilations, reduce, pad_value, finish }, output))
    }

    /// A random pooling with its layer; `None` if no window fits.
    fn pool(rng: &mut StdRng) -> Option<(Pool, Layer)> {
        let input = View::new(
            Layout::Nhwc,
            rng.random_range(1..=3),
            rng.random_range(1..40),
            rng.random_range(1..12),
            rng.random_range(1..12),
        );
        let (pool, output) = random_pool(rng, input)?;
        let layer = Layer {
            nodes: Vec::new(),
            name: "pool".into(),
            inputs: vec![(ValueId(0), input)],
            output: (ValueId(1), output),
            on_chip: OnChip::default(),
            given: None,
        };
        Some((pool, layer))
    }

    /// Checks every third plan. Returns how many.
    fn check(pool: &Pool, layer: &Layer, config: &HwConfig) -> usize {
        let plans = pool.plans(layer, config, 7);
        for tile in plans.iter().step_by(3) {
            check_layer(config, &schedule(pool, *tile, layer, config).unwrap());
        }
        plans.len().div_ceil(3)
    }

    #[test]
    fn schedules_compute_the_pooling() {
        let mut rng = StdRng::seed_from_u64(1);
        for name in ["1x16x16", "1x4x4", "1x8x16", "1x4x2", "4x16x16", "1x4x4-ecp5"] {
            let config = HwConfig::load(name).unwrap();
            let mut checked = 0;
            while checked < 60 {
                checked += pool(&mut rng).map_or(0, |(pool, layer)| check(&pool, &layer, &config));
            }
        }
    }

    #[test]
    fn kept_tensors_are_buffers_that_hold_all_elements() {
        let config = HwConfig::load("1x16x16").unwrap();
        let mut rng = StdRng::seed_from_u64(2);
        let mut checked = 0;
        while checked < 60 {
            let Some((pool, mut layer)) = pool(&mut rng).filter(|(_, layer)| layer.input_view().n == 1) else {
                continue;
            };
            let kept = |view: View, border: u32, entry: u32| kept(view, border, entry, pool.pad_value);
            let (from, to) = (kept(layer.input_view(), 6, 0), kept(layer.output_view(), 0, 1500));
            if from.entries() > 1400 {
                continue;
            }
            let [input, output, stored] = [rng.random(), rng.random(), rng.random()];
            layer.on_chip = OnChip {
                input: Some(from).filter(|_| input),
                output: Some(to).filter(|_| output),
                stored: output && stored,
                room: Some((from.entries(), 1500 - from.entries())),
            };
            checked += check(&pool, &layer, &config);
        }
    }
}
