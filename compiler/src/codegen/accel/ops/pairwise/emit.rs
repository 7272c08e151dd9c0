//! Emits operators of two tensors, piece by piece.

use super::op::{Other, Pairwise};
use super::tile::PairwiseTile;
use crate::codegen::accel::emit::{DeviceTensor, Emit};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::pieces::{operand_banks, piece_places, store_piece};
use crate::tir::Scope;
use tilewright_driver::{DriverError, Nest, RegionId, Role};
use tilewright_hw::config::Mem;
use tilewright_hw::isa::{Load, VecDst, VecSrc, Vector};
use tilewright_hw::layout::pack_descriptor;

/// Where an operand or the result begins.
#[derive(Clone, Copy)]
struct Source {
    region: RegionId,
    offset: u64,
}

impl Source {
    fn of(place: &DeviceTensor) -> Source {
        Source { region: place.region, offset: place.offset }
    }
}

/// An operator of two tensors while it is emitted.
struct PairwiseEmission<'a> {
    pair: &'a Pairwise,
    /// Memory and bank of each operand.
    places: [(Mem, u32); 2],
    vector: Vector,
    /// Maximum number of entries of a piece.
    count: u32,
    a: Source,
    b: Source,
    output: Source,
    /// Number of pieces so far.
    pieces: u32,
}

/// Emits an operator of two tensors in pieces of at most `count` entries.
///
/// # Errors
/// The driver refuses an instruction or a constant.
pub fn emit(e: &mut Emit, layer: &Layer, pair: &Pairwise, count: u32) -> Result<(), DriverError> {
    let config = e.config;
    let output = e.place(layer.output)?;
    let a = Source::of(&e.place(layer.inputs[0])?);
    let (layout, view) = (output.layout, layer.output.1);
    let b = match &pair.b {
        Other::Tensor | Other::Channels => Source::of(&e.place(layer.inputs[1])?),
        Other::Constant(v) => {
            let image = view.c * view.h * view.w;
            let at = |n, c, y, x| v.get(n * image + view.index(c, y, x)).copied().unwrap_or(0);
            constant(e, &layer.name, &layout.pack(0, at))
        }
        Other::ConstantChannels(v) => {
            let mut bytes = v.clone();
            bytes.resize(layout.blocks() * layout.block, 0);
            constant(e, &layer.name, &bytes)
        }
    };
    let missing = || DriverError::Rule { index: 0, what: "the operands have no banks".into() };
    let places = operand_banks(config).ok_or_else(missing)?;
    let source = |mem: Mem| if mem == Mem::Inp { VecSrc::Inp } else { VecSrc::Out };
    let mut vector = Vector {
        op: pair.op.operation(),
        mode: pair.op.mode(),
        dst: VecDst::Out,
        a: source(places[0].0),
        b: source(places[1].0),
        ..Vector::default()
    };
    if let Some(d) = pair.op.descriptor() {
        let bytes = pack_descriptor(config, &d);
        let offset = e.b.constant(&format!("{} parameters", layer.name), Role::Params, &bytes);
        let row = e.param.take(9 * config.descriptor_entries());
        e.b.load_linear(Mem::Param, e.b.constants(), offset, row, bytes.len() as u64)?;
        vector.descriptor = row / 9;
    }
    let output = Source::of(&output);
    let mut emission = PairwiseEmission { pair, places, vector, count, a, b, output, pieces: 0 };
    match pair.b {
        Other::Tensor | Other::Constant(_) => emission.whole(e, layout.bytes() as u64),
        Other::Channels | Other::ConstantChannels(_) => {
            for image in 0..layout.n {
                for block in 0..layout.blocks() {
                    let first = image * layout.image_stride() + block * layout.block_stride();
                    emission.channels(e, first as u64, (layout.h * layout.w) as u32, block)?;
                }
            }
            Ok(())
        }
    }
}

