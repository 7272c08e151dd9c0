//! What a convolution computes.

use crate::codegen::accel::finish::{Finish, Slope};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::ops::conv::epilogue::Epilogue;
use crate::codegen::accel::ops::pool::Pool;
use crate::codegen::accel::padded_range::{reach, span};
use crate::codegen::accel::view::View;

/// A convolution, or a fully connected layer in the form of one, with its requantization.
#[derive(Debug, Clone, PartialEq)]
pub struct Conv {
    /// Height and width of the kernel.
    pub kernel: [usize; 2],
    /// Strides in rows and columns.
    pub strides: [usize; 2],
    /// Padding: top, left, bottom, right.
    pub pads: [usize; 4],
    /// Distances between taps in rows and columns.
    pub dilations: [usize; 2],
    /// Groups of channels.
    pub groups: usize,
    /// Weights `[O, KH, KW, I/groups]` minus their zero point, clamped to 8 bits.
    pub weights: Vec<i8>,
    /// What the clamp to 8 bits cut off, in the same order; empty if all weights fit.
    pub rest: Vec<i16>,
    /// Zero point that was subtracted from the weights; `None` if channels have their own zero points.
    pub weight_zero_point: Option<i32>,
    /// Value of padding: the zero point of the data.
    pub pad_value: i8,
    /// Requantization of the sums. The zero point of the data is folded into the bias.
    pub finish: Finish,
    /// A second requantization; the result is the maximum or minimum of both.
    pub slope: Option<Slope>,
    /// Operators on the results, fused into the tiles.
    pub epilogue: Vec<Epilogue>,
}

impl Conv {
    /// Number of input channels per group.
    pub fn depth(&self) -> usize {
        self.weights.len() / (self.finish.bias.len() * self.taps()).max(1)
    }

    /// Number of taps of the kernel.
    pub fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Rows (`k` = 0) or columns that some neighboring outputs read, padding included.
    pub fn span(&self, k: usize, outputs: usize) -> usize {
        span(outputs, self.strides[k], reach(self.kernel[k], self.dilations[k]))
    }

    /// Whether each output pixel depends only on the input pixel at the same position.
    pub fn is_pointwise(&self) -> bool {
        self.kernel == [1, 1] && self.strides == [1, 1] && self.pads == [0; 4]
    }

    /// Returns the pooling that is fused into the tiles, with the view of the product's results.
    pub fn pooling(&self) -> Option<(&Pool, View)> {
        self.epilogue.iter().find_map(|step| match step {
            Epilogue::Pool { pool, of } => Some((&**pool, *of)),
            _ => None,
        })
    }

    /// View of the product's results: the view of the layer's output, unless a fused pooling follows.
    pub fn results(&self, layer: &Layer) -> View {
        self.pooling().map_or(layer.output.1, |(_, of)| of)
    }
}
