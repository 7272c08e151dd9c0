//! How the data and the results of a product are in the entries of scratchpads.
//!
//! | entries | data and results |
//! |---|---|
//! | one batch row | `[images, blocks, rows, columns, (entries of a pixel,) channels]` |
//! | [`Fill::Neighbors`] | runs of bytes: `[images, blocks, entries, 1, batch, channels]` |
//! | [`Fill::Tiles`] | `[groups of tiles, blocks, rows, columns, (entries of a pixel,) batch, channels]` |
//!
//! The results of a transposed convolution have two more dimensions in front, the rows and columns of its [`Phases`].

use super::op::Conv;
use super::phases::Phases;
use super::sizes::skips_rows;
use super::tiles::ConvTile;
use super::windows::PooledWindows;
use crate::codegen::accel::batch::{Fill, entry_lanes, fill, memory_lanes};
use crate::codegen::accel::padded_range::{inside, less, within};
use crate::codegen::accel::runs::Runs;
use crate::codegen::accel::tile_groups::{GroupLoops, GroupPlace, TileGroups, TileLoops, times};
use crate::codegen::accel::view::View;
use crate::te::{Builder, DType, Expr, TensorRef};
use tilewright_hw::config::HwConfig;

/// The entries of a product's data and results.
#[derive(Debug, Clone)]
pub struct Frame {
    rows: Rows,
    /// The phases of a transposed convolution.
    pub phases: Option<Phases>,
    /// Input and output as the tiles see them; the output of one phase if there are several.
    pub views: [View; 2],
    /// Entries of a pixel of a block, in inp and in out.
    pub ratios: [usize; 2],
    /// Channels of an entry's row, in inp and in out.
    channels: [i64; 2],
    batch: i64,
}

/// What the batch rows of an entry have.
#[derive(Debug, Clone)]
enum Rows {
    /// There is one.
    One,
    /// Neighboring pixels of the input and of the output.
    Neighbors([Runs; 2]),
    /// Pixels of different tiles.
    Groups(Groups),
}

/// Groups of tiles of what is stored, and the product's results for them.
#[derive(Debug, Clone, Copy)]
struct Groups {
    tiles: TileGroups,
    /// Rows and columns of the product's results for a tile.
    size: [usize; 2],
    /// Rows and columns of the product's results from one tile to the next.
    step: [usize; 2],
}

/// The loops over a product's tiles.
pub struct Loops {
    /// Steps that make them.
    pub steps: String,
    /// The loop over tiles of blocks.
    pub blocks: String,
    /// Loops over tiles of pixels, outermost first.
    pub pixels: Vec<String>,
    /// Loops over phases, outermost first.
    pub phases: Vec<String>,
}

/// A second operand of an operator on the results.
pub struct Operand {
    /// The elements in the entries of the results.
    pub tensor: TensorRef,
    /// Whether this is a copy of the input, which is in a scratchpad.
    pub is_copy: bool,
}

impl Frame {
    /// The entries of a product in tiles of `size` rows and columns, which are those of a fused pooling's results if there
    /// is one.
    pub fn new(
        conv: &Conv,
        views: [View; 2],
        size: [usize; 2],
        pooling: Option<PooledWindows>,
        config: &HwConfig,
    ) -> Frame {
        let Some(windows) = pooling else { return Frame::filled(conv.is_pointwise(), views, size, config) };
        let mut frame = Frame::filled(false, views, size, config);
        if let Rows::Groups(groups) = &mut frame.rows {
            let step = [0, 1].map(|k| size[k] * windows.pool.strides[k]);
            let tiles = TileGroups::new(windows.results, size, config);
            *groups = Groups { tiles, size: windows.pixels(size), step };
        }
        frame
    }

    /// The entries of the phases of a transposed convolution.
    pub fn of_phases(phases: &Phases, views: [View; 2], size: [usize; 2], config: &HwConfig) -> Frame {
        Frame { phases: Some(phases.clone()), ..Frame::filled(false, views, size, config) }
    }

