//! Scratchpads, micro-op memories and token counters.

use super::copies::Copies;
use super::kernel::Kernel;
use std::ops::Range;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{PARAM_BIAS_ROW, PARAM_MULTIPLIER_ROW, PARAM_ROWS, PARAM_SHIFT_ROW, decode_uop};

/// A range of entries whose copy for the matrix kernels is out of date.
#[derive(Debug, Clone, Default)]
struct Stale(Range<usize>);

impl Stale {
    fn add(&mut self, entries: Range<usize>) {
        self.0 = if self.0.is_empty() { entries } else { self.0.start.min(entries.start)..self.0.end.max(entries.end) };
    }
}

/// The state inside the accelerator.
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
    /// inp and wgt as the kernel reads them; up to date except for the stale entries of inp.
    pub(super) copies: Copies,
    inp_stale: Stale,
    /// Bias, multiplier and shift of each channel, `[3][block_out]` per entry; up to date except for the stale entries
    /// of param.
    words: Vec<i32>,
    words_stale: Vec<bool>,
    /// `[from][to]`.
    pub(super) tokens: [[u32; 4]; 4],
    entry_bytes: [usize; 7],
    inputs: usize,
    outputs: usize,
    gemm_widths: [u32; 3],
    vector_widths: [u32; 3],
}

impl State {
    /// Creates zeroed memories, or without a kernel memories without entries.
    pub(super) fn new(config: &HwConfig, kernel: Option<Kernel>) -> State {
        let entries = |entries: u32| if kernel.is_some() { entries as usize } else { 0 };
        let bytes = |mem| entries(config.entries(mem)) * config.entry_bytes(mem) as usize;
        State {
            inp: vec![0; bytes(Mem::Inp)],
            wgt: vec![0; bytes(Mem::Wgt)],
            acc: vec![0; bytes(Mem::Acc) / 4],
            out: vec![0; bytes(Mem::Out)],
            param: vec![0; bytes(Mem::Param)],
            gemm_uop_bytes: vec![0; bytes(Mem::GemmUop)],
            vector_uop_bytes: vec![0; bytes(Mem::VectorUop)],
            gemm_uops: vec![[0; 3]; entries(config.gemm_uop_depth)],
            vector_uops: vec![[0; 3]; entries(config.vector_uop_depth)],
            copies: kernel.map_or_else(Copies::none, |kernel| Copies::new(kernel, config)),
            inp_stale: Stale::default(),
            words: vec![0; 3 * entries(config.param_depth * config.block_out)],
            words_stale: vec![false; entries(config.param_depth)],
            tokens: [[0; 4]; 4],
            entry_bytes: Mem::ALL.map(|m| config.entry_bytes(m) as usize),
            inputs: config.block_in as usize,
            outputs: config.block_out as usize,
            gemm_widths: config.gemm_index_bits(),
            vector_widths: [config.vector_index_bits(); 3],
        }
    }

    /// Returns a memory of bytes for a load to write to, or `None` for acc, which holds words. Call [`State::wrote`]
    /// afterward.
    pub(super) fn memory_mut(&mut self, mem: Mem) -> Option<&mut [u8]> {
        match mem {
            Mem::Inp => Some(&mut self.inp),
            Mem::Wgt => Some(&mut self.wgt),
            Mem::Acc => None,
            Mem::Out => Some(&mut self.out),
            Mem::Param => Some(&mut self.param),
            Mem::GemmUop => Some(&mut self.gemm_uop_bytes),
            Mem::VectorUop => Some(&mut self.vector_uop_bytes),
        }
    }

    /// Writes whole words to acc, starting at byte `at`.
    pub(super) fn write_acc(&mut self, at: usize, bytes: &[u8]) {
        for (word, raw) in self.acc[at / 4..].iter_mut().zip(bytes.as_chunks::<4>().0) {
            *word = i32::from_le_bytes(*raw);
        }
    }

    /// Updates everything derived from these bytes after a load wrote some of them. Loads write wgt, param and the
    /// micro-op memories in whole entries.
    pub(super) fn wrote(&mut self, mem: Mem, bytes: Range<usize>) {
        let size = self.entry_bytes[mem as usize];
        let entries = bytes.start / size..bytes.end.div_ceil(size);
        match mem {
            Mem::Inp => self.inp_stale.add(entries),
            Mem::Wgt => self.copies.follow_wgt(&self.wgt, entries, self.inputs, self.outputs),
            Mem::Acc | Mem::Out => {}
            Mem::Param => {
                let rows = PARAM_ROWS as usize;
                self.words_stale[entries.start / rows..entries.end.div_ceil(rows)].fill(true);
            }
            Mem::GemmUop => {
                let raw = self.gemm_uop_bytes[bytes].chunks_exact(size);
                for (uop, raw) in self.gemm_uops[entries].iter_mut().zip(raw) {
                    *uop = decode_uop(raw, self.gemm_widths);
                }
            }
            Mem::VectorUop => {
                let raw = self.vector_uop_bytes[bytes].chunks_exact(size);
                for (uop, raw) in self.vector_uops[entries].iter_mut().zip(raw) {
                    *uop = decode_uop(raw, self.vector_widths);
                }
            }
        }
    }

    /// Marks entries of inp that something other than a load changed.
    pub(super) fn changed_inp(&mut self, entries: Range<usize>) {
        self.inp_stale.add(entries);
    }

    /// Updates the kernel's copy of inp.
    pub(super) fn refresh_inp(&mut self) {
        let stale = std::mem::take(&mut self.inp_stale).0;
        self.copies.follow_inp(&self.inp, stale, self.entry_bytes[Mem::Inp as usize]);
    }

    /// Updates the words of some entries of param.
    pub(super) fn refresh_words(&mut self, entries: Range<usize>) {
        let n = self.outputs;
        for entry in entries {
            if !std::mem::take(&mut self.words_stale[entry]) {
                continue;
            }
            let rows = &self.param[entry * PARAM_ROWS as usize * n..][..PARAM_ROWS as usize * n];
            let byte = |row: u32, o: usize| rows[row as usize * n + o];
            let word = |row: u32, o: usize| i32::from_le_bytes([0, 1, 2, 3].map(|i| byte(row + i, o)));
            let words = &mut self.words[entry * 3 * n..][..3 * n];
            for o in 0..n {
                words[o] = word(PARAM_BIAS_ROW, o);
                words[n + o] = word(PARAM_MULTIPLIER_ROW, o);
                words[2 * n + o] = i32::from(byte(PARAM_SHIFT_ROW, o) as i8);
            }
        }
    }

    /// Returns bias, multiplier and shift of each channel for each entry of param, `[3][block_out]` per entry. Call
    /// [`State::refresh_words`] first for the entries you read.
    pub(super) fn words(&self) -> &[i32] {
        &self.words
    }

    /// Returns the bytes of inp or out, the memories that stores read.
    pub(super) fn int8(&self, mem: Mem) -> &[u8] {
        if mem == Mem::Inp { &self.inp } else { &self.out }
    }

    /// Copies the bytes of some entries.
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