fn constant(e: &mut Emit, name: &str, values: &[i8]) -> Source {
    let bytes: Vec<u8> = values.iter().map(|&v| v as u8).collect();
    let offset = e.b.constant(&format!("{name} operand"), Role::Weights, &bytes);
    Source { region: e.b.constants(), offset }
}

impl PairwiseEmission<'_> {
    fn scopes(&self) -> [Scope; 2] {
        self.places.map(|(mem, _)| if mem == Mem::Inp { Scope::Inp } else { Scope::Out })
    }

    /// Emits an operator whose second operand has as many elements as the first.
    fn whole(&mut self, e: &mut Emit, bytes: u64) -> Result<(), DriverError> {
        let entry_bytes = u64::from(e.config.entry_bytes(Mem::Out));
        let total = bytes.div_ceil(entry_bytes);
        for first in (0..total).step_by(self.count as usize) {
            let here = (total - first).min(self.count.into());
            let [a, b, result] = piece_places(e.config, self.places, self.pieces % 2, self.count);
            let at = first * entry_bytes;
            let bytes = (here * entry_bytes).min(bytes - at);
            e.b.load_linear(self.places[0].0, self.a.region, self.a.offset + at, a, bytes)?;
            e.b.load_linear(self.places[1].0, self.b.region, self.b.offset + at, b, bytes)?;
            let work =
                PairwiseTile { pixels: here as u32, ratio: 1, shared: false, op: self.pair.op, sources: self.scopes() };
            let nest = e.nest(&work)?;
            e.b.vector_nest(self.vector, &Nest { at: [result, a, b], ..nest })?;
            store_piece(e, self.output.region.0, self.output.offset + at, result, bytes)?;
            self.pieces += 1;
        }
        Ok(())
    }

    /// Emits an operator whose second operand has one value per channel: the pixels of one block, from byte `first` on.
    fn channels(&mut self, e: &mut Emit, first: u64, pixels: u32, block: usize) -> Result<(), DriverError> {
        let (block_bytes, entry_bytes) = (e.config.block(), e.config.entry_bytes(Mem::Out));
        // Either a pixel takes several entries, or an entry holds several pixels, which need as many copies of the
        // channels.
        let (ratio, copies) = ((block_bytes / entry_bytes).max(1), (entry_bytes / block_bytes).max(1));
        let period = u64::from(ratio * entry_bytes);
        let total = u64::from(pixels) * u64::from(block_bytes);
        let most = u64::from((self.count / ratio).max(1));
        let (mem, bank) = self.places[1];
        // Four places take turns, so that loading the next block's channels does not wait for this block.
        let shared = bank * (e.config.entries(mem) / e.config.banks(mem)) + block as u32 % 4 * ratio;
        let offset = self.b.offset + block as u64 * u64::from(block_bytes);
        if copies == 1 {
            e.b.load_linear(mem, self.b.region, offset, shared, block_bytes.into())?;
        } else {
            e.b.load(Load {
                mem,
                base: self.b.region.0,
                offset,
                entry: shared,
                row_bytes: block_bytes,
                rows: copies,
                pack: true,
                pack_row_stride: block_bytes,
                ..Load::default()
            })?;
        }
        for from in (0..total.div_ceil(period)).step_by(most as usize) {
            let here = (total.div_ceil(period) - from).min(most);
            let [a, _, result] = piece_places(e.config, self.places, self.pieces % 2, self.count);
            let (at, bytes) = (first + from * period, (here * period).min(total - from * period));
            e.b.load_linear(self.places[0].0, self.a.region, self.a.offset + at, a, bytes)?;
            let work =
                PairwiseTile { pixels: here as u32, ratio, shared: true, op: self.pair.op, sources: self.scopes() };
            let nest = e.nest(&work)?;
            e.b.vector_nest(self.vector, &Nest { at: [result, a, shared], ..nest })?;
            store_piece(e, self.output.region.0, self.output.offset + at, result, bytes)?;
            self.pieces += 1;
        }
        Ok(())
    }
}