    fn filled(pointwise: bool, views: [View; 2], size: [usize; 2], config: &HwConfig) -> Frame {
        let runs = views.map(|view| Runs::of_blocks(&view.layout(config), config));
        let (fill, views) = fill(pointwise, views, config);
        let rows = match fill {
            _ if config.batch == 1 => Rows::One,
            Fill::Neighbors => Rows::Neighbors(runs),
            Fill::Tiles => Rows::Groups(Groups { tiles: TileGroups::new(views[1], size, config), size, step: size }),
        };
        Frame { rows, ..Frame::of_one_row(views, config) }
    }

    /// The entries of a configuration with one batch row.
    pub fn of_one_row(views: [View; 2], config: &HwConfig) -> Frame {
        let channels = [config.block_in, config.block_out];
        let ratios = channels.map(|n| (config.block() / n) as usize);
        let channels = channels.map(i64::from);
        Frame { rows: Rows::One, phases: None, views, ratios, channels, batch: config.batch.into() }
    }

    /// Number of tiles of pixels that follow each other. `output`: the results that are stored.
    pub fn pixel_tiles(&self, tile: &ConvTile, output: View) -> usize {
        match self.rows {
            Rows::Groups(groups) => groups.tiles.count(),
            _ => output.n * output.h.div_ceil(tile.rows) * output.w.div_ceil(tile.columns),
        }
    }

    /// See [`memory_lanes`].
    fn lanes(&self, of: usize) -> Vec<i64> {
        memory_lanes(self.ratios[of], self.channels[of])
    }

    /// See [`entry_lanes`].
    fn own_lanes(&self, of: usize) -> Vec<i64> {
        entry_lanes(self.ratios[of], self.channels[of], self.batch)
    }

    /// Shape of the data in inp, with that many blocks, rows and columns of an image.
    pub fn of_image(&self, [blocks, rows, columns]: [i64; 3]) -> Vec<i64> {
        [vec![self.views[0].n as i64, blocks, rows, columns], self.own_lanes(0)].concat()
    }

    /// Shape of the results.
    pub fn results(&self, blocks: i64) -> Vec<i64> {
        let View { n, h, w, .. } = self.views[1];
        let [first, rows, columns] = match &self.rows {
            Rows::One => [n, h, w],
            Rows::Neighbors(_) => [n, w, 1],
            Rows::Groups(Groups { tiles, size, .. }) => [tiles.count(), size[0], size[1]],
        };
        let phases = self.phases.iter().flat_map(|p| p.counts).map(|n| n as i64).collect();
        let outer = vec![first as i64, blocks, rows as i64, columns as i64];
        [phases, outer, self.own_lanes(1)].concat()
    }

    /// Number of products: one for each phase.
    pub fn products(&self) -> usize {
        self.phases.as_ref().map_or(1, Phases::count)
    }

