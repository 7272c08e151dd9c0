//! Channels last on the host: each pixel's block of channels is copied at once.

use super::runs::Runs;

/// Bytes of dense pixels that are converted for one block of channels after the other, so that they are still in the
/// cache for the next block.
const TILE_BYTES: usize = 16 << 10;

pub(super) fn pack(runs: &Runs, dense: &[u8], packed: &mut [u8]) {
    each_tile(runs, |n, run, from, to, first| {
        for block in 0..runs.blocks {
            let out = &mut packed[runs.pixels(n, block, run, from..to)];
            gather(runs, &dense[first + block * runs.block..], runs.channels(block), out);
        }
    });
    for n in 0..runs.n {
        (0..runs.blocks).for_each(|block| (0..runs.count).for_each(|run| runs.pad(n, block, run, packed)));
    }
}

pub(super) fn unpack(runs: &Runs, packed: &[u8], dense: &mut [u8]) {
    each_tile(runs, |n, run, from, to, first| {
        // The last block comes first: its writes can reach into the next pixel, which is written later.
        for block in (0..runs.blocks).rev() {
            let from = &packed[runs.pixels(n, block, run, from..to)];
            scatter(runs, from, runs.channels(block), &mut dense[first + block * runs.block..]);
        }
    });
}

/// Calls `f(image, run, first pixel, end, first byte of the dense pixels)` for tiles of pixels in memory order.
fn each_tile(runs: &Runs, mut f: impl FnMut(usize, usize, usize, usize, usize)) {
    let len = (TILE_BYTES / runs.c).max(1);
    for n in 0..runs.n {
        for run in 0..runs.count {
            for from in (0..runs.len).step_by(len) {
                let first = ((n * runs.count + run) * runs.len + from) * runs.c;
                f(n, run, from, runs.len.min(from + len), first);
            }
        }
    }
}

/// Copies `channels` channels of pixels that are `runs.c` bytes apart into blocks.
fn gather(runs: &Runs, dense: &[u8], channels: usize, blocks: &mut [u8]) {
    if runs.c == runs.block {
        return blocks.copy_from_slice(&dense[..blocks.len()]);
    }
    match (runs.block, channels == runs.block) {
        (4, true) => gather_whole::<4>(dense, runs.c, blocks),
        (8, true) => gather_whole::<8>(dense, runs.c, blocks),
        (16, true) => gather_whole::<16>(dense, runs.c, blocks),
        (32, true) => gather_whole::<32>(dense, runs.c, blocks),
        (8, false) => gather_part::<8>(dense, runs.c, channels, runs.fill, blocks),
        (16, false) => gather_part::<16>(dense, runs.c, channels, runs.fill, blocks),
        (32, false) => gather_part::<32>(dense, runs.c, channels, runs.fill, blocks),
        _ => {
            for (out, pixel) in blocks.chunks_exact_mut(runs.block).zip(dense.chunks(runs.c)) {
                let (data, padding) = out.split_at_mut(channels);
                data.copy_from_slice(&pixel[..channels]);
                padding.fill(runs.fill);
            }
        }
    }
}

fn gather_whole<const BLOCK: usize>(dense: &[u8], stride: usize, blocks: &mut [u8]) {
    for (out, pixel) in blocks.as_chunks_mut::<BLOCK>().0.iter_mut().zip(dense.chunks(stride)) {
        out.copy_from_slice(&pixel[..BLOCK]);
    }
}

/// Reads whole blocks where the tensor does not end, and replaces the bytes of other channels by `fill`.
fn gather_part<const BLOCK: usize>(dense: &[u8], stride: usize, channels: usize, fill: u8, blocks: &mut [u8]) {
    let keep: [u8; BLOCK] = std::array::from_fn(|lane| if lane < channels { 0xff } else { 0 });
    let padding: [u8; BLOCK] = std::array::from_fn(|lane| if lane < channels { 0 } else { fill });
    let (blocks, _) = blocks.as_chunks_mut::<BLOCK>();
    let (whole, last) = blocks.split_at_mut(whole_blocks::<BLOCK>(dense, stride).min(blocks.len()));
    for (out, pixel) in whole.iter_mut().zip((0..).step_by(stride)) {
        let mut bytes = [0; BLOCK];
        bytes.copy_from_slice(&dense[pixel..pixel + BLOCK]);
        (0..BLOCK).for_each(|lane| bytes[lane] = bytes[lane] & keep[lane] | padding[lane]);
        *out = bytes;
    }
    for (out, pixel) in last.iter_mut().zip((whole.len() * stride..).step_by(stride)) {
        *out = padding;
        out[..channels].copy_from_slice(&dense[pixel..pixel + channels]);
    }
}

/// How many of the pixels that are `stride` bytes apart have `BLOCK` bytes up to the end of the tensor.
fn whole_blocks<const BLOCK: usize>(dense: &[u8], stride: usize) -> usize {
    dense.len().checked_sub(BLOCK).map_or(0, |room| room / stride + 1)
}

/// Copies `channels` channels of blocks to pixels that are `runs.c` bytes apart.
///
/// Bytes of the following pixels can change.
fn scatter(runs: &Runs, blocks: &[u8], channels: usize, dense: &mut [u8]) {
    if runs.c == runs.block {
        return dense[..blocks.len()].copy_from_slice(blocks);
    }
    match runs.block {
        4 => scatter_blocks::<4>(blocks, channels, dense, runs.c),
        8 => scatter_blocks::<8>(blocks, channels, dense, runs.c),
        16 => scatter_blocks::<16>(blocks, channels, dense, runs.c),
        32 => scatter_blocks::<32>(blocks, channels, dense, runs.c),
        block => {
            for (from, pixel) in blocks.chunks_exact(block).zip(dense.chunks_mut(runs.c)) {
                pixel[..channels].copy_from_slice(&from[..channels]);
            }
        }
    }
}

/// Writes whole blocks where the tensor does not end.
fn scatter_blocks<const BLOCK: usize>(blocks: &[u8], channels: usize, dense: &mut [u8], stride: usize) {
    let (blocks, _) = blocks.as_chunks::<BLOCK>();
    let (whole, last) = blocks.split_at(whole_blocks::<BLOCK>(dense, stride).min(blocks.len()));
    for (from, pixel) in whole.iter().zip((0..).step_by(stride)) {
        dense[pixel..pixel + BLOCK].copy_from_slice(from);
    }
    for (from, pixel) in last.iter().zip((whole.len() * stride..).step_by(stride)) {
        dense[pixel..pixel + channels].copy_from_slice(&from[..channels]);
    }
}
