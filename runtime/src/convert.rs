//! Converts tensors between the host's dense layout and the blocked layout of device memory, at the speed of memory.
//!
//! [`Activation`](tilewright_hw::layout::Activation) defines the blocked layout. The code here computes the same with
//! copies of whole blocks if channels are last on the host, and with transposed tiles if they are first. Tests compare
//! the two.

mod planes;
mod rows;
#[cfg(test)]
mod tests;

use crate::artifact::{Image, Packing};

/// Converts a dense tensor to its bytes in device memory. [`Packing::device_bytes`] is their number.
///
/// # Panics
/// If `dense` or `packed` has not the packing's size.
pub fn pack(packing: Packing, dense: &[u8], packed: &mut [u8]) {
    let image = match packing {
        Packing::Dense => return packed.copy_from_slice(dense),
        Packing::Nhwc(image) | Packing::Nchw(image) => image,
    };
    let runs = Runs::of(&image);
    runs.check(dense, packed);
    if runs.is_empty() {
        packed.fill(image.fill as u8);
    } else if runs.is_vector() {
        for (out, vector) in packed.chunks_exact_mut(runs.blocks * runs.block).zip(dense.chunks_exact(runs.c)) {
            let (channels, padding) = out.split_at_mut(vector.len());
            channels.copy_from_slice(vector);
            padding.fill(image.fill as u8);
        }
    } else {
        match packing {
            Packing::Nchw(_) => planes::pack(&runs, dense, packed),
            _ => rows::pack(&runs, dense, packed),
        }
    }
}

/// Converts a tensor in device memory to the dense tensor: the inverse of [`pack`].
///
/// # Panics
/// If `packed` or `dense` has not the packing's size.
pub fn unpack(packing: Packing, packed: &[u8], dense: &mut [u8]) {
    let image = match packing {
        Packing::Dense => return dense.copy_from_slice(packed),
        Packing::Nhwc(image) | Packing::Nchw(image) => image,
    };
    let runs = Runs::of(&image);
    runs.check(dense, packed);
    if runs.is_empty() {
        return;
    }
    if runs.is_vector() {
        for (vector, from) in dense.chunks_exact_mut(runs.c).zip(packed.chunks_exact(runs.blocks * runs.block)) {
            vector.copy_from_slice(&from[..vector.len()]);
        }
        return;
    }
    match packing {
        Packing::Nchw(_) => planes::unpack(&runs, packed, dense),
        _ => rows::unpack(&runs, packed, dense),
    }
}

/// An image as runs of pixels that follow each other in both layouts: its rows, or all pixels if no row is padded.
struct Runs {
    /// Images.
    n: usize,
    /// Channels.
    c: usize,
    /// Channels of a block.
    block: usize,
    /// Blocks of channels.
    blocks: usize,
    /// Runs of an image.
    count: usize,
    /// Pixels of a run.
    len: usize,
    /// Padding pixels on the device, before and after a run.
    pads: [usize; 2],
    /// Value of padding channels and pixels.
    fill: u8,
}

impl Runs {
    fn of(image: &Image) -> Runs {
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

    fn check(&self, dense: &[u8], packed: &[u8]) {
        assert_eq!(dense.len(), self.n * self.count * self.len * self.c, "bytes of the dense tensor");
        assert_eq!(packed.len(), self.n * self.blocks * self.count * self.stride(), "bytes in device memory");
    }

    /// Whether there is no element.
    fn is_empty(&self) -> bool {
        self.n * self.c * self.count * self.len == 0
    }

    /// Whether an image is one pixel, so that its channels follow each other in both layouts.
    fn is_vector(&self) -> bool {
        self.count * self.len == 1 && self.pads == [0; 2]
    }

    /// Bytes from one run of a block to the next on the device.
    fn stride(&self) -> usize {
        (self.pads[0] + self.len + self.pads[1]) * self.block
    }

    /// Byte of a run's first padding pixel on the device.
    fn start(&self, n: usize, block: usize, run: usize) -> usize {
        ((n * self.blocks + block) * self.count + run) * self.stride()
    }

    /// The bytes on the device of some of a run's pixels.
    fn pixels(&self, n: usize, block: usize, run: usize, pixels: std::ops::Range<usize>) -> std::ops::Range<usize> {
        let first = self.start(n, block, run) + self.pads[0] * self.block;
        first + pixels.start * self.block..first + pixels.end * self.block
    }

    /// Channels of a block that are not padding.
    fn channels(&self, block: usize) -> usize {
        (self.c - block * self.block).min(self.block)
    }

    /// Fills the padding pixels of a run.
    fn pad(&self, n: usize, block: usize, run: usize, packed: &mut [u8]) {
        if self.pads != [0; 2] {
            let row = &mut packed[self.start(n, block, run)..][..self.stride()];
            row[..self.pads[0] * self.block].fill(self.fill);
            row[(self.pads[0] + self.len) * self.block..].fill(self.fill);
        }
    }
}
