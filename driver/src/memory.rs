//! The host's allocator for a device's memory.

use crate::error::DriverError;
use tilewright_hw::HwConfig;

/// Alignment in bytes of regions, streams and tensors in device memory, and the granularity of its allocation.
pub const ALIGN: u64 = 4096;

/// A piece of device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// First byte.
    pub addr: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Tracks which bytes of a device are taken. A block comes from the first gap that is large enough.
#[derive(Debug, Clone)]
pub struct DeviceMemory {
    size: u64,
    /// Taken blocks by address.
    taken: Vec<Block>,
}

impl DeviceMemory {
    /// An empty memory of `bytes`, limited to the `2^offset_bits` that the configuration's addresses reach.
    pub fn new(bytes: u64, config: &HwConfig) -> DeviceMemory {
        DeviceMemory { size: bytes.min(1 << config.offset_bits), taken: Vec::new() }
    }

    /// Bytes that are free.
    pub fn free_bytes(&self) -> u64 {
        self.size - self.taken.iter().map(|b| b.bytes).sum::<u64>()
    }

    /// Takes a block for each named size, aligned to `align`; takes all blocks or none.
    ///
    /// # Errors
    /// [`DriverError::DoesNotFit`] with the sizes.
    pub fn plan(&mut self, sizes: &[(String, u64)], align: u64) -> Result<Vec<Block>, DriverError> {
        let before = self.taken.clone();
        let blocks: Option<Vec<Block>> = sizes.iter().map(|(_, bytes)| self.take(*bytes, align)).collect();
        blocks.ok_or_else(|| {
            self.taken = before;
            DriverError::DoesNotFit {
                needed: sizes.iter().fold(0, |sum: u64, (_, bytes)| {
                    sum.saturating_add(bytes.checked_next_multiple_of(align.max(1)).unwrap_or(u64::MAX))
                }),
                free: self.free_bytes(),
                size: self.size,
                regions: sizes.to_vec(),
            }
        })
    }

    fn take(&mut self, bytes: u64, align: u64) -> Option<Block> {
        let bytes = bytes.max(1);
        let mut at = 0u64;
        let mut place = self.taken.len();
        for (i, b) in self.taken.iter().enumerate() {
            if b.addr.checked_sub(at).is_some_and(|gap| gap >= bytes) {
                place = i;
                break;
            }
            at = (b.addr + b.bytes).checked_next_multiple_of(align.max(1))?;
        }
        let block = Block { addr: at, bytes };
        if at.checked_add(bytes)? > self.size {
            return None;
        }
        self.taken.insert(place, block);
        Some(block)
    }

    /// Whether a block was taken as it is and not freed since.
    pub fn has(&self, block: &Block) -> bool {
        self.taken.contains(block)
    }

    /// Frees blocks.
    pub fn release(&mut self, blocks: &[Block]) {
        self.taken.retain(|b| !blocks.contains(b));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_beyond_all_memory_are_refused() {
        let mut memory = DeviceMemory::new(1000, &HwConfig::default());
        let refusal = memory.plan(&[("a".into(), u64::MAX - 3), ("b".into(), 100)], 64).unwrap_err().to_string();
        assert!(refusal.starts_with(&format!("the program needs {} bytes", u64::MAX)), "{refusal}");
    }

    #[test]
    fn gaps_are_used_and_what_does_not_fit_is_refused_with_sizes() {
        let mut memory = DeviceMemory::new(1000, &HwConfig::default());
        let named = |sizes: &[u64]| sizes.iter().map(|&s| (format!("r{s}"), s)).collect::<Vec<_>>();
        let a = memory.plan(&named(&[100, 200, 300]), 64).unwrap();
        assert_eq!(a.iter().map(|b| b.addr).collect::<Vec<_>>(), [0, 128, 384]);
        let free = memory.free_bytes();
        let refusal = memory.plan(&named(&[100, 400]), 64).unwrap_err().to_string();
        assert!(refusal.contains("r400 400") && refusal.contains("1000"), "{refusal}");
        assert_eq!(memory.free_bytes(), free);
        assert!(memory.has(&a[1]) && !memory.has(&Block { bytes: 100, ..a[1] }));
        memory.release(&a[1..2]);
        assert!(!memory.has(&a[1]));
        assert_eq!(memory.plan(&named(&[150]), 64).unwrap()[0].addr, 128);
    }
}
