//! Weights beyond 8 bits as a second product, which adds to the same sums.
//!
//! Only some tiles of these weights are not 0. The tiles of output channels and of input channels that are computed
//! together have theirs one after the other in device memory, so that one load brings them. A list says where each tile is
//! among them. The second product has the terms of the first one, but only those that the list has.

use super::op::Conv;
use super::rest::Rest;
use super::sizes::Sizes;
use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::padded_range::within;
use crate::codegen::accel::parts::cut;
use crate::codegen::accel::tile_groups::times;
use crate::codegen::accel::view::View;
use crate::te::{Array, Builder, DType, Expr, TensorRef};
use tilewright_hw::config::{HwConfig, Mem};

/// The tensor of the tiles that are in wgt.
const FURTHER: &str = "further";

/// Tiles of weights beyond 8 bits of a product, or of those of phases, in groups that are loaded at once.
pub struct Further {
    /// Blocks of output channels of a group, and blocks of input channels.
    group: [usize; 2],
    /// Groups of output channels of a phase, and groups of input channels.
    groups: [usize; 2],
    /// Input tiles of an output tile, and rows and columns of the kernel.
    terms: [usize; 3],
    /// Tiles of each group.
    counts: Vec<i64>,
    /// The tile within its group for each output tile, input tile and tap; [`Further::most`] if there is none.
    places: Vec<i64>,
    /// The tiles.
    bytes: Vec<u8>,
    /// Input and output channels of a tile.
    channels: [i64; 2],
}

