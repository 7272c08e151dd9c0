//! Requantization of 32-bit sums, with parameters per channel.

use tilewright_hw::isa::VecOp;
use tilewright_hw::num::Rounding;

/// A requantization. Vectors have one element per channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// Added to each sum.
    pub bias: Vec<i32>,
    /// Fixed-point factors.
    pub multiplier: Vec<i32>,
    /// Shifts; their sign follows the convention of `mode`.
    pub shift: Vec<i8>,
    /// Added after scaling.
    pub zero_point: i32,
    /// Lower bound of the results.
    pub lo: i32,
    /// Upper bound of the results.
    pub hi: i32,
    /// Rounding.
    pub mode: Rounding,
}

/// A second requantization of the same sums, with its own biases and factors.
///
/// The result is the maximum or the minimum of both requantizations. LeakyReLU, PReLU and Abs use this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slope {
    /// Added to each sum.
    pub bias: Vec<i32>,
    /// Fixed-point factors.
    pub multiplier: Vec<i32>,
    /// Shifts; their sign follows the convention of `mode`.
    pub shift: Vec<i8>,
    /// Rounding.
    pub mode: Rounding,
    /// `max` or `min`.
    pub op: VecOp,
}

impl Slope {
    /// Returns this requantization with the zero point and the bounds of the first one.
    pub fn finish(&self, first: &Finish) -> Finish {
        let (bias, multiplier, shift) = (self.bias.clone(), self.multiplier.clone(), self.shift.clone());
        Finish { bias, multiplier, shift, mode: self.mode, ..first.clone() }
    }
}
