//! An image as runs of pixels.

use crate::artifact::Image;

/// An image as runs of pixels that follow each other in both layouts: its rows, or all pixels if no row is padded.
pub(super) struct Runs {
    /// Images.
    pub n: usize,
    /// Channels.
    pub c: usize,
    /// Channels of a block.
    pub block: usize,
    /// Blocks of channels.
    pub blocks: usize,
    /// Runs of an image.
    pub count: usize,
    /// Pixels of a run.
    pub len: usize,
    /// Padding pixels on the device, before and after a run.
    pub pads: [usize; 2],
    /// Value of padding channels and pixels.
    pub fill: u8,
}

impl Runs {
    pub fn of(image: &Image) -> Runs {
        let layout = image.layout();
        let whole = image.pads == [0; 2];
        Runs {
            n: image.n,
            c: image.c,
            block: image.block,
            blocks: layout.blocks(),
            count: if whole { 1 } else { image.h },
            len: if whole { image.h * image.w } else { image.w },
            pads: image.pads,
            fill: image.fill as u8,
        }
    }

    pub fn check(&self, dense: &[u8], packed: &[u8]) {
        assert_eq!(dense.len(), self.n * self.count * self.len * self.c, "bytes of the dense tensor");
        assert_eq!(packed.len(), self.n * self.blocks * self.count * self.stride(), "bytes in device memory");
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.n * self.c * self.count * self.len == 0
    }

    /// Whether an image is one pixel, so that its channels follow each other in both layouts.
    pub fn is_vector(&self) -> bool {
        self.count * self.len == 1 && self.pads == [0; 2]
    }

    /// Bytes from one run of a block to the next on the device.
    pub fn stride(&self) -> usize {
        (self.pads[0] + self.len + self.pads[1]) * self.block
    }

    /// Byte of a run's first padding pixel on the device.
    pub fn start(&self, n: usize, block: usize, run: usize) -> usize {
        ((n * self.blocks + block) * self.count + run) * self.stride()
    }

    /// The bytes on the device of some of a run's pixels.
    pub fn pixels(&self, n: usize, block: usize, run: usize, pixels: std::ops::Range<usize>) -> std::ops::Range<usize> {
        let first = self.start(n, block, run) + self.pads[0] * self.block;
        first + pixels.start * self.block..first + pixels.end * self.block
    }

    /// Channels of a block that are not padding.
    pub fn channels(&self, block: usize) -> usize {
        (self.c - block * self.block).min(self.block)
    }

    /// Fills the padding pixels of a run.
    pub fn pad(&self, n: usize, block: usize, run: usize, packed: &mut [u8]) {
        if self.pads != [0; 2] {
            let row = &mut packed[self.start(n, block, run)..][..self.stride()];
            row[..self.pads[0] * self.block].fill(self.fill);
            row[(self.pads[0] + self.len) * self.block..].fill(self.fill);
        }
    }
}
