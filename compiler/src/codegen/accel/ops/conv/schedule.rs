//! Convolutions as scheduled tensor expressions.
//!
//! The expression copies the data with their padding to inp, multiplies them with the weights tile by tile, requantizes
//! the sums, and applies the fused element-wise operators. The schedule is made from the sizes of a [`ConvTile`].

use super::expression::{Data, data, windows};
use super::frame::Frame;
use super::op::Conv;
use super::packed::windows_as_channels;
use super::phases::Phases;
use super::product::product;
use super::tiles::ConvTile;
use super::windows::PooledWindows;
use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::scheduled::LayerSchedule;
use crate::codegen::accel::view::View;
use crate::te::Builder;
use tilewright_hw::config::HwConfig;

/// Returns a convolution in tiles.
pub fn schedule(
    conv: &Conv,
    tile: &ConvTile,
    layer: &Layer,
    config: &HwConfig,
    constants: Constants,
) -> Option<LayerSchedule> {
    let mut b = Builder::new("conv");
    let views = [layer.input_view(), computed_view(conv, layer)];
    let pooling = PooledWindows::of(conv, layer);
    let frame = Frame::new(conv, views, [tile.rows, tile.columns], pooling, config);
    let data = frame.data(&mut b, conv).unwrap_or_else(|| data(&mut b, conv, &frame, config));
    product(b, (std::slice::from_ref(conv), &frame), Data { tensor: data, rows: None }, tile, layer, config, constants)
}

/// Returns the phases of a transposed convolution in tiles. `convs` are their products, `views` those of the input and of a
/// phase.
pub fn of_phases(
    convs: &[Conv],
    phases: &Phases,
    views: [View; 2],
    tile: &ConvTile,
    layer: &Layer,
    config: &HwConfig,
    constants: Constants,
) -> Option<LayerSchedule> {
    let (mut b, conv) = (Builder::new("conv_transpose"), convs.first()?);
    let frame = Frame::of_phases(phases, views, [tile.rows, tile.columns], config);
    let data = frame.data(&mut b, conv).unwrap_or_else(|| data(&mut b, conv, &frame, config));
    product(b, (convs, &frame), Data { tensor: data, rows: None }, tile, layer, config, constants)
}

/// Returns a convolution in tiles whose loads turn whole windows into channels.
pub fn packed(
    conv: &Conv,
    tile: &ConvTile,
    layer: &Layer,
    config: &HwConfig,
    constants: Constants,
) -> Option<LayerSchedule> {
    let input = layer.input_view();
    let (flat, view) = windows_as_channels(conv, [input, computed_view(conv, layer)], config)?;
    let mut b = Builder::new("conv");
    let data = windows(&mut b, conv, input, computed_view(conv, layer), config)?;
    let frame = Frame::of_one_row([view, computed_view(conv, layer)], config);
    product(
        b,
        (std::slice::from_ref(&flat), &frame),
        Data { tensor: data, rows: Some(input.c) },
        tile,
        layer,
        config,
        constants,
    )
}

/// View of the results that a product computes: what is stored, or what a fused pooling reads.
fn computed_view(conv: &Conv, layer: &Layer) -> View {
    PooledWindows::of(conv, layer).map_or(layer.output_view(), |windows| windows.read())
}

#[cfg(test)]
pub mod tests;
