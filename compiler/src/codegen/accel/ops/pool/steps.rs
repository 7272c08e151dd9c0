//! The schedule of a pooling's expression.

use super::op::{Pool, Reduce};
use super::plan::{PoolTile, source};
use crate::codegen::accel::batch::Fill;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::limits::{MOST_SLOTS, slots};
use crate::codegen::accel::tile_groups::{GroupLoops, TileGroups, TileLoops};
use crate::codegen::accel::view::View;
use crate::te::TensorRef;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::PARAM_ROWS;

/// What the schedule of a pooling depends on.
pub struct Steps<'a> {
    pub pool: &'a Pool,
    pub tile: PoolTile,
    pub config: &'a HwConfig,
    pub layer: &'a Layer,
    /// How batch rows are filled.
    pub fill: Fill,
    /// The groups of tiles whose pixels share entries, if any do.
    pub groups: Option<TileGroups>,
    /// The output as the tiles see it.
    pub view: View,
    /// Whether the data are a tensor of their own and no input.
    pub is_copy: bool,
    pub data: &'a TensorRef,
    /// The windows, reduced to 32-bit values.
    pub reduced: &'a TensorRef,
    pub result: &'a TensorRef,
    /// What is stored; the result itself if it has that form.
    pub output: &'a TensorRef,
    /// How often a tile's results are computed.
    pub patterns: usize,
    /// The instruction that computes the results.
    pub instruction: &'a str,
    /// Steps that copy parameters to param.
    pub params: &'a str,
    /// Blocks that copy parameters.
    pub copies: &'a [String],
    /// Whether all parameters fit param.
    pub keeps_params: bool,
}

/// The loops of the nest that stores results.
struct Loops {
    /// Steps that make them.
    steps: String,
    /// The loop over tiles of blocks.
    blocks: String,
    /// Loops over tiles, outermost first.
    tiles: Vec<String>,
}

/// Returns the steps.
pub fn steps(s: &Steps) -> String {
    let on_chip = &s.layer.on_chip;
    let (d, w, r) = (s.data_buffer(), &s.reduced.name, &s.result.name);
    let mut steps = if s.groups.is_some_and(|groups| groups.can_omit()) {
        format!("omit {}; ", s.data.name)
    } else {
        String::new()
    };
    steps += &match s.is_copy {
        true => format!("set_scope {d} {}; ", source(s.config).name()),
        false => format!("cache_read {w} {} {}; ", s.data.name, source(s.config).name()),
    };
    steps += &format!("set_scope {w} acc; {}", s.params);
    let results_in = if on_chip.hides_output() { Mem::Inp } else { Mem::Out }.name();
    steps += &match s.is_stored_as_computed() {
        true => format!("cache_write {r} {results_in}; "),
        false => format!("set_scope {r} {results_in}; "),
    };
    let loops = s.loops();
    let at = loops.tiles.last().map_or("", String::as_str);
    steps += &loops.steps;
    // A block that is moved to the start of a loop runs before those that were moved there earlier.
    // The first data are loaded before the parameters, which are needed later.
    steps += &format!("compute_at {r} {at}; compute_at {w} {at}; ");
    for copy in s.copies {
        steps += &match s.keeps_params {
            true => format!("compute_at {copy} {at}; "),
            false => format!("compute_at {copy} {}; ", loops.blocks),
        };
    }
    steps += &format!("compute_at {d} {at}; ");
    let keeps = on_chip.output.is_some() && on_chip.stored;
    if keeps {
        steps += &format!("keep {r}.write {at} inp; ");
    }
    for copy in s.copies.iter().filter(|_| !s.keeps_params) {
        steps += &format!("compact {copy}; slots {copy} {}; ", s.parameter_slots());
    }
    for (buffer, slots) in s.slots() {
        steps += &format!("compact {buffer}; slots {buffer} {slots}; ");
    }
    if on_chip.output.is_some() {
        steps += &format!("slots {r}.inp 1; ");
    }
    for l in &loops.tiles {
        steps += &format!("annotate {l} pipeline; ");
    }
    if s.groups.is_some() {
        // The rows of an entry are in different places of device memory.
        let lane = s.data.shape.len() - 2;
        let inner = (0..lane).map(|k| format!("{d}.i{k} ")).collect::<String>();
        steps += &format!("reorder {d}.i{lane} {inner}; ");
    }
    steps += &tensorized(s.pool, [s.reduced, s.result], s.instruction, s.config);
    if keeps {
        steps += &format!("tensorize {r}.keep.i{} move; ", entry_loop(s.result, s.config));
    }
    steps
}

/// Returns the number of the first loop of an entry.
fn entry_loop(t: &TensorRef, config: &HwConfig) -> usize {
    t.shape.len() - if config.batch > 1 { 2 } else { 1 }
}

/// Returns the steps that make instructions of the reduction of windows, and of the results.
pub fn tensorized(pool: &Pool, [reduced, result]: [&TensorRef; 2], instruction: &str, config: &HwConfig) -> String {
    let (w, r) = (&reduced.name, &result.name);
    let (entry, last) = (entry_loop(reduced, config), entry_loop(result, config));
    let around = (0..entry).map(|k| format!("{w}.i{k} ")).collect::<String>();
    let rows = if config.batch > 1 { format!("{w}.i{entry} ") } else { String::new() };
    let join = if pool.reduce == Reduce::Max { "max" } else { "add" };
    format!(
        "reorder {around}{w}.r {w}.s {rows}{w}.i{}; decompose_reduction {w} {w}.i0; tensorize {w}.i{entry} {join}; \
         tensorize {r}.i{last} {instruction}; ",
        reduced.shape.len() - 1
    )
}

