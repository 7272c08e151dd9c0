//! Device memory at the host, which the core reads and writes over the link.

use std::collections::HashMap;
use tilewright_hw::config::{HwConfig, PAGE_BYTES};
use tilewright_hw::device::memory_range;
use tilewright_hw::link::{ToBoard, frame};

/// Device memory, what a command has changed in it, and how many bytes of it passed over the link.
#[derive(Debug)]
pub struct HostMemory {
    bytes: Vec<u8>,
    beat_bytes: usize,
    /// Pages as they were before the running command wrote to them.
    before: HashMap<usize, Vec<u8>>,
    /// Bytes that the command has read and written.
    pub carried: (u64, u64),
}

impl HostMemory {
    /// Memory filled with zeros.
    pub fn new(config: &HwConfig, bytes: u64) -> HostMemory {
        HostMemory {
            bytes: vec![0; bytes as usize],
            beat_bytes: config.bus_bytes() as usize,
            before: HashMap::new(),
            carried: (0, 0),
        }
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its bytes, for the host to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Starts a command, whose changes can then be undone.
    pub fn begin(&mut self) {
        self.before.clear();
        self.carried = (0, 0);
    }

    /// Undoes the command's changes.
    pub fn undo(&mut self) {
        for (page, before) in self.before.drain() {
            self.bytes[page * PAGE_BYTES as usize..][..before.len()].copy_from_slice(&before);
        }
        self.carried = (0, 0);
    }

    /// Answers a read request with the beats, or with a bus error if they pass the end.
    pub fn read(&mut self, client: u8, addr: u64, beats: usize) -> Vec<u8> {
        let len = beats * self.beat_bytes;
        let range = memory_range(addr, len as u64, self.bytes.len() as u64);
        let mut body = Vec::with_capacity(3 + len);
        body.extend([client, (beats - 1) as u8, u8::from(range.is_err())]);
        match range {
            Ok(range) => body.extend_from_slice(&self.bytes[range]),
            Err(_) => body.resize(3 + len, 0),
        }
        self.carried.0 += len as u64;
        frame(ToBoard::ReadData as u8, &body)
    }

    /// Executes a write request if it is inside memory, and returns the answer.
    pub fn write(&mut self, addr: u64, strobes: [u64; 2], data: &[u8]) -> Vec<u8> {
        let beats = data.len() / self.beat_bytes;
        let range = memory_range(addr, data.len() as u64, self.bytes.len() as u64).ok();
        if let Some(range) = &range {
            self.keep(range.clone());
        }
        for (at, byte) in data.iter().enumerate() {
            let (beat, lane) = (at / self.beat_bytes, at % self.beat_bytes);
            let first = beat > 0 || strobes[0] >> lane & 1 == 1;
            let last = beat + 1 < beats || strobes[1] >> lane & 1 == 1;
            if first && last {
                self.carried.1 += 1;
                if let Some(range) = &range {
                    self.bytes[range.start + at] = *byte;
                }
            }
        }
        frame(ToBoard::WriteDone as u8, &[u8::from(range.is_none())])
    }

    /// Saves the pages of a range, unless they are already saved.
    fn keep(&mut self, range: std::ops::Range<usize>) {
        let page_bytes = PAGE_BYTES as usize;
        for page in range.start / page_bytes..range.end.div_ceil(page_bytes) {
            let (start, end) = (page * page_bytes, ((page + 1) * page_bytes).min(self.bytes.len()));
            self.before.entry(page).or_insert_with(|| self.bytes[start..end].to_vec());
        }
    }
}
