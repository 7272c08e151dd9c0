//! Convolutions whose loads turn whole windows into channels.
//!
//! If the host writes the input and loads turn the columns of a window into channels ([`super::columns`]), each row of
//! the kernel still fills only a part of its last block of channels. Here the rows of a window follow each other in the
//! entries of a pixel, at any byte (`dma_pack`), so only the last entry is partly used. Each row of the image is then
//! loaded once for each row of the kernel.

use super::op::Conv;
use crate::codegen::accel::dma::load_row;
use crate::codegen::accel::view::View;
use tilewright_hw::config::{HwConfig, Mem};

/// Returns the convolution and the view of its input with whole windows as channels; `None` if the configuration cannot
/// load them, or the array would not need fewer products.
pub fn windows_as_channels(conv: &Conv, [input, output]: [View; 2], config: &HwConfig) -> Option<(Conv, View)> {
    let (rows, block) = (conv.kernel[0], config.block_in as usize);
    let fewer = (rows * input.c).div_ceil(block) < rows * input.c.div_ceil(block);
    if !config.dma_pack || !input.has_windows() || conv.groups != 1 || conv.kernel[1] != 1 || !fewer {
        return None;
    }
    let flat = Conv { kernel: [1, 1], strides: [1, 1], pads: [0; 4], dilations: [1, 1], ..conv.clone() };
    Some((flat, input.resized(rows * input.c, output.h, output.w)))
}

/// Estimated cycles of the loads for a pixel of the output.
pub fn pixel_load(conv: &Conv, input: View, config: &HwConfig) -> u64 {
    let (row, block) = (input.c as u64, u64::from(config.block_in));
    let rows = conv.kernel[0] as u64;
    let rest = (rows * row).next_multiple_of(block) - rows * row;
    // Rows begin anywhere in a beat.
    let last = u64::from(config.bus_bytes()) - 1;
    let rest = if rest == 0 { 0 } else { load_row(rest, 0, Mem::Inp, config) };
    rows * load_row(row, last, Mem::Inp, config) + rest
}
