//! Emits convolutions and other products with weights, tile by tile.

mod loads;
mod nests;

use super::op::Conv;
use super::rest::{Rest, pack, stored, stored_zero_point};
use super::sizes::{Sizes, column_span, row_span};
use super::tail::{Tail, TailResults};
use super::tiles::ConvTile;
use crate::codegen::accel::batch::{Group, fill};
use crate::codegen::accel::emit::{Emit, LayerTensor};
use crate::codegen::accel::finish::Slope;
use crate::codegen::accel::kept::OnChip;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::parts::cut;
use crate::codegen::accel::requant::{RequantTile, requant_entries, requant_params};
use crate::codegen::accel::target::{PendingBorder, Target};
use std::ops::Range;
use tilewright_driver::{Dim, DriverError, Nest, Role};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{PARAM_ROWS, VecDst, VecSrc, Vector};

/// A product while it is emitted.
struct ConvEmission<'a> {
    conv: &'a Conv,
    name: &'a str,
    tile: ConvTile,
    sizes: Sizes,
    input: LayerTensor,
    output: LayerTensor,
    on_chip: OnChip,
    /// Offset of the weights in the constants.
    weights: u64,
    /// Zero point that the array subtracts from every weight.
    zero_point: i8,
    /// Weights beyond 8 bits.
    rest: Rest,
    /// Offset of the weights beyond 8 bits in the constants.
    rest_weights: u64,
    /// For each group of output blocks, the offset of its parameters in the constants.
    params: Vec<(Range<usize>, u64)>,
    /// Fused element-wise operators.
    tail: Tail<'a>,
}

/// Tiles of output that are computed at the same time.
struct ConvStep {
    blocks: Range<usize>,
    pixels: Group,
    /// Rows and columns of the largest window, padding included.
    window: [usize; 2],
}

/// Entries of param with a step's parameters.
#[derive(Clone, Copy)]
struct StepParams {
    descriptor: u32,
    /// Requantization of the step's first output tile.
    finish: u32,
    /// Second requantization of the step's first output tile, if there is one.
    slope: u32,
}

/// Emits a product.
///
/// # Errors
/// The driver refuses an instruction or a constant.
pub fn emit(e: &mut Emit, layer: &Layer, conv: &Conv, tile: ConvTile) -> Result<(), DriverError> {
    let input = LayerTensor { place: e.input(layer)?, view: layer.input_view() };
    let output = LayerTensor { place: e.output(layer)?, view: layer.output_view() };
    let product = Product {
        name: &layer.name,
        on_chip: layer.on_chip,
        conv,
        tile,
        input,
        output,
        tail: Tail::new(e, layer, conv)?,
    };
    product.emit(e)
}

/// A product to emit.
pub struct Product<'a> {
    /// Name of the layer, for its constants.
    pub name: &'a str,
    pub on_chip: OnChip,
    pub conv: &'a Conv,
    pub tile: ConvTile,
    pub input: LayerTensor,
    pub output: LayerTensor,
    pub tail: Tail<'a>,
}

impl Product<'_> {
    /// Emits the product.
    ///
    /// # Errors
    /// The driver refuses an instruction or a constant.
    pub fn emit(self, e: &mut Emit) -> Result<(), DriverError> {
        let Product { name, on_chip, conv, tile, input, output, tail } = self;
        let pointwise = conv.is_pointwise();
        let (fill, [from, to]) = fill(pointwise, [input.view, output.view], e.config);
        let (input, output) = (LayerTensor { view: from, ..input }, LayerTensor { view: to, ..output });
        let sizes = Sizes::new(conv, from, to, e.config);
        let rest = Rest::new(conv, &sizes, from, e.config);
        let mut emission = ConvEmission {
            conv,
            name,
            tile,
            sizes,
            input,
            output,
            on_chip,
            weights: 0,
            zero_point: 0,
            rest,
            rest_weights: 0,
            params: Vec::new(),
            tail,
        };
        emission.constants(e);
        let blocks = cut(emission.sizes.out_blocks, tile.out_blocks);
        let pixels = Group::all(fill, to, [tile.rows, tile.columns], e.config);
        let step = |b: &Range<usize>, p: &Group| {
            let [rows, columns] = p.size;
            let rows = row_span(conv, 0, rows, from).0.padded();
            let columns = column_span(conv, 0, columns, from).padded();
            let window = on_chip.input.map_or([rows, columns], |kept| kept.size().map(|n| n as usize));
            ConvStep { blocks: b.clone(), pixels: p.clone(), window }
        };
        let steps: Vec<ConvStep> = if tile.pixels_inside {
            blocks.iter().flat_map(|b| pixels.iter().map(move |p| step(b, p))).collect()
        } else {
            pixels.iter().flat_map(|p| blocks.iter().map(move |b| step(b, p))).collect()
        };
        let mut border = PendingBorder::of(&on_chip);
        border.early(e, name)?;
        steps.iter().try_for_each(|s| emission.step(e, s, &mut border))
    }
}

