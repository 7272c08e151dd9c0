//! Requantization of a tile's sums on the vector unit: the tensor expression, and the parameters in the form for loads.

use super::border::{Border, computed};
use super::emit::TileWork;
use super::finish::Finish;
use super::scheduled::LayerInput;
use super::scheduled::intrinsics::{Entry, requant_intrinsic};
use crate::te::{Array, Builder, DType, Expr, Func, TensorRef};
use crate::tir::{Scope, TirError};
use std::ops::Range;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{Descriptor, PARAM_ROWS, VecDst, VecOp, VecSrc, Vector};
use tilewright_hw::layout::{pack_descriptor, pack_params};
use tilewright_hw::num::Rounding;
use tilewright_tensor::mapping::mapped::{MapError, Mapped};

/// The sizes of a tile of accumulators, and how they are requantized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequantTile {
    /// Blocks of channels.
    pub blocks: u32,
    /// Entries per pixel of a block. Each has its own parameters.
    pub ratio: u32,
    /// Pixels.
    pub pixels: u32,
    /// Zero point, lower bound and upper bound of the results.
    pub bounds: [i32; 3],
    /// Rounding.
    pub mode: Rounding,
}

impl RequantTile {
    /// A tile of `blocks` blocks of `pixels` pixels with `ratio` entries each.
    pub fn new(finish: &Finish, blocks: u32, ratio: u32, pixels: u32) -> RequantTile {
        RequantTile { blocks, ratio, pixels, bounds: [finish.zero_point, finish.lo, finish.hi], mode: finish.mode }
    }

    /// Returns the instruction that requantizes the tile from acc to `dst`, with the descriptor at the index
    /// `descriptor` of param.
    pub fn instruction(&self, dst: VecDst, descriptor: u32) -> Vector {
        let (a, b) = (VecSrc::Acc, VecSrc::Param);
        Vector { op: VecOp::Requant, mode: self.mode, dst, a, b, descriptor, ..Vector::default() }
    }
}

/// Returns the requantization of a tile from acc to out. The micro-op's indices are entries of the result, the sums and
/// the parameters.
///
/// # Errors
/// None for a legal configuration.
fn requant(config: &HwConfig, t: &RequantTile) -> Result<Mapped, TirError> {
    let [n, bo] = [config.batch, config.block_out].map(i64::from);
    let (blocks, ratio) = (i64::from(t.blocks), i64::from(t.ratio));
    let mut b = Builder::new("requant");
    let shape = [blocks, i64::from(t.pixels), ratio, n, bo];
    let sums = b.input("sums", DType::I32, &shape);
    let [bias, multiplier, shift] =
        ["bias", "multiplier", "shift"].map(|name| b.input(name, DType::I32, &[blocks * ratio, bo]));
    let result = b.compute("result", &shape, |i| {
        let c = [i[0].clone() * ratio + i[2].clone(), i[4].clone()];
        scaled(t.mode, t.bounds, sums.at(i) + bias.at(&c), multiplier.at(&c), shift.at(&c)).cast(DType::I8)
    });
    Ok(Mapped {
        program: b.finish(&[result]),
        stage: "result",
        reads: vec![
            ("sums", Scope::Acc),
            ("bias", Scope::Param),
            ("multiplier", Scope::Param),
            ("shift", Scope::Param),
        ],
        result: Scope::Out,
        loops: [vec!["i0", "i2", "i1"], vec![], vec!["i3", "i4"]],
        intrinsic: requant_intrinsic(config, Entry::of_batch(config), t.mode, t.bounds, Scope::Out)?,
        operands: [&[4], &[0], &[1, 2, 3]],
    })
}

/// A requantization in a layer's expression.
pub struct Requantized {
    /// The results.
    pub result: TensorRef,
    /// What the further inputs of the expression are: biases, multipliers and shifts.
    pub inputs: [LayerInput; 3],
    /// Steps that copy them to param.
    pub steps: String,
    /// The blocks that copy them.
    pub copies: Vec<String>,
}

/// Whether param holds the parameters of `tiles` output tiles twice, so that all are loaded at once.
pub fn keeps_params(tiles: usize, config: &HwConfig) -> bool {
    let rows = PARAM_ROWS as usize * (config.descriptor_entries() as usize + tiles);
    2 * rows <= config.entries(Mem::Param) as usize
}

/// Biases, multipliers and shifts as inputs of a layer's expression.
pub struct Parameters {
    tensors: [TensorRef; 3],
    /// What they are.
    pub inputs: [LayerInput; 3],
}

impl Parameters {
    /// Adds the parameters of a requantization to an expression, for `tiles` output tiles of `lanes` channels. `prefix`
    /// distinguishes the names of several requantizations.
    pub fn new(b: &mut Builder, finish: &Finish, [tiles, lanes]: [i64; 2], prefix: &str) -> Parameters {
        let shape = [tiles, lanes];
        let tensors =
            ["bias", "multiplier", "shift"].map(|name| b.input(&format!("{prefix}{name}"), DType::I32, &shape));
        let words = |values: Vec<i32>| {
            let all = (0..(tiles * lanes) as usize).flat_map(|i| values.get(i).copied().unwrap_or(0).to_le_bytes());
            LayerInput::Constant(Array { dtype: DType::I32, shape: shape.to_vec(), bytes: all.collect() })
        };
        let shifts = finish.shift.iter().map(|&s| s.into()).collect();
        let inputs = [words(finish.bias.clone()), words(finish.multiplier.clone()), words(shifts)];
        Parameters { tensors, inputs }
    }

