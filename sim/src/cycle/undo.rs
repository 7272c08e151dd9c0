//! Undoes writes of stores to device memory. A store's values are computed when it starts, but if the run traps, memory
//! must keep only the bytes of bursts granted until then.

use std::collections::VecDeque;
use std::ops::Range;

/// Consecutive bytes of a store and their old contents, which are empty if the bytes are past the end of memory.
#[derive(Debug)]
struct Piece {
    bytes: u64,
    at: usize,
    old: Vec<u8>,
}

/// Pieces of stores in order, starting with the first that may have to be undone.
#[derive(Debug, Default)]
pub(super) struct Undo {
    pieces: VecDeque<Piece>,
    /// Bytes of stores before the first piece.
    begin: u64,
}

impl Undo {
    /// Saves bytes that a store is about to write.
    pub(super) fn note(&mut self, memory: &[u8], range: Range<usize>) {
        let old = memory[range.clone()].to_vec();
        self.pieces.push_back(Piece { bytes: old.len() as u64, at: range.start, old });
    }

    /// Notes that `bytes` of a store are past the end of memory.
    pub(super) fn note_outside(&mut self, bytes: u64) {
        self.pieces.push_back(Piece { bytes, at: 0, old: Vec::new() });
    }

    /// Forgets the first `written` bytes of all stores, which are final.
    pub(super) fn forget(&mut self, written: u64) {
        while let Some(piece) = self.pieces.front()
            && self.begin + piece.bytes <= written
        {
            self.begin += piece.bytes;
            self.pieces.pop_front();
        }
    }

    /// Restores memory to what it held after the first `written` bytes of stores.
    pub(super) fn take_back(&mut self, memory: &mut [u8], written: u64) {
        self.forget(written);
        let kept = (written - self.begin.min(written)) as usize;
        while let Some(Piece { at, old, .. }) = self.pieces.pop_back() {
            let kept = if self.pieces.is_empty() { kept.min(old.len()) } else { 0 };
            memory[at + kept..at + old.len()].copy_from_slice(&old[kept..]);
        }
    }
}
