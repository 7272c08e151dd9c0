//! Channels first on the host: tiles of channels and pixels are transposed in registers.

use super::runs::Runs;

/// Channels, and pixels, of the smallest tile: as many bytes as a word has.
const SIDE: usize = 8;
/// Smallest tiles that are transposed at once, by the same vector instructions.
const LANES: usize = 4;

/// A word of pixels for each of 8 channels, or of channels for each of 8 pixels, for each lane.
type Words<const LANES: usize> = [[u64; LANES]; SIDE];

/// Pixels of one block of channels that follow each other in both layouts.
#[derive(Clone, Copy)]
struct Run {
    /// Byte of the first channel's first pixel in the dense tensor.
    dense: usize,
    /// Bytes from one channel to the next in the dense tensor.
    plane: usize,
    /// Byte of the first pixel's first channel on the device.
    packed: usize,
    /// Bytes from one pixel to the next on the device.
    block: usize,
    /// Channels that are not padding.
    channels: usize,
    /// Pixels.
    len: usize,
}

pub(super) fn pack(runs: &Runs, dense: &[u8], packed: &mut [u8]) {
    each_run(runs, |n, block, row, run| {
        runs.pad(n, block, row, packed);
        pack_run(run, runs.fill, dense, packed);
    });
}

pub(super) fn unpack(runs: &Runs, packed: &[u8], dense: &mut [u8]) {
    each_run(runs, |_, _, _, run| unpack_run(run, packed, dense));
}

/// Calls `f(image, block, row, run)` in the order of device memory.
fn each_run(runs: &Runs, mut f: impl FnMut(usize, usize, usize, Run)) {
    let plane = runs.count * runs.len;
    for n in 0..runs.n {
        for block in 0..runs.blocks {
            for row in 0..runs.count {
                let dense = (n * runs.c + block * runs.block) * plane + row * runs.len;
                let packed = runs.pixels(n, block, row, 0..0).start;
                let (channels, len) = (runs.channels(block), runs.len);
                f(n, block, row, Run { dense, plane, packed, block: runs.block, channels, len });
            }
        }
    }
}

/// Compiles a function twice, without and with AVX2, and calls the one that this processor can run.
macro_rules! with_avx2 {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) = $portable:ident, $avx2:ident) => {
        $(#[$doc])*
        fn $name($($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn $avx2($($arg: $ty),*) {
                    $portable($($arg),*);
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has AVX2.
                    return unsafe { $avx2($($arg),*) };
                }
            }
            $portable($($arg),*);
        }
    };
}

with_avx2! {
    /// Packs a run, with `fill` in the channels that are padding.
    fn pack_run(run: Run, fill: u8, dense: &[u8], packed: &mut [u8]) = pack_blocks, pack_blocks_avx2
}

with_avx2! {
    /// Unpacks a run.
    fn unpack_run(run: Run, packed: &[u8], dense: &mut [u8]) = unpack_blocks, unpack_blocks_avx2
}

// The functions below are inlined into both versions.

#[inline(always)]
fn pack_blocks(run: Run, fill: u8, dense: &[u8], packed: &mut [u8]) {
    match run.block {
        8 => pack_tiles(Run { block: 8, ..run }, fill, dense, packed),
        16 => pack_tiles(Run { block: 16, ..run }, fill, dense, packed),
        32 => pack_tiles(Run { block: 32, ..run }, fill, dense, packed),
        _ => pack_tiles(run, fill, dense, packed),
    }
}

#[inline(always)]
fn unpack_blocks(run: Run, packed: &[u8], dense: &mut [u8]) {
    match run.block {
        8 => unpack_tiles(Run { block: 8, ..run }, packed, dense),
        16 => unpack_tiles(Run { block: 16, ..run }, packed, dense),
        32 => unpack_tiles(Run { block: 32, ..run }, packed, dense),
        _ => unpack_tiles(run, packed, dense),
    }
}

#[inline(always)]
fn pack_tiles(run: Run, fill: u8, dense: &[u8], packed: &mut [u8]) {
    let mut at = 0;
    while let Some((pixel, pixels)) = next_tile(at, run.len) {
        for channel in (0..run.block).step_by(SIDE) {
            match pixels {
                LARGE => pack_tile::<LANES>(run, pixel, channel, fill, dense, packed),
                SIDE => pack_tile::<1>(run, pixel, channel, fill, dense, packed),
                _ => {
                    for p in pixel..pixel + pixels {
                        for c in channel..run.block.min(channel + SIDE) {
                            let from = dense.get(run.dense + c * run.plane + p).filter(|_| c < run.channels);
                            packed[run.packed + p * run.block + c] = from.copied().unwrap_or(fill);
                        }
                    }
                }
            }
        }
        at = pixel + pixels;
    }
}

#[inline(always)]
fn unpack_tiles(run: Run, packed: &[u8], dense: &mut [u8]) {
    let mut at = 0;
    while let Some((pixel, pixels)) = next_tile(at, run.len) {
        for channel in (0..run.channels).step_by(SIDE) {
            match pixels {
                LARGE => unpack_tile::<LANES>(run, pixel, channel, packed, dense),
                SIDE => unpack_tile::<1>(run, pixel, channel, packed, dense),
                _ => {
                    for c in channel..run.channels.min(channel + SIDE) {
                        for p in pixel..pixel + pixels {
                            dense[run.dense + c * run.plane + p] = packed[run.packed + p * run.block + c];
                        }
                    }
                }
            }
        }
        at = pixel + pixels;
    }
}

/// Pixels of a large tile.
const LARGE: usize = SIDE * LANES;

