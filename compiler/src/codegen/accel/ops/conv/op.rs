//! What a convolution computes.

use crate::codegen::accel::finish::{Finish, Slope};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::ops::conv::epilogue::Epilogue;
use crate::codegen::accel::ops::pool::Pool;
use crate::codegen::accel::view::View;

/// Convolution, or a fully connected layer as one, with its requantization.
#[derive(Debug, Clone, PartialEq)]
pub struct Conv {
    /// Height and width of the window.
    pub kernel: [usize; 2],
    /// Steps.
    pub strides: [usize; 2],
    /// Top, left, bottom, right.
    pub pads: [usize; 4],
    /// Distances between taps.
    pub dilations: [usize; 2],
    /// Groups of channels.
    pub groups: usize,
    /// `[O, KH, KW, I/groups]`, less their zero point and held within 8 bits.
    pub weights: Vec<i8>,
    /// What the weights less their zero point have beyond; empty where there is nothing.
    pub rest: Vec<i16>,
    /// Zero point of the weights, which both parts have less; none where channels have their own.
    pub weight_zero_point: Option<i32>,
    /// Value of padding: the data's zero point.
    pub pad_value: i8,
    /// What becomes of the sums; the data's zero point is folded into the bias.
    pub finish: Finish,
    /// A second requantization, of which the maximum or minimum with the first is taken.
    pub slope: Option<Slope>,
    /// Operators on the results, fused into the tiles.
    pub epilogue: Vec<Epilogue>,
}

impl Conv {
    /// Input channels of a group.
    pub fn depth(&self) -> usize {
        self.weights.len() / (self.finish.bias.len() * self.taps()).max(1)
    }

    /// Taps of the window.
    pub fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Whether each pixel is computed from the same pixel of the data.
    pub fn is_pointwise(&self) -> bool {
        self.kernel == [1, 1] && self.strides == [1, 1] && self.pads == [0; 4]
    }

    /// The pooling that is fused into the tiles, with the view of the product's results.
    pub fn pooling(&self) -> Option<(&Pool, View)> {
        self.epilogue.iter().find_map(|step| match step {
            Epilogue::Pool { pool, of } => Some((&**pool, *of)),
            _ => None,
        })
    }

    /// View of the product's results: that of the layer's output, unless a pooling follows.
    pub fn results(&self, layer: &Layer) -> View {
        self.pooling().map_or(layer.output.1, |(_, of)| of)
    }
}
