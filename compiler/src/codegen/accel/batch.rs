//! How the batch rows of an entry are filled with pixels.
//!
//! If an operator reads windows, an entry holds the same pixel of `batch` different tiles. A tap is then a step between
//! entries, as with one batch row, and each pixel is loaded once for all taps. If an operator reads single pixels, an
//! entry holds `batch` neighboring pixels, in the order of device memory.

use super::view::View;
use tilewright_hw::config::HwConfig;

/// How pixels fill the batch rows of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// The same pixel of several tiles.
    Tiles,
    /// Neighboring pixels; a column of the views is an entry.
    Neighbors,
}

/// Returns how an operator fills batch rows, and the views of its input and output as its tiles see them.
///
/// `pointwise`: each output pixel depends only on the input pixel at the same position.
pub fn fill(pointwise: bool, views: [View; 2], config: &HwConfig) -> (Fill, [View; 2]) {
    let [input, output] = views;
    // A single pixel has no neighbors.
    let single = output.h * output.w == 1;
    if config.batch == 1 || single || !pointwise || (input.h, input.w) != (output.h, output.w) {
        return (Fill::Tiles, views);
    }
    // If a pixel's channels need several entries, neighboring pixels in memory do not match the order of entries.
    let (fill, step) = if config.block_is_row() { (Fill::Neighbors, config.batch as usize) } else { (Fill::Tiles, 1) };
    (fill, views.map(|v| v.resized(v.c, 1, (v.h * v.w).div_ceil(step))))
}

/// Dimensions of a pixel of a block in device memory: its entries if there are several, and the channels of an entry.
pub fn memory_lanes(entries: usize, channels: i64) -> Vec<i64> {
    if entries == 1 { vec![channels] } else { vec![entries as i64, channels] }
}

/// Dimensions of a pixel of a block in a scratchpad, in which an entry has `batch` rows.
pub fn entry_lanes(entries: usize, channels: i64, batch: i64) -> Vec<i64> {
    let mut lanes = memory_lanes(entries, channels);
    if batch > 1 {
        lanes.insert(lanes.len() - 1, batch);
    }
    lanes
}
