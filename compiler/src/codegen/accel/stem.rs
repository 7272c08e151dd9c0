//! Convolutions of few channels that the host writes: a window's columns become channels as they are loaded.
//!
//! A pixel of few channels fills a block of lanes in part, and each of the window's columns is a product of its own. Instead
//! the tensor lies dense in device memory, its rows padded, and each row of a load is what an output pixel's window has of
//! an image row. The window is then one column wide. Rows of few bytes take longer to load, so both ways are planned.

use super::layer::{Conv, Kind, Layer};
use tilewright_hw::HwConfig;

impl Layer {
    /// The same convolution with a window's columns as channels, where that makes fewer products and can be loaded. The
    /// host has to write its input.
    pub fn columns_as_channels(&self, config: &HwConfig) -> Option<Layer> {
        let Kind::Conv(conv) = &self.kind else { return None };
        let [(value, input)] = self.inputs[..] else { return None };
        let (block, columns, output) = (config.block() as usize, conv.kernel[1], self.output.1);
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
        Some(Layer { inputs: vec![(value, windows)], kind: Kind::Conv(narrow), ..self.clone() })
    }
}
