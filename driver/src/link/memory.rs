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

    /// Writes bytes for the host. Undoing the running command does not undo this.
    pub fn write_host(&mut self, at: usize, bytes: &[u8]) {
        let (page_bytes, to) = (PAGE_BYTES as usize, at + bytes.len());
        self.bytes[at..to].copy_from_slice(bytes);
        for page in at / page_bytes..to.div_ceil(page_bytes) {
            if let Some(before) = self.before.get_mut(&page) {
                let start = page * page_bytes;
                let (from, to) = (at.max(start), to.min(start + before.len()));
                before[from - start..to - start].copy_from_slice(&bytes[from - at..to - at]);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_writes_meanwhile_is_not_undone() {
        let config = HwConfig { bus_bits: 64, ..HwConfig::default() };
        let mut memory = HostMemory::new(&config, 4 * u64::from(PAGE_BYTES));
        memory.write_host(0, &[1; 4 * PAGE_BYTES as usize]);
        memory.begin();
        // The command writes to pages 0 and 1, the host across pages 1 and 2.
        memory.write(0, [0xff; 2], &[2; 8]);
        memory.write(PAGE_BYTES.into(), [0xff; 2], &[2; 8]);
        let at = 2 * PAGE_BYTES as usize - 3;
        memory.write_host(at, &[3; 6]);
        memory.undo();
        let mut expected = vec![1; 4 * PAGE_BYTES as usize];
        expected[at..at + 6].fill(3);
        assert!(memory.bytes() == expected);
    }
}
