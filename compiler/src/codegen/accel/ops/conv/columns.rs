//! Convolutions of few channels whose input the host writes: the columns of a window become channels when they are loaded.
//!
//! A pixel of few channels fills only a part of a block of lanes, and each column of the window is a product of its own. In
//! this form the tensor is dense in device memory, its rows padded, and each row of a load is the part of an image row that
//! the window of one output pixel reads. The window is then one column wide. Rows of few bytes take longer to load, so the
//! planner compares both forms.

use super::op::Conv;
use crate::codegen::accel::layer::Layer;
use tilewright_hw::HwConfig;

/// The same convolution with the columns of a window as channels, if that makes fewer products and can be loaded. The host
/// must write its input.
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
    // Weights are in the order of rows, columns and channels, so they stay as they are.
    let narrow = Conv {
        kernel: [conv.kernel[0], 1],
        strides: [conv.strides[0], 1],
        pads: [top, 0, bottom, 0],
        dilations: [conv.dilations[0], 1],
        ..conv.clone()
    };
    Some((Layer { inputs: vec![(value, windows)], ..layer.clone() }, narrow))
}
