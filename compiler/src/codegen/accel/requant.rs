//! Requantization of a tile's sums on the vector unit: the tensor expression, and the parameters in the form for loads.

use super::border::{Border, computed};
use super::finish::Finish;
use super::scheduled::LayerInput;
use crate::te::{Array, Builder, DType, Expr, Func, TensorRef};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::PARAM_ROWS;
use tilewright_hw::num::Rounding;

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
