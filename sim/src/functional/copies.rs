//! Copies of inp and wgt in the order and width that a kernel reads.

use super::kernel::Kernel;
#[cfg(target_arch = "x86_64")]
use super::kernel::quads_of_16;
use std::ops::Range;
use tilewright_hw::config::{HwConfig, Mem};

/// What a kernel reads instead of the bytes of inp and wgt.
pub(super) enum Copies {
    /// Widened to 16 bits.
    Pairs {
        /// In the order of inp.
        inp: Vec<i16>,
        /// Tiles as `[block_in / 2][block_out][2]`.
        wgt: Vec<i16>,
    },
    /// For products of unsigned with signed bytes.
    Quads {
        /// In the order of inp, with 128 added to each byte.
        inp: Vec<u8>,
        /// Tiles as `[block_in / 4][block_out][4]`.
        wgt: Vec<i8>,
        /// 128 times the sum of each output's weights, to subtract what the added 128 contributes: `[block_out]` per
        /// tile.
        excess: Vec<i32>,
    },
}

impl Copies {
    /// Creates the copies that `kernel` reads, for zeroed memories.
    pub(super) fn new(kernel: Kernel, config: &HwConfig) -> Copies {
        let bytes = |mem| config.entries(mem) as usize * config.entry_bytes(mem) as usize;
        match kernel {
            Kernel::Portable | Kernel::Avx2 => {
                Copies::Pairs { inp: vec![0; bytes(Mem::Inp)], wgt: vec![0; bytes(Mem::Wgt)] }
            }
            Kernel::Avx512 => Copies::Quads {
                inp: vec![0x80; bytes(Mem::Inp)],
                wgt: vec![0; bytes(Mem::Wgt)],
                excess: vec![0; (config.wgt_depth * config.block_out) as usize],
            },
        }
    }

    /// Creates copies of memories without entries.
    pub(super) fn none() -> Copies {
        Copies::Pairs { inp: Vec::new(), wgt: Vec::new() }
    }

    /// Updates the copy of inp for the entries in `stale`, of `entry` bytes each.
    pub(super) fn follow_inp(&mut self, bytes: &[u8], stale: Range<usize>, entry: usize) {
        let range = stale.start * entry..stale.end * entry;
        match self {
            Copies::Pairs { inp, .. } => {
                for (wide, byte) in inp[range.clone()].iter_mut().zip(&bytes[range]) {
                    *wide = i16::from(*byte as i8);
                }
            }
            Copies::Quads { inp, .. } => {
                for (copy, byte) in inp[range.clone()].iter_mut().zip(&bytes[range]) {
                    *copy = byte ^ 0x80;
                }
            }
        }
    }

    /// Updates the copy of wgt for the tiles in `stale`, of `outputs` x `inputs` bytes each.
    pub(super) fn follow_wgt(&mut self, bytes: &[u8], stale: Range<usize>, inputs: usize, outputs: usize) {
        let tile = inputs * outputs;
        let range = stale.start * tile..stale.end * tile;
        let tiles = bytes[range.clone()].chunks_exact(tile);
        match self {
            Copies::Pairs { wgt, .. } => {
                for (wide, tile) in wgt[range].chunks_exact_mut(tile).zip(tiles) {
                    // Pairs of inputs are outermost and outputs inside, so that one multiply-add instruction covers
                    // many outputs.
                    for (pair, wide) in wide.chunks_exact_mut(2 * outputs).enumerate() {
                        for (two, row) in wide.chunks_exact_mut(2).zip(tile.chunks_exact(inputs)) {
                            two[0] = i16::from(row[2 * pair] as i8);
                            two[1] = i16::from(row[2 * pair + 1] as i8);
                        }
                    }
                }
            }
            Copies::Quads { wgt, excess, .. } => {
                let excess = excess[stale.start * outputs..stale.end * outputs].chunks_exact_mut(outputs);
                for ((copy, excess), tile) in wgt[range].chunks_exact_mut(tile).zip(excess).zip(tiles) {
                    #[cfg(target_arch = "x86_64")]
                    if inputs == 16 {
                        // SAFETY: only a kernel whose machine has the instructions reads quads, and only if block_out
                        // is a multiple of 16.
                        unsafe { quads_of_16(tile, copy, excess, outputs) };
                        continue;
                    }
                    for (quad, copy) in copy.chunks_exact_mut(4 * outputs).enumerate() {
                        for (four, row) in copy.chunks_exact_mut(4).zip(tile.chunks_exact(inputs)) {
                            let from = &row[4 * quad..4 * quad + 4];
                            four.copy_from_slice(&[from[0] as i8, from[1] as i8, from[2] as i8, from[3] as i8]);
                        }
                    }
                    for (excess, row) in excess.iter_mut().zip(tile.chunks_exact(inputs)) {
                        *excess = 128 * row.iter().map(|w| i32::from(*w as i8)).sum::<i32>();
                    }
                }
            }
        }
    }
}
