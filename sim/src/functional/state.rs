//! Scratchpads, micro-op memories and token counters.

use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::decode_uop;

/// A range of entries whose copy for the matrix kernels is out of date.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stale {
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Stale {
    pub(super) fn add(&mut self, from: usize, to: usize) {
        *self = if self.from == self.to {
            Stale { from, to }
        } else {
            Stale { from: self.from.min(from), to: self.to.max(to) }
        };
    }
}

/// Everything that lives inside the accelerator.
pub(super) struct State {
    /// int8 rows of batch x block_in, as bytes.
    pub(super) inp: Vec<u8>,
    /// int8 tiles of block_out x block_in, as bytes.
    pub(super) wgt: Vec<u8>,
    /// int32 rows of batch x block_out.
    pub(super) acc: Vec<i32>,
    /// int8 rows of batch x block_out, as bytes.
    pub(super) out: Vec<u8>,
    /// Entries of rows of block_out bytes.
    pub(super) param: Vec<u8>,
    gemm_uop_bytes: Vec<u8>,
    vector_uop_bytes: Vec<u8>,
    /// acc, inp, wgt.
    pub(super) gemm_uops: Vec<[u32; 3]>,
    /// dst, a, b.
    pub(super) vector_uops: Vec<[u32; 3]>,
    /// inp widened to 16 bits, but for the stale entries.
    pub(super) inp_wide: Vec<i16>,
    pub(super) inp_stale: Stale,
    /// wgt widened and arranged for the kernels, but for the stale entries.
    pub(super) wgt_wide: Vec<i16>,
    pub(super) wgt_stale: Stale,
    /// `[from][to]`.
    pub(super) tokens: [[u32; 4]; 4],
    entry_bytes: [usize; 7],
    gemm_widths: [u32; 3],
    vector_widths: [u32; 3],
}

impl State {
    pub(super) fn new(config: &HwConfig) -> State {
        let bytes = |mem| config.entries(mem) as usize * config.entry_bytes(mem) as usize;
        State {
            inp: vec![0; bytes(Mem::Inp)],
            wgt: vec![0; bytes(Mem::Wgt)],
            acc: vec![0; bytes(Mem::Acc) / 4],
            out: vec![0; bytes(Mem::Out)],
            param: vec![0; bytes(Mem::Param)],
            gemm_uop_bytes: vec![0; bytes(Mem::GemmUop)],
            vector_uop_bytes: vec![0; bytes(Mem::VectorUop)],
            gemm_uops: vec![[0; 3]; config.gemm_uop_depth as usize],
            vector_uops: vec![[0; 3]; config.vector_uop_depth as usize],
            inp_wide: vec![0; bytes(Mem::Inp)],
            inp_stale: Stale::default(),
            wgt_wide: vec![0; bytes(Mem::Wgt)],
            wgt_stale: Stale::default(),
            tokens: [[0; 4]; 4],
            entry_bytes: Mem::ALL.map(|m| config.entry_bytes(m) as usize),
            gemm_widths: config.gemm_index_bits(),
            vector_widths: [config.vector_index_bits(); 3],
        }
    }

    /// Writes bytes to a memory from byte `at` on. What lies in acc, param and the micro-op memories is written in whole
    /// entries.
    pub(super) fn write(&mut self, mem: Mem, at: usize, bytes: &[u8]) {
        let size = self.entry_bytes[mem as usize];
        let end = at + bytes.len();
        let entries = at / size..end.div_ceil(size);
        match mem {
            Mem::Inp => {
                self.inp[at..end].copy_from_slice(bytes);
                self.inp_stale.add(entries.start, entries.end);
            }
            Mem::Wgt => {
                self.wgt[at..end].copy_from_slice(bytes);
                self.wgt_stale.add(entries.start, entries.end);
            }
            Mem::Acc => {
                for (word, raw) in self.acc[at / 4..end / 4].iter_mut().zip(bytes.chunks_exact(4)) {
                    *word = i32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]);
                }
            }
            Mem::Out => self.out[at..end].copy_from_slice(bytes),
            Mem::Param => self.param[at..end].copy_from_slice(bytes),
            Mem::GemmUop => {
                self.gemm_uop_bytes[at..end].copy_from_slice(bytes);
                for (uop, raw) in self.gemm_uops[entries].iter_mut().zip(bytes.chunks_exact(size)) {
                    *uop = decode_uop(raw, self.gemm_widths);
                }
            }
            Mem::VectorUop => {
                self.vector_uop_bytes[at..end].copy_from_slice(bytes);
                for (uop, raw) in self.vector_uops[entries].iter_mut().zip(bytes.chunks_exact(size)) {
                    *uop = decode_uop(raw, self.vector_widths);
                }
            }
        }
    }

    /// The bytes of inp or out, which stores read.
    pub(super) fn int8(&self, mem: Mem) -> &[u8] {
        if mem == Mem::Inp { &self.inp } else { &self.out }
    }

    /// A copy of some entries' bytes.
    pub(super) fn bytes(&self, mem: Mem, entry: usize, count: usize) -> Vec<u8> {
        let size = self.entry_bytes[mem as usize];
        let range = entry * size..(entry + count) * size;
        match mem {
            Mem::Inp => self.inp[range].to_vec(),
            Mem::Wgt => self.wgt[range].to_vec(),
            Mem::Acc => self.acc[range.start / 4..range.end / 4].iter().flat_map(|w| w.to_le_bytes()).collect(),
            Mem::Out => self.out[range].to_vec(),
            Mem::Param => self.param[range].to_vec(),
            Mem::GemmUop => self.gemm_uop_bytes[range].to_vec(),
            Mem::VectorUop => self.vector_uop_bytes[range].to_vec(),
        }
    }
}