/// The first pixel and the pixels of the tile that covers pixel `at` of `len`. The last tile can overlap the one
/// before.
#[inline(always)]
fn next_tile(at: usize, len: usize) -> Option<(usize, usize)> {
    match len - at {
        0 => None,
        LARGE.. => Some((at, LARGE)),
        SIDE.. => Some((at, SIDE)),
        _ if len >= SIDE => Some((len - SIDE, SIDE)),
        _ => Some((at, len - at)),
    }
}

/// Packs `LANES` tiles of 8 pixels and up to 8 channels.
#[inline(always)]
fn pack_tile<const LANES: usize>(run: Run, pixel: usize, channel: usize, fill: u8, dense: &[u8], packed: &mut [u8]) {
    let mut words = [[u64::from_ne_bytes([fill; SIDE]); LANES]; SIDE];
    let from = &dense[run.dense + pixel..];
    if channel < run.channels {
        (channel..run.channels).zip(&mut words).for_each(|(channel, row)| read_channel(run, channel, from, row));
        transpose(&mut words);
    }
    let out = &mut packed[run.packed + pixel * run.block + channel..];
    match run.block - channel {
        1 => write_pixels::<1, LANES>(&words, run.block, out),
        2 => write_pixels::<2, LANES>(&words, run.block, out),
        3 => write_pixels::<3, LANES>(&words, run.block, out),
        4 => write_pixels::<4, LANES>(&words, run.block, out),
        5 => write_pixels::<5, LANES>(&words, run.block, out),
        6 => write_pixels::<6, LANES>(&words, run.block, out),
        7 => write_pixels::<7, LANES>(&words, run.block, out),
        _ => write_pixels::<8, LANES>(&words, run.block, out),
    }
}

#[inline(always)]
fn read_channel<const LANES: usize>(run: Run, channel: usize, dense: &[u8], words: &mut [u64; LANES]) {
    let (bytes, _) = dense[channel * run.plane..][..SIDE * LANES].as_chunks();
    (0..LANES).for_each(|lane| words[lane] = u64::from_le_bytes(bytes[lane]));
}

/// Writes `CHANNELS` channels of each pixel.
#[inline(always)]
fn write_pixels<const CHANNELS: usize, const LANES: usize>(words: &Words<LANES>, stride: usize, out: &mut [u8]) {
    for lane in 0..LANES {
        for (row, pixel) in words.iter().zip(lane * SIDE..) {
            let bytes = row[lane].to_le_bytes();
            out[pixel * stride..][..CHANNELS].copy_from_slice(&bytes[..CHANNELS]);
        }
    }
}

/// Unpacks `LANES` tiles of 8 pixels and up to 8 channels.
#[inline(always)]
fn unpack_tile<const LANES: usize>(run: Run, pixel: usize, channel: usize, packed: &[u8], dense: &mut [u8]) {
    let mut words = [[0; LANES]; SIDE];
    let from = &packed[run.packed + pixel * run.block + channel..];
    match run.block - channel {
        1 => read_pixels::<1, LANES>(&mut words, run.block, from),
        2 => read_pixels::<2, LANES>(&mut words, run.block, from),
        3 => read_pixels::<3, LANES>(&mut words, run.block, from),
        4 => read_pixels::<4, LANES>(&mut words, run.block, from),
        5 => read_pixels::<5, LANES>(&mut words, run.block, from),
        6 => read_pixels::<6, LANES>(&mut words, run.block, from),
        7 => read_pixels::<7, LANES>(&mut words, run.block, from),
        _ => read_pixels::<8, LANES>(&mut words, run.block, from),
    }
    transpose(&mut words);
    let out = &mut dense[run.dense + pixel..];
    (channel..run.channels).zip(&words).for_each(|(channel, row)| write_channel(run, channel, row, out));
}

#[inline(always)]
fn write_channel<const LANES: usize>(run: Run, channel: usize, words: &[u64; LANES], dense: &mut [u8]) {
    let (bytes, _) = dense[channel * run.plane..][..SIDE * LANES].as_chunks_mut();
    (0..LANES).for_each(|lane| bytes[lane] = words[lane].to_le_bytes());
}

/// Reads `CHANNELS` channels of each pixel.
#[inline(always)]
fn read_pixels<const CHANNELS: usize, const LANES: usize>(words: &mut Words<LANES>, stride: usize, from: &[u8]) {
    for lane in 0..LANES {
        for (row, pixel) in words.iter_mut().zip(lane * SIDE..) {
            let mut bytes = [0; SIDE];
            bytes[..CHANNELS].copy_from_slice(&from[pixel * stride..][..CHANNELS]);
            row[lane] = u64::from_le_bytes(bytes);
        }
    }
}

/// Transposes a square of 8 x 8 bytes in each lane: byte `j` of word `i` becomes byte `i` of word `j`.
///
/// It swaps the off-diagonal quarters of each square, then those of each quarter, then single bytes. The compiler turns
/// the loops over lanes into vector instructions.
#[inline(always)]
fn transpose<const LANES: usize>(words: &mut Words<LANES>) {
    swap::<4, LANES>(words, 0x0000_0000_ffff_ffff);
    swap::<2, LANES>(words, 0x0000_ffff_0000_ffff);
    swap::<1, LANES>(words, 0x00ff_00ff_00ff_00ff);
}

/// Swaps the high bytes of word `i` with the low bytes of word `i + STEP`, in groups of `STEP` bytes.
#[inline(always)]
fn swap<const STEP: usize, const LANES: usize>(words: &mut Words<LANES>, low: u64) {
    for i in (0..SIDE).filter(|i| i & STEP == 0) {
        let (a, b) = (words[i], words[i + STEP]);
        words[i] = std::array::from_fn(|lane| a[lane] & low | (b[lane] & low) << (8 * STEP));
        words[i + STEP] = std::array::from_fn(|lane| a[lane] >> (8 * STEP) & low | b[lane] & !low);
    }
}
