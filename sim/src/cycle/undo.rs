//! What stores wrote to device memory ahead of their bursts: an instruction's values are computed when it starts, but where
//! the run traps, memory keeps the bytes of bursts alone that were granted until then.

use std::collections::VecDeque;
use std::ops::Range;

/// Bytes of a store that follow one another, and what lay there before; nothing where they go past memory.
#[derive(Debug)]
struct Piece {
    bytes: u64,
    at: usize,
    old: Vec<u8>,
}

/// Pieces of stores in their order, from the first that may have to be taken back.
#[derive(Debug, Default)]
pub(super) struct Undo {
    pieces: VecDeque<Piece>,
    /// Bytes of stores before the first of them.
    begin: u64,
}

impl Undo {
    /// A store is going to write these bytes.
    pub(super) fn note(&mut self, memory: &[u8], range: Range<usize>) {
        let old = memory[range.clone()].to_vec();
        self.pieces.push_back(Piece { bytes: old.len() as u64, at: range.start, old });
    }

    /// So many bytes of a store go past memory.
    pub(super) fn note_outside(&mut self, bytes: u64) {
        self.pieces.push_back(Piece { bytes, at: 0, old: Vec::new() });
    }

    /// So many bytes of stores are written for good.
    pub(super) fn forget(&mut self, written: u64) {
        while let Some(piece) = self.pieces.front()
            && self.begin + piece.bytes <= written
        {
            self.begin += piece.bytes;
            self.pieces.pop_front();
        }
    }

    /// Memory gets back what lay behind the first so many bytes of stores.
    pub(super) fn take_back(&mut self, memory: &mut [u8], written: u64) {
        self.forget(written);
        let kept = (written - self.begin.min(written)) as usize;
        while let Some(Piece { at, old, .. }) = self.pieces.pop_back() {
            let kept = if self.pieces.is_empty() { kept.min(old.len()) } else { 0 };
            memory[at + kept..at + old.len()].copy_from_slice(&old[kept..]);
        }
    }
}
