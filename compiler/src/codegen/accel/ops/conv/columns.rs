//! Convolutions of few channels whose input the host writes: loads turn the columns of a window into channels.
//!
//! A pixel with few channels fills only a part of a block, and each column of the window needs its own product. In this
//! form the tensor is dense in device memory with padded rows, and each row of a load is the part of an image row that
//! the window of one output pixel reads. The kernel is then one column wide. Short rows take longer to load, so the
//! planner compares both forms.

use super::op::Conv;
use crate::codegen::accel::layer::Layer;
use tilewright_hw::HwConfig;

/// Returns the same convolution with the columns of a window as channels, or `None` if that does not need fewer
/// products or cannot be loaded. The host must write its input.
pub fn columns_as_channels(conv: &Conv, layer: &Layer, config: &HwConfig) -> Option<(Layer, Conv)> {
    let [(value, input)] = layer.inputs[..] else { return None };
    let (block, columns, output) = (config.block() as usize, conv.kernel[1], layer.output.1);
    let loadable = config.batch == 1 && config.block_in == config.block() && config.dma_align == 1;
    let fewer = (columns * input.c).div_ceil(block) < columns * input.c.div_ceil(block);
    if !loadable || !fewer || conv.groups != 1 || conv.dilations[1] != 1 || input.windows().is_some() {
        return None;
    }
    let windows = input.in_windows([columns, conv.strides[1], conv.pads[1], output.w], conv.pad_value);
    let [top, _, bottom, _] = conv.pads;
    // Weights are ordered by rows, columns and channels, so they do not change.
    let narrow = Conv {
        kernel: [conv.kernel[0], 1],
        strides: [conv.strides[0], 1],
        pads: [top, 0, bottom, 0],
        dilations: [conv.dilations[0], 1],
        ..conv.clone()
    };
    Some((Layer { inputs: vec![(value, windows)], ..layer.clone() }, narrow))
}
