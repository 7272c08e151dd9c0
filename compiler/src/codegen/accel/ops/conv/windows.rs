//! The windows of a pooling that is fused into a product's tiles, and the data that a tile needs for them.

use super::op::Conv;
use crate::codegen::accel::border::Border;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::ops::pool::{Pool, PoolFinish};
use crate::codegen::accel::padded_range::PaddedRange;
use crate::codegen::accel::parts::cut;
use crate::codegen::accel::view::View;
use tilewright_hw::config::HwConfig;

/// A pooling that is fused into a product.
#[derive(Debug, Clone, Copy)]
pub struct PooledWindows<'a> {
    pub pool: &'a Pool,
    /// View of the product's results.
    pub of: View,
    /// View of the pooling's results.
    pub results: View,
}

/// The product's results that a tile of the pooling needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needed {
    /// Rows and columns that the product computes.
    pub pixels: [usize; 2],
    /// Rows and columns, padding included.
    pub padded: [usize; 2],
    /// Whether any tile has padding.
    pub pads: bool,
}

impl<'a> PooledWindows<'a> {
    /// Returns the pooling that is fused into a convolution, if there is one.
    pub fn of(conv: &'a Conv, layer: &Layer) -> Option<PooledWindows<'a>> {
        conv.pooling().map(|(pool, of)| PooledWindows { pool, of, results: layer.output.1 })
    }

    /// View of the product's results without rows and columns after the last window.
    pub fn read(&self) -> View {
        let PooledWindows { pool, of, results } = self;
        let read =
            |k: usize, (outputs, all): (usize, usize)| pool.span(k, outputs).saturating_sub(pool.pads[k]).clamp(1, all);
        of.resized(of.c, read(0, (results.h, of.h)), read(1, (results.w, of.w)))
    }

    /// Returns the image that the pooling reads: the product's results, with padding around them. With batch rows, the
    /// image is that of a tile of `tile` rows and columns: only dimensions that are not cut have padding.
    pub fn border(&self, tile: [usize; 2], config: &HwConfig) -> Border {
        let PooledWindows { pool, results, .. } = self;
        let stored = if config.batch > 1 { tile } else { [results.h, results.w] };
        Border {
            image: self.pixels(stored),
            size: [0, 1].map(|k| pool.span(k, stored[k])),
            before: [pool.pads[0], pool.pads[1]],
            value: pool.pad_value,
        }
    }

    /// Rows and columns of the product's results that a tile of `[rows, columns]` needs at most.
    pub fn pixels(&self, tile: [usize; 2]) -> [usize; 2] {
        let read = self.read();
        [0, 1].map(|k| self.pool.span(k, tile[k]).min([read.h, read.w][k]))
    }

    /// Whether the pooling has parameters for each channel.
    pub fn requantizes(&self) -> bool {
        matches!(self.pool.finish, PoolFinish::Requant(_))
    }

    /// Rows of the product's results that some rows of the pooling read.
    pub fn rows(&self, first: usize, count: usize) -> PaddedRange {
        self.pool.rows(first, count, self.of)
    }

    /// Columns of the product's results that some columns of the pooling read.
    pub fn columns(&self, first: usize, count: usize) -> PaddedRange {
        self.pool.columns(first, count, self.of)
    }

    /// Returns what the largest tile needs if the results are cut into tiles of `[rows, columns]`.
    ///
    /// `None` if a tile would read only padding, or if batch rows could hold tiles with different padding.
    pub fn needed(&self, [rows, columns]: [usize; 2], config: &HwConfig) -> Option<Needed> {
        let spans = |all: usize, step: usize, span: &dyn Fn(usize, usize) -> PaddedRange| -> Vec<PaddedRange> {
            cut(all, step).into_iter().map(|r| span(r.start, r.len())).collect()
        };
        let all = [
            spans(self.results.h, rows, &|first, count| self.rows(first, count)),
            spans(self.results.w, columns, &|first, count| self.columns(first, count)),
        ];
        let most = |k: usize, size: fn(&PaddedRange) -> usize| all[k].iter().map(size).max().unwrap_or(0);
        if all.iter().flatten().any(|s| s.inside == 0) {
            return None;
        }
        let pads = all.iter().flatten().any(|s| s.padded() > s.inside);
        // All rows of an entry have padding at the same time.
        let cut = |spans: &Vec<PaddedRange>| spans.len() > 1 && spans.iter().any(|s| s.padded() > s.inside);
        if config.batch > 1 && all.iter().any(cut) {
            return None;
        }
        let [pixels, padded] =
            [|s: &PaddedRange| s.inside, PaddedRange::padded].map(|size| [most(0, size), most(1, size)]);
        Some(Needed { pixels, padded, pads })
    }

    /// Entries of param for a tile with this many entries of channels.
    pub fn params(&self, channels: usize, pads: bool, config: &HwConfig) -> usize {
        let entries = match self.pool.finish {
            PoolFinish::Clip { .. } => 0,
            PoolFinish::Requant(_) => channels,
            PoolFinish::Mean { .. } | PoolFinish::Count(_) => self.pool.distinct_counts(self.of, self.results).len(),
        };
        entries + (1 + usize::from(pads)) * config.descriptor_entries() as usize
    }
}