    /// Returns a requantized sum of a channel: its output tile, and its place in the tile.
    pub fn apply(&self, finish: &Finish, sum: Expr, channel: &[Expr; 2]) -> Expr {
        self.wide(finish, sum, channel).cast(DType::I8)
    }

    /// The same in 32 bits, as acc can hold it.
    pub fn wide(&self, finish: &Finish, sum: Expr, channel: &[Expr; 2]) -> Expr {
        let [bias, multiplier, shift] = &self.tensors;
        let bounds = [finish.zero_point, finish.lo, finish.hi];
        scaled(finish.mode, bounds, sum + bias.at(channel), multiplier.at(channel), shift.at(channel))
    }

    /// Returns the steps by which a block reads them from param.
    pub fn steps(&self, reader: &str) -> String {
        self.tensors.each_ref().map(|t| format!("cache_read {reader} {} param; ", t.name)).concat()
    }

    /// Returns the blocks that copy them to param.
    pub fn copies(&self) -> [String; 3] {
        self.tensors.each_ref().map(|t| format!("{}.param", t.name))
    }
}

/// Adds the requantization of sums to an expression, with padding around the images if there is a border. `tile` gives
/// the output tile, one of `tiles`, for indices of the sums; the last index is the channel within it.
pub fn requantized(
    b: &mut Builder,
    finish: &Finish,
    sums: &TensorRef,
    border: Option<&Border>,
    tiles: i64,
    tile: impl Fn(&[Expr]) -> Expr,
) -> Requantized {
    let lanes = sums.shape[sums.shape.len() - 1];
    let parameters = Parameters::new(b, finish, [tiles, lanes], "");
    let result = computed(b, border, "result", &sums.shape, |i| {
        parameters.apply(finish, sums.at(i), &[tile(i), i[i.len() - 1].clone()])
    });
    let (steps, copies) = (parameters.steps("result"), parameters.copies().to_vec());
    Requantized { result, inputs: parameters.inputs, steps, copies }
}

/// Returns a scaled sum with its zero point, clamped.
fn scaled(mode: Rounding, bounds: [i32; 3], sum: Expr, multiplier: Expr, shift: Expr) -> Expr {
    let scale = match mode {
        Rounding::Double => Func::ScaleDouble,
        Rounding::Single => Func::ScaleSingle,
    };
    let [zero, lo, hi] = bounds.map(Expr::i32);
    let scaled = Expr::call(scale, vec![sum, multiplier, shift]);
    Expr::call(Func::OffsetClamp, vec![scaled, zero, lo, hi])
}

impl TileWork for RequantTile {
    fn mapped(&self, config: &HwConfig) -> Result<Mapped, MapError> {
        Ok(requant(config, self)?)
    }
}

/// Returns the bytes of the descriptor and the requantization entries for a range of output tiles, as they are loaded.
pub fn requant_params(config: &HwConfig, finish: &Finish, tiles: Range<usize>) -> Vec<u8> {
    let descriptor =
        Descriptor { lo: finish.lo, hi: finish.hi, zero_point: finish.zero_point, ..Descriptor::default() };
    let mut bytes = pack_descriptor(config, &descriptor);
    bytes.extend(requant_entries(config, finish, tiles));
    bytes
}

/// Returns the bytes of the requantization entries for a range of output tiles.
pub fn requant_entries(config: &HwConfig, finish: &Finish, tiles: Range<usize>) -> Vec<u8> {
    let block = config.block_out as usize;
    let lanes = |i: usize| tiles.start * block + i;
    let take =
        |v: &[i32]| -> Vec<i32> { (0..tiles.len() * block).map(|i| v.get(lanes(i)).copied().unwrap_or(0)).collect() };
    let shift: Vec<i8> = (0..tiles.len() * block).map(|i| finish.shift.get(lanes(i)).copied().unwrap_or(0)).collect();
    pack_params(config, &take(&finish.bias), &take(&finish.multiplier), &shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_tensor::testing::check_nest as check;

    #[test]
    fn requantization_walks_sums_and_parameters() {
        let config = HwConfig { block_in: 2, block_out: 2, ..HwConfig::default() };
        for mode in [Rounding::Double, Rounding::Single] {
            let t = RequantTile { blocks: 3, ratio: 2, pixels: 5, bounds: [-3, -128, 100], mode };
            let dims = [(3, [10, 10, 2]), (2, [1, 1, 1]), (5, [2, 2, 0])];
            check(&requant(&config, &t).unwrap(), &[[0; 3]], &dims);
        }
    }
}
