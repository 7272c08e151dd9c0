//! All phases of a transposed convolution as one product, which runs as a scheduled tensor expression.

use super::phase::{ConvTranspose, Taps, choose, searched};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::ops::conv::Conv;
use crate::codegen::accel::ops::conv::phases::Phases;
use crate::codegen::accel::ops::conv::tiles::{self, ConvTile, Wanted};
use crate::codegen::accel::view::View;
use tilewright_hw::config::HwConfig;

/// The product of a transposed convolution.
pub struct Product {
    /// The convolution of each phase. They have the same shape, whose windows contain those of all phases.
    pub convs: Vec<Conv>,
    /// The product of a phase with the weights beyond 8 bits of any phase, so that its tiles have room for those of each.
    widest: Conv,
    /// Where the phases read and where their results belong.
    pub phases: Phases,
    /// Views of the input and of a phase's results.
    pub views: [View; 2],
    /// The view of the results of all phases, as further channels.
    all: View,
    /// Blocks of a phase.
    blocks: usize,
}

/// The taps of all phases along one dimension.
struct Window {
    /// Padding before the data.
    before: i64,
    /// Row of the first tap of each phase.
    firsts: Vec<i64>,
    /// Taps of each phase.
    taps: Vec<i64>,
    /// Rows from one tap to the next.
    dilation: usize,
    /// Taps of a kernel that contains the taps of all phases, and rows from one to the next.
    kernel: [usize; 2],
}

impl Window {
    fn new(phases: &[&Taps]) -> Window {
        let dilation = phases.iter().find(|t| t.used().len() > 1).map_or(1, |t| t.dilation);
        let before = |t: &&Taps| t.before as i64 - (t.used().start * t.dilation) as i64;
        let most = phases.iter().map(before).fold(0, i64::max);
        let firsts: Vec<i64> = phases.iter().map(|t| most - before(t)).collect();
        let taps: Vec<i64> = phases.iter().map(|t| t.used().len() as i64).collect();
        let count = taps.iter().fold(1, |most, n| most.max(*n as usize));
        let last_first = firsts.iter().fold(0, |most, n| most.max(*n as usize));
        // A tile loads the rows between the first row of any phase and the last one that a tap of the kernel adds to it.
        let kernel = if last_first == 0 {
            [count, dilation]
        } else {
            let steps = count.max(2) - 1;
            [steps + 1, (last_first + steps * dilation).div_ceil(steps)]
        };
        Window { before: most, firsts, taps, dilation, kernel }
    }
}

impl Product {
    /// Returns the product; `None` if there are no phases.
    pub fn new(layer: &ConvTranspose, [input, output]: [View; 2], config: &HwConfig) -> Option<Product> {
        let first = &layer.phases.first()?.conv;
        let has_rest = layer.phases.iter().any(|p| !p.conv.rest.is_empty());
        let counts = layer.strides;
        let along = |k: usize| -> Vec<&Taps> {
            let step = [counts[1], 1][k];
            (0..counts[k]).map(|i| &layer.phases[i * step].taps[k]).collect()
        };
        let windows = [0, 1].map(|k| Window::new(&along(k)));
        let view = output.resized(output.c, output.h.div_ceil(counts[0]), output.w.div_ceil(counts[1]));
        let conv = |i: usize| {
            let phase = &layer.phases[i];
            let (own, [rows, columns]) = (&phase.conv, [0, 1].map(|k| phase.taps[k].used()));
            let tap = |row: usize, column: usize| {
                let inside = row < rows.len() && column < columns.len();
                inside.then(|| (rows.start + row) * own.kernel[1] + columns.start + column)
            };
            let [height, width] = [0, 1].map(|k| windows[k].kernel[0]);
            let taps: Vec<_> = (0..height).flat_map(|row| (0..width).map(move |column| (row, column))).collect();
            let taps: Vec<_> = taps.into_iter().map(|(row, column)| tap(row, column)).collect();
            let shape = [own.finish.bias.len(), own.taps(), own.depth()];
            let weights = choose(&own.weights, shape, &taps);
            let rest = match (has_rest, own.rest.is_empty()) {
                (false, _) => Vec::new(),
                (true, true) => vec![0; weights.len()],
                (true, false) => choose(&own.rest, shape, &taps),
            };
            let behind = |k: usize, results: usize, size: usize| {
                let Window { before, kernel: [count, step], .. } = &windows[k];
                (results + (count - 1) * step).saturating_sub(*before as usize + size)
            };
            Conv {
                kernel: [height, width],
                dilations: [0, 1].map(|k| windows[k].kernel[1]),
                pads: [
                    windows[0].before as usize,
                    windows[1].before as usize,
                    behind(0, view.h, input.h),
                    behind(1, view.w, input.w),
                ],
                weights,
                rest,
                ..own.clone()
            }
        };
        let convs: Vec<Conv> = (0..layer.phases.len()).map(conv).collect();
        let widest = Conv { rest: greatest_rest(&convs), ..convs[0].clone() };
        let block = config.block() as usize;
        let blocks = output.c.div_ceil(block);
        // With groups, a phase's channels are not those of all.
        let all = if first.groups == 1 { view.resized(convs.len() * blocks * block, view.h, view.w) } else { view };
        let [rows, columns] = windows;
        let phases = Phases {
            counts,
            dilations: [rows.dilation, columns.dilation],
            firsts: [rows.firsts, columns.firsts],
            taps: [rows.taps, columns.taps],
            output,
        };
        Some(Product { convs, widest, phases, views: [input, view], all, blocks })
    }

    /// Returns what the search for tiles compares: the product, and its views.
    pub fn searched(&self) -> (&Conv, [View; 2]) {
        (&self.widest, [self.views[0], self.all])
    }

    /// Returns tiles with their estimated cycles.
    ///
    /// # Errors
    /// The reason why no tile fits.
    pub fn tiles(&self, config: &HwConfig) -> Result<Vec<ConvTile>, String> {
        let (conv, views) = self.searched();
        let mut found = tiles::tiles(conv, searched(Wanted::All), views, config)?;
        found.iter_mut().for_each(|tile| *tile = self.within(*tile));
        found.dedup_by_key(|tile| ConvTile { cycles: 0, ..*tile });
        Ok(found)
    }

    /// Returns a tile without blocks of several phases.
    pub fn within(&self, tile: ConvTile) -> ConvTile {
        ConvTile { out_blocks: tile.out_blocks.min(self.blocks), ..tile }
    }
}

/// Returns, for each weight, what some product has beyond 8 bits.
fn greatest_rest(convs: &[Conv]) -> Vec<i16> {
    let mut all = convs[0].rest.clone();
    for conv in &convs[1..] {
        all.iter_mut().zip(&conv.rest).for_each(|(all, own)| *all = if *all == 0 { *own } else { *all });
    }
    all
}

/// Returns the view of a layer's input and of its output.
pub fn views(layer: &Layer) -> [View; 2] {
    [layer.input_view(), layer.output_view()]
}