    /// Divides indices of the results into those of the phase and those within it.
    pub fn split<'i>(&self, i: &'i [Expr]) -> (&'i [Expr], &'i [Expr]) {
        i.split_at(self.phase_dims())
    }

    /// Number of dimensions of the results in front of those of a product.
    fn phase_dims(&self) -> usize {
        if self.phases.is_some() { 2 } else { 0 }
    }

    /// The output tile of an element of the results. Those of the phases follow each other.
    pub fn out_tile(&self, i: &[Expr]) -> Expr {
        let (phase, within) = self.split(i);
        let tile = self.own_tile(within);
        let (ratio, channels) = (self.ratios[1], self.channels[1] as usize);
        let tiles = self.views[1].c.div_ceil(ratio * channels) * ratio;
        self.phases.iter().fold(tile, |tile, phases| times(phases.number(phase), tiles) + tile)
    }

    /// The output tile of an element of a phase's results.
    pub fn own_tile(&self, i: &[Expr]) -> Expr {
        match self.ratios[1] {
            1 => i[1].clone(),
            ratio => i[1].clone() * ratio as i64 + i[4].clone(),
        }
    }

    /// Returns the indices of a pixel's data, given those of the results, the block of channels, the entry of the pixel,
    /// row and column, and the channel.
    pub fn data_at(
        &self,
        i: &[Expr],
        [block, entry]: [Expr; 2],
        [row, column]: [Expr; 2],
        channel: &Expr,
    ) -> Vec<Expr> {
        let (_, i) = self.split(i);
        let mut at = vec![i[0].clone(), block, row, column];
        if self.ratios[0] > 1 {
            at.push(entry);
        }
        if self.batch > 1 {
            at.push(i[i.len() - 2].clone());
        }
        at.push(channel.clone());
        at
    }

    /// Number of the first loop over an entry.
    pub fn entry(&self, t: &TensorRef) -> usize {
        t.shape.len() - 1 - usize::from(self.batch > 1)
    }

    /// The loops of a block with the shape of the results: those over entries, and those over an entry.
    pub fn result_loops(&self, t: &TensorRef) -> [String; 2] {
        let list = |range: Vec<usize>| range.iter().map(|k| format!("{}.i{k}", t.name)).collect::<Vec<_>>().join(" ");
        let p = self.phase_dims();
        let within = if self.ratios[1] == 1 { vec![0, 1, 2, 3] } else { vec![0, 1, 4, 2, 3] };
        let outer = (0..p).chain(within.into_iter().map(|k| p + k)).collect();
        [list(outer), list((self.entry(t)..t.shape.len()).collect())]
    }

    /// The loops over the terms of a sum within a block of channels, except those over the channels of an entry.
    pub fn depth_loops(&self, sums: &str) -> String {
        let entries = if self.ratios[0] == 1 { String::new() } else { format!("{sums}.e ") };
        format!("{entries}{sums}.r {sums}.s")
    }

    /// Returns the steps that make a block with the shape of the results an instruction.
    pub fn instruction(&self, t: &TensorRef, instruction: &str) -> String {
        let order = match self.ratios[1] {
            1 => String::new(),
            _ => format!("reorder {}; ", self.result_loops(t)[0]),
        };
        format!("{order}tensorize {}.i{} {instruction}; ", t.name, self.entry(t))
    }

    /// Adds the data of neighboring pixels, or of groups of tiles; `None` if entries have one row.
    pub fn data(&self, b: &mut Builder, conv: &Conv) -> Option<TensorRef> {
        match &self.rows {
            Rows::One => None,
            Rows::Neighbors([runs, _]) => {
                let x = runs.input(b, "x");
                let copy = |b: &mut Builder| b.compute("data", &x.tensor.shape, |i| x.tensor.at(i));
                Some(if x.is_copy { x.tensor } else { copy(b) })
            }
            Rows::Groups(groups) => Some(self.data_of_groups(b, conv, groups)),
        }
    }

    /// Adds the input as it is in device memory, or a tensor of the same form.
    fn input(&self, b: &mut Builder, name: &str, of: usize) -> TensorRef {
        let view = self.views[of];
        let blocks = view.c.div_ceil(self.ratios[of] * self.channels[of] as usize);
        let outer = [view.n, blocks, view.h, view.w].map(|n| n as i64);
        b.input(name, DType::I8, &[outer.to_vec(), self.lanes(of)].concat())
    }

    /// Adds the data of groups of tiles, with padding.
    fn data_of_groups(&self, b: &mut Builder, conv: &Conv, groups: &Groups) -> TensorRef {
        let [input, output] = self.views;
        let x = self.input(b, "x", 0);
        let skips = skips_rows(conv);
        let Groups { tiles: groups, size: [rows, columns], step } = *groups;
        let spans = [if skips { rows } else { conv.span(0, rows) }, conv.span(1, columns)];
        let shape = [groups.count() as i64, x.shape[1], spans[0] as i64, spans[1] as i64];
        let shape = [&shape[..], &self.own_lanes(0)].concat();
        let pad = Expr::Int(conv.pad_value.into(), DType::I8);
        let omits = groups.can_omit();
        b.compute("data", &shape, |i| {
            let ([image, row, column], mut conditions) = groups.tile(&i[0], &i[i.len() - 2]);
            let mut place = |k: usize, tile: Expr, skips: bool| {
                let step = step[k] * if skips { 1 } else { conv.strides[k] };
                let at = groups.position(k, tile, &i[2 + k], step);
                let count = (groups.along(k) - 1) * step + spans[k];
                let outputs = [output.h, output.w][k];
                let needed = if skips { outputs } else { conv.span(k, outputs) };
                let read = if skips || omits { count.min(needed) } else { count };
                if count > read {
                    conditions.push(at.clone().lt(Expr::int(read as i64)));
                }
                let [before, size] = if skips { [0, needed] } else { [conv.pads[k], [input.h, input.w][k]] };
                conditions.extend(inside(&at, read as i64, before as i64, size as i64));
                less(&at, before as i64)
            };
            let (row, column) = (place(0, row, skips), place(1, column, false));
            let row = if skips { times(row, conv.strides[0]) } else { row };
            let element = x.at(&[vec![image, i[1].clone(), row, column], self.without_rows(&i[4..])].concat());
            within(conditions, element, pad.clone())
        })
    }

    /// Returns the indices of a pixel's lanes in device memory, given those in a scratchpad.
    fn without_rows(&self, lanes: &[Expr]) -> Vec<Expr> {
        [&lanes[..lanes.len() - 2], &lanes[lanes.len() - 1..]].concat()
    }

    /// Adds an operand with an element for each of the output.
    pub fn operand(&self, b: &mut Builder, results: &[i64]) -> Operand {
        match &self.rows {
            Rows::One => Operand { tensor: b.input("other", DType::I8, results), is_copy: false },
            Rows::Neighbors([_, runs]) => {
                let other = runs.input(b, "other");
                Operand { tensor: other.tensor, is_copy: other.is_copy }
            }
            Rows::Groups(Groups { tiles: groups, step, .. }) => {
                let other = self.input(b, "other", 1);
                let output = self.views[1];
                let tensor = b.compute(&format!("{}.tiles", other.name), results, |i| {
                    let ([image, row, column], mut conditions) = groups.tile(&i[0], &i[i.len() - 2]);
                    let mut place = |k: usize, tile: Expr, size: usize| {
                        let at = groups.position(k, tile, &i[2 + k], step[k]);
                        conditions.extend(inside(&at, (groups.along(k) * step[k]) as i64, 0, size as i64));
                        at
                    };
                    let (row, column) = (place(0, row, output.h), place(1, column, output.w));
                    let lanes = self.without_rows(&i[4..]);
                    let element = other.at(&[vec![image, i[1].clone(), row, column], lanes].concat());
                    within(conditions, element, Expr::Int(0, DType::I8))
                });
                Operand { tensor, is_copy: true }
            }
        }
    }

    /// Adds the tensor that is stored, if the results are not in its form.
    pub fn output(&self, b: &mut Builder, result: &TensorRef) -> TensorRef {
        if let Some(phases) = &self.phases {
            return self.output_of_phases(b, phases, result);
        }
        match &self.rows {
            Rows::One => result.clone(),
            Rows::Neighbors([_, runs]) => runs.output(b, result),
            Rows::Groups(groups) => {
                let output = self.views[1];
                let shape = [output.n as i64, result.shape[1], output.h as i64, output.w as i64];
                b.compute("output", &[shape.to_vec(), self.lanes(1)].concat(), |i| {
                    result.at(&in_groups(&groups.tiles, i, [&i[2], &i[3]]))
                })
            }
        }
    }

    /// Adds the output, whose pixels are those of the phases in turn.
    fn output_of_phases(&self, b: &mut Builder, phases: &Phases, result: &TensorRef) -> TensorRef {
        let View { n, h, w, .. } = phases.output;
        let shape = [n as i64, result.shape[3], h as i64, w as i64];
        b.compute("output", &[shape.to_vec(), self.lanes(1)].concat(), |i| {
            let counts = phases.counts.map(|n| Expr::int(n as i64));
            let [row, column] = [0, 1].map(|k| i[2 + k].clone() / counts[k].clone());
            let phase = [0, 1].map(|k| i[2 + k].clone() % counts[k].clone());
            let at = match &self.rows {
                Rows::Groups(groups) => in_groups(&groups.tiles, i, [&row, &column]),
                _ => [&[i[0].clone(), i[1].clone(), row, column], &i[4..]].concat(),
            };
            result.at(&[&phase[..], &at].concat())
        })
    }

    /// Returns the step that leaves out what no result needs: rows of a copy's entries without a tile, and pixels of tiles
    /// outside of the output.
    pub fn omit(&self, copy: &TensorRef) -> String {
        match &self.rows {
            Rows::Groups(groups) if groups.tiles.can_omit() => format!("omit {}; ", copy.name),
            _ => String::new(),
        }
    }

    /// Returns the steps that make each row of the entries of a copy a load of its own, if the rows are in different
    /// places of device memory.
    pub fn rows_apart(&self, copy: &TensorRef) -> String {
        let Rows::Groups(_) = self.rows else { return String::new() };
        let (name, lane) = (&copy.name, copy.shape.len() - 2);
        let inner: Vec<String> = (0..lane).map(|k| format!("{name}.i{k}")).collect();
        format!("reorder {name}.i{lane} {}; ", inner.join(" "))
    }

    /// Returns the loops of the block `write`, which stores the results. `is_stored`: it stores them as they are computed.
    pub fn loops(&self, write: &str, is_stored: bool, tile: &ConvTile) -> Loops {
        let l = |name: &str| format!("{write}.{name}");
        let mut steps = format!("split {} {}; ", l("i1"), tile.out_blocks);
        let blocks = l("i1.0");
        // The loops over a phase's rows and columns, and those over phases.
        let (mut own, mut phases) = (["i2".to_string(), "i3".to_string()], Vec::new());
        for (k, axis) in own.iter_mut().enumerate() {
            let count = self.phases.as_ref().map_or(1, |p| p.counts[k]);
            if count > 1 {
                steps += &format!("split {} {count}; ", l(axis));
                phases.push(l(&format!("{axis}.1")));
                *axis = format!("{axis}.0");
            }
        }
        let [row, column] = &own;
        let part = |axis: &str, k: usize| l(&format!("{axis}.{k}"));
        let (tiled, inner, fused) = match &self.rows {
            Rows::One => {
                steps += &format!("split {} {}; split {} {}; ", l(row), tile.rows, l(column), tile.columns);
                (vec![l("i0"), part(row, 0), part(column, 0)], vec![part(row, 1), part(column, 1)], None)
            }
            Rows::Neighbors(_) => {
                let entries = if is_stored { "i2" } else { "i2.0" };
                if !is_stored {
                    let channels = self.channels[1];
                    steps += &format!("split {} {}; split {} {channels}; ", l("i2"), self.batch * channels, l("i2.1"));
                }
                steps += &format!("split {} {}; ", l(entries), tile.columns);
                (vec![l("i0"), l(&format!("{entries}.0"))], vec![l(&format!("{entries}.1"))], None)
            }
            Rows::Groups(Groups { tiles: groups, .. }) => {
                let TileLoops { steps: divided, outer, inner } = groups.loops(write, [row, column]);
                steps += &divided;
                (outer.to_vec(), inner, Some(groups.grouped(&outer)))
            }
        };
        let all = match tile.pixels_inside {
            true => [phases.clone(), vec![blocks.clone()], tiled.clone()].concat(),
            false => [tiled.clone(), phases.clone(), vec![blocks.clone()]].concat(),
        };
        steps += &format!("reorder {} {} {}; ", all.join(" "), l("i1.1"), inner.join(" "));
        let pixels = match fused {
            None => tiled,
            Some(GroupLoops { steps: joined, groups, lanes }) => {
                steps += &joined;
                if !tile.pixels_inside {
                    steps += &format!("reorder {} {blocks} {lanes}; ", phases.join(" "));
                }
                groups
            }
        };
        Loops { steps, blocks, pixels, phases }
    }
}

/// Returns the indices of a pixel's result in groups of tiles, given the indices of the output.
fn in_groups(groups: &TileGroups, i: &[Expr], pixel: [&Expr; 2]) -> Vec<Expr> {
    let GroupPlace { group, pixel: [row, column], lane } = groups.place(&i[0], pixel);
    let (entry, channel) = i[4..].split_at(i.len() - 5);
    [&[group, i[1].clone(), row, column], entry, &[lane], channel].concat()
}
