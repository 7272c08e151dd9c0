//! Micro-op kernels: each distinct kernel is in the program's constants once, and stays in the unit's memory while
//! there is room.

use std::collections::HashMap;

/// Position of a kernel in the micro-op memory, and what must be loaded first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// First micro-op.
    pub start: u32,
    /// Byte in the image from which to load it; `None` if it is resident.
    pub load: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Resident {
    start: u32,
    uops: u32,
    last_use: u64,
    image: u64,
}

/// Contents of one micro-op memory, known by analysis.
#[derive(Debug)]
pub struct UopCache {
    depth: u32,
    align: u64,
    image: Vec<u8>,
    /// The places of kernels in the image. A kernel's key are the indices of its micro-ops.
    known: HashMap<Vec<u32>, u64>,
    resident: Vec<Resident>,
    now: u64,
}

impl UopCache {
    /// An empty memory of `depth` micro-ops; kernels start at multiples of `align` bytes.
    pub fn new(depth: u32, align: u64) -> UopCache {
        UopCache { depth, align: align.max(1), image: Vec::new(), known: HashMap::new(), resident: Vec::new(), now: 0 }
    }

    /// Places a kernel, given the three indices of each of its micro-ops; `None` if it is longer than the memory.
    /// `encoded` returns its bytes, if it is new.
    ///
    /// Evicts the least recently used kernels if there is no room.
    pub fn place(&mut self, kernel: &[u32], encoded: impl FnOnce() -> Vec<u8>) -> Option<Placement> {
        let uops = kernel.len() as u32 / 3;
        if uops > self.depth {
            return None;
        }
        self.now += 1;
        let image = match self.known.get(kernel) {
            Some(&at) => at,
            None => {
                let at = (self.image.len() as u64).next_multiple_of(self.align);
                self.image.resize(at as usize, 0);
                self.image.extend_from_slice(&encoded());
                self.known.insert(kernel.to_vec(), at);
                at
            }
        };
        if let Some(found) = self.resident.iter_mut().find(|r| r.image == image && r.uops == uops) {
            found.last_use = self.now;
            return Some(Placement { start: found.start, load: None });
        }
        let start = loop {
            if let Some(start) = self.gap(uops) {
                break start;
            }
            let oldest = self.resident.iter().enumerate().min_by_key(|(_, r)| r.last_use)?.0;
            self.resident.remove(oldest);
        };
        self.resident.push(Resident { start, uops, last_use: self.now, image });
        self.resident.sort_by_key(|r| r.start);
        Some(Placement { start, load: Some(image) })
    }

    fn gap(&self, uops: u32) -> Option<u32> {
        let mut at = 0;
        for r in &self.resident {
            if r.start - at >= uops {
                return Some(at);
            }
            at = r.start + r.uops;
        }
        (self.depth - at >= uops).then_some(at)
    }

    /// The image of all kernels.
    pub fn take_image(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_shared_and_the_oldest_gives_way() {
        let mut cache = UopCache::new(8, 1);
        let mut place = |n: u8, uops: usize| cache.place(&vec![n.into(); 3 * uops], || vec![n; 4 * uops]);
        assert_eq!(place(1, 4), Some(Placement { start: 0, load: Some(0) }));
        assert_eq!(place(2, 4), Some(Placement { start: 4, load: Some(16) }));
        assert_eq!(place(1, 4), Some(Placement { start: 0, load: None }));
        assert_eq!(place(3, 2), Some(Placement { start: 4, load: Some(32) }));
        assert_eq!(place(2, 4), Some(Placement { start: 0, load: Some(16) }));
        assert_eq!(place(9, 9), None);
    }
}
