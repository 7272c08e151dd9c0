//! Describes products of two activations.

use crate::codegen::accel::finish::Finish;

/// A product of two activations with its requantization: `[rows, depth]` times `[depth, columns]` for each image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatMul {
    /// Zero point of the first operand.
    pub a_zero_point: i32,
    /// Zero point of the second operand.
    pub b_zero_point: i32,
    /// Requantization of the sums.
    pub finish: Finish,
    /// Whether the accelerator wrote an operand, so that its channels past the depth are undefined.
    pub on_device: bool,
}