impl Steps<'_> {
    /// The block that copies the data, and its buffer.
    fn data_buffer(&self) -> String {
        let name = &self.data.name;
        if self.is_copy { name.to_string() } else { format!("{name}.{}", source(self.config).name()) }
    }

    fn is_stored_as_computed(&self) -> bool {
        self.output.name == self.result.name
    }

    /// Returns the loops over tiles.
    fn loops(&self) -> Loops {
        let (tile, batch) = (self.tile, self.config.batch);
        let write = if self.is_stored_as_computed() { format!("{}.write", self.result.name) } else { "output".into() };
        let l = |name: &str| format!("{write}.{name}");
        let mut steps = format!("split {} {}; ", l("i1"), tile.blocks);
        if self.fill == Fill::Neighbors {
            let whole = if self.is_stored_as_computed() { "i2" } else { "i2.0" };
            if !self.is_stored_as_computed() {
                let lanes = self.config.block_out;
                steps += &format!("split {} {}; split {} {lanes}; ", l("i2"), batch * lanes, l("i2.1"));
            }
            let (entries, own) = (format!("{whole}.0"), format!("{whole}.1"));
            steps += &format!("split {} {}; ", l(whole), tile.columns);
            steps += &format!("reorder {} {} {} {} {}; ", l("i0"), l("i1.0"), l(&entries), l("i1.1"), l(&own));
            return Loops { steps, blocks: l("i1.0"), tiles: vec![l("i0"), l("i1.0"), l(&entries)] };
        }
        let blocks = l("i1.0");
        let Some(groups) = self.groups else {
            steps += &format!("split {} {}; split {} {}; ", l("i2"), tile.rows, l("i3"), tile.columns);
            let tiles = [l("i0"), blocks.clone(), l("i2.0"), l("i3.0")];
            steps += &format!("reorder {} {} {} {}; ", tiles.join(" "), l("i1.1"), l("i2.1"), l("i3.1"));
            return Loops { steps, blocks, tiles: tiles.to_vec() };
        };
        let TileLoops { steps: divided, outer, inner } = groups.loops(&write, ["i2", "i3"]);
        let inner = [vec![l("i1.1")], inner].concat().join(" ");
        let GroupLoops { steps: fused, groups: tiles, .. } = groups.grouped(&outer);
        steps += &format!("{divided}reorder {blocks} {} {inner}; {fused}", outer.join(" "));
        Loops { steps, blocks: blocks.clone(), tiles: [vec![blocks], tiles].concat() }
    }

    /// Returns the number of slots for the parameters of a tile's channels. They take half of param, so that those of the
    /// next layer can be loaded meanwhile.
    fn parameter_slots(&self) -> usize {
        let (config, blocks) = (self.config, self.view.layout(self.config).blocks());
        let each = self.tile.blocks * (config.block() / config.block_out) as usize;
        let room = (config.entries(Mem::Param) / PARAM_ROWS / 2).saturating_sub(config.descriptor_entries()) as usize;
        let tiles = self.view.n * blocks.div_ceil(self.tile.blocks);
        (room / each.max(1)).min(tiles).clamp(2, MOST_SLOTS)
    }

    /// Returns the buffers whose slots tiles use in turn, with the number of slots.
    fn slots(&self) -> Vec<(String, usize)> {
        let (config, on_chip, tile) = (self.config, &self.layer.on_chip, self.tile);
        let blocks = self.view.layout(config).blocks();
        let at_once = if self.groups.is_some() { config.batch as usize } else { 1 };
        let pixels = self.view.n * self.view.h.div_ceil(tile.rows) * self.view.w.div_ceil(tile.columns);
        let tiles = blocks.div_ceil(tile.blocks) * pixels.div_ceil(at_once);
        let ratio = (config.block() / config.block_out) as usize;
        let entries = tile.blocks * tile.rows * tile.columns * ratio;
        let data = tile.blocks * self.pool.span(0, tile.rows) * self.pool.span(1, tile.columns) * ratio;
        let results = entries * self.patterns;
        let room = |mem: Mem| match (mem, on_chip.room) {
            (Mem::Inp, Some((_, entries))) => entries as usize,
            _ => config.entries(mem) as usize,
        };
        let of = |entries: usize, mem: Mem| slots(room(mem), entries, tiles);
        // Data in out share it with the results.
        let from = source(config);
        let shared = if from == Mem::Out { data + results } else { 0 };
        let bank = (config.entries(Mem::Acc) / config.banks(Mem::Acc)) as usize;
        let mut found = vec![(self.reduced.name.to_string(), of(entries.next_multiple_of(bank), Mem::Acc))];
        if on_chip.input.is_none() {
            found.push((self.data_buffer(), of(shared.max(data), from)));
        }
        if !on_chip.hides_output() {
            let own = if self.is_stored_as_computed() { ".out" } else { "" };
            found.push((format!("{}{own}", self.result.name), of(shared.max(results), Mem::Out)));
        }
        found
    }
}