/// Requantizes sums by a slope in place, because nothing else reads them afterwards.
///
/// Returns the instruction that combines these results with the others, which are in out. `acc` and `param` are the
/// first entries of the sums and of the slope's parameters.
fn below(
    e: &mut Emit,
    slope: &Slope,
    work: RequantTile,
    requant: Vector,
    [acc, param]: [u32; 2],
) -> Result<Vector, DriverError> {
    let nest = e.nest(&RequantTile { mode: slope.mode, ..work })?;
    let below = Vector { mode: slope.mode, dst: VecDst::Acc, ..requant };
    e.b.vector_nest(below, &Nest { at: [acc, acc, param], ..nest })?;
    Ok(Vector { op: slope.op, dst: VecDst::Out, a: VecSrc::Out, b: VecSrc::Acc, ..Vector::default() })
}

impl ConvEmission<'_> {
    /// Number of param entries for the descriptor and the requantizations of some blocks.
    fn param_entries(&self, config: &HwConfig, blocks: usize) -> u32 {
        let each = if self.conv.slope.is_some() { 2 } else { 1 };
        config.descriptor_entries() + (each * blocks * self.sizes.out_ratio) as u32
    }

    fn taps(&self) -> usize {
        self.conv.taps()
    }

    fn constants(&mut self, e: &mut Emit) {
        let (config, conv) = (e.config, self.conv);
        let zero_point = stored_zero_point(conv, config);
        self.zero_point = zero_point;
        let entries = self.sizes.out_blocks * self.sizes.out_ratio * self.sizes.in_tiles * self.taps();
        let bytes = e.values(entries * config.entry_bytes(Mem::Wgt) as usize, || {
            let packed = pack(conv, &stored(conv, config), zero_point, &self.sizes, self.input.view, config);
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

    fn step(&self, e: &mut Emit, s: &ConvStep, border: &mut PendingBorder) -> Result<(), DriverError> {
        let param = self.load_params(e, s)?;
        let pixels: usize = s.pixels.size.iter().product();
        let entries = (s.blocks.len() * self.sizes.out_ratio * pixels) as u32;
        let acc = e.acc.take(entries);
        let passes = if self.conv.groups > 1 {
            let (first, count) = self.sizes.blocks_for(self.conv, s.blocks.clone(), self.input.view, e.config);
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
        let size = s.pixels.size.map(|n| n as u32);
        // Kept results go directly to inp. If they are also stored, they go to out first.
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
        let (work, requant) = self.requant(s, param.descriptor);
        let requant = Vector { dst: target.dst, ..requant };
        let nest = e.nest(&work)?;
        e.b.vector_nest(requant, &target.results(Nest { at: [out, acc, param.finish], ..nest }, blocks, size))?;
        if let Some(slope) = slope {
            let to = last.unwrap_or(Target::out(out, size, self.sizes.out_ratio as u32));
            let choice = Vector { dst: to.dst, ..below(e, slope, work, requant, [acc, param.slope])? };
            let dims = vec![Dim::new(entries, [1, 1, 1])];
            let nest = Nest { at: [out, out, acc], body: vec![[0; 3]], dims };
            e.b.vector_nest(choice, &to.results(nest, blocks, size))?;
        }
        border.late(e, self.name, acc)?;
        self.tail.apply(e, &s.pixels, &s.blocks, TailResults { out, entries, target: direct })?;
        if let Some(kept) = kept.filter(|_| self.on_chip.stored) {
            kept.fill(e, out, blocks, size)?;
        }
        let LayerTensor { place: Some(place), view } = self.output else { return Ok(()) };
        s.pixels.store(e, place, view, &s.blocks, out, |_| true)
    }

    /// Returns a step's requantization and its instruction, which writes to out.
    fn requant(&self, s: &ConvStep, descriptor: u32) -> (RequantTile, Vector) {
        let pixels = s.pixels.size.iter().product::<usize>() as u32;
        let work = RequantTile::new(&self.conv.finish, s.blocks.len() as u32, self.sizes.out_ratio as u32, pixels);
        (work, work.instruction(VecDst::Out, descriptor))
    }

    /// Input tiles of a pass.
    fn pass_tiles(&self, in_blocks: &Range<usize>) -> Range<usize> {
        if self.conv.groups > 1 {
            return 0..self.sizes.in_tiles;
        }
        let ratio = self.sizes.in_ratio;
        in_blocks.start * ratio..(in_blocks.end * ratio).min(self.sizes.in_tiles)
    }
}

/// Returns the micro-ops that accumulate: all of them, except the first one of the first pass, which overwrites.
fn tail(nest: &Nest, first_pass: bool) -> Nest {
    Nest { body: nest.body[usize::from(first_pass)..].to_vec(), ..nest.clone() }
}