/// A term of the sums, over all loops.
pub struct Term<'t> {
    /// Number of the phase; `None` if there is one.
    pub phase: Option<Expr>,
    /// Block of the output, and number of the output tile among those of all phases.
    pub out: [&'t Expr; 2],
    /// Block and tile of the input, counted from the first of the output tile.
    pub input: [&'t Expr; 2],
    /// Row and column of the tap.
    pub tap: [&'t Expr; 2],
    /// Output channel and input channel of the tile.
    pub channels: [&'t Expr; 2],
}

impl Further {
    /// Returns the tiles of the products `convs`, which have the same sizes; `None` if there are none. `tile` blocks of
    /// output channels and of input channels are computed together.
    pub fn new(convs: &[Conv], sizes: &Sizes, input: View, tile: [usize; 2], config: &HwConfig) -> Option<Further> {
        let rests: Vec<Rest> = convs.iter().map(|conv| Rest::new(conv, sizes, input, config)).collect();
        let bytes: usize = rests.iter().map(|rest| rest.bytes.len()).sum();
        if bytes == 0 {
            return None;
        }
        let conv = convs.first()?;
        let in_blocks = if conv.groups == 1 { tile[1] } else { sizes.in_blocks };
        let grouped = Further::grouped(conv, &rests, sizes, [tile[0], in_blocks], config);
        // All groups together can exceed a memory that holds all tiles, because they have the same size.
        let weights = convs.len() * sizes.out_blocks * sizes.out_ratio * sizes.in_tiles * conv.taps();
        let fit = |tiles: usize| weights + tiles <= config.entries(Mem::Wgt) as usize;
        let one = convs.len() == 1 && !fit(grouped.entries()) && fit(bytes / config.entry_bytes(Mem::Wgt) as usize);
        Some(match one {
            true => Further::grouped(conv, &rests, sizes, [sizes.out_blocks, sizes.in_blocks], config),
            false => grouped,
        })
    }

    fn grouped(conv: &Conv, rests: &[Rest], sizes: &Sizes, group: [usize; 2], config: &HwConfig) -> Further {
        let (taps, size) = (conv.taps(), config.entry_bytes(Mem::Wgt) as usize);
        let out_tiles = sizes.out_blocks * sizes.out_ratio;
        let outs = cut(out_tiles, group[0] * sizes.out_ratio);
        let ins = cut(sizes.in_tiles, group[1] * sizes.in_ratio);
        let (mut counts, mut bytes) = (Vec::new(), Vec::new());
        let mut places = vec![None; rests.len() * out_tiles * sizes.in_tiles * taps];
        for (phase, rest) in rests.iter().enumerate() {
            for (out, tiles) in outs.iter().flat_map(|out| ins.iter().map(move |tiles| (out, tiles))) {
                let mut count = 0;
                for t in out.clone() {
                    let first = rest.tiles(t, tiles).start;
                    for (number, (tile, tap)) in (first..).zip(rest.places(t, tiles)) {
                        let at = ((phase * out_tiles + t) * sizes.in_tiles + tiles.start + tile) * taps + tap;
                        places[at] = Some(count);
                        count += 1;
                        bytes.extend_from_slice(&rest.bytes[number * size..][..size]);
                    }
                }
                counts.push(count);
            }
        }
        let most = counts.iter().copied().fold(0, i64::max);
        Further {
            group,
            groups: [outs.len(), ins.len()],
            terms: [sizes.in_tiles, conv.kernel[0], conv.kernel[1]],
            counts,
            places: places.into_iter().map(|place| place.unwrap_or(most)).collect(),
            bytes,
            channels: [config.block_in, config.block_out].map(i64::from),
        }
    }

    /// The most tiles of a group.
    pub fn most(&self) -> usize {
        self.counts.iter().fold(0, |most, count| most.max(*count as usize))
    }

    /// Entries of all groups, which have the same size in wgt.
    pub fn entries(&self) -> usize {
        self.counts.len() * self.most()
    }

    /// Whether all groups have the same number of tiles.
    pub fn is_even(&self) -> bool {
        self.counts.iter().all(|count| *count == self.counts[0])
    }

    /// Adds the tiles to an expression. Returns those in wgt, and the value of the input in device memory.
    pub fn tensors(&self, b: &mut Builder, prefix: &str, constants: Constants) -> (TensorRef, Array) {
        let [bi, bo] = self.channels;
        let shape = [self.bytes.len() as i64 / (bi * bo), bo, bi];
        let value = match constants {
            Constants::Given => Array::of_bytes(&shape, &self.bytes.iter().map(|&w| w as i8).collect::<Vec<_>>()),
            Constants::Zeros => Array::zeros(DType::I8, &shape),
        };
        let all = b.input(&format!("{prefix}further_weights"), DType::I8, &shape);
        let firsts: Vec<i64> =
            self.counts.iter().scan(0, |next, count| Some(std::mem::replace(next, *next + count))).collect();
        let groups = [self.counts.len() / self.groups[1], self.groups[1]].map(|n| n as i64);
        let tensor =
            b.compute(&format!("{prefix}{FURTHER}"), &[groups[0], groups[1], self.most() as i64, bo, bi], |i| {
                let group = self.group_number(i[0].clone(), i[1].clone());
                let first = by_number(&firsts, &group);
                let element = all.at(&[first + i[2].clone(), i[3].clone(), i[4].clone()]);
                let exists = (!self.is_even()).then(|| i[2].clone().lt(by_number(&self.counts, &group)));
                within(exists.into_iter().collect(), element, Expr::Int(0, DType::I8))
            });
        (tensor, value)
    }

    /// Returns the weight of a term, and the condition for it to count; `None` if it always does.
    pub fn weight(&self, further: &TensorRef, term: &Term) -> (Expr, Option<Expr>) {
        let part = |block: &Expr, k: usize, count: usize| match (count, self.group[k]) {
            (1, _) => Expr::int(0),
            (_, 1) => block.clone(),
            (_, size) => block.clone() / Expr::int(size as i64),
        };
        let own = part(term.out[0], 0, self.groups[0]);
        let out = match &term.phase {
            Some(phase) => times(phase.clone(), self.groups[0]) + own,
            None => own,
        };
        let pass = part(term.input[0], 1, self.groups[1]);
        let [tiles, rows, columns] = self.terms;
        let number = times(term.out[1].clone(), tiles) + term.input[1].clone();
        let number = times(times(number, rows) + term.tap[0].clone(), columns) + term.tap[1].clone();
        let place = by_number(&self.places, &number);
        let condition = self.exists(&place, &self.group_number(out.clone(), pass.clone()));
        (further.at(&[out, pass, place, term.channels[0].clone(), term.channels[1].clone()]), condition)
    }

    fn group_number(&self, out: Expr, pass: Expr) -> Expr {
        times(out, self.groups[1]) + pass
    }

    /// Returns the condition for a group to have a tile; `None` if each has all tiles.
    fn exists(&self, tile: &Expr, group: &Expr) -> Option<Expr> {
        let all = self.is_even() && self.places.iter().all(|place| *place < self.counts[0]);
        (!all).then(|| tile.clone().lt(by_number(&self.counts, group)))
    }
}

/// Returns the number of a list at an index.
fn by_number(list: &[i64], at: &Expr) -> Expr {
    match list.windows(2).all(|pair| pair[0] == pair[1]) {
        true => Expr::int(list.first().copied().unwrap_or(0)),
        false => Expr::pick(list, at.clone()),
    }
}
