//! Bytes aligned to cache lines, as generated code and vector loads need them.

/// Bytes of a cache line: the alignment of every buffer, and of every blob in an artifact.
pub const ALIGN: usize = 64;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct CacheLine([u8; ALIGN]);

/// A byte buffer of fixed length whose first byte is aligned to [`ALIGN`].
#[derive(Clone, Default)]
pub struct AlignedBytes {
    lines: Vec<CacheLine>,
    len: usize,
}

impl AlignedBytes {
    /// `len` zero bytes, or `None` if the system does not have that much memory.
    pub fn try_zeroed(len: usize) -> Option<AlignedBytes> {
        let count = len.div_ceil(ALIGN);
        let mut lines = Vec::new();
        lines.try_reserve_exact(count).ok()?;
        lines.resize(count, CacheLine([0; ALIGN]));
        Some(AlignedBytes { lines, len })
    }

    /// `len` zero bytes.
    pub fn zeroed(len: usize) -> AlignedBytes {
        AlignedBytes { lines: vec![CacheLine([0; ALIGN]); len.div_ceil(ALIGN)], len }
    }

    /// A copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> AlignedBytes {
        let mut copy = AlignedBytes::zeroed(bytes.len());
        copy.copy_from_slice(bytes);
        copy
    }
}

impl std::ops::Deref for AlignedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the lines are `len` or more initialized bytes in one allocation, and any byte is a valid u8.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl std::ops::DerefMut for AlignedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; the exclusive borrow of the lines is passed on.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

impl AsRef<[u8]> for AlignedBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBytes({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_aligned_and_kept() {
        for len in [0, 1, 63, 64, 65, 1000] {
            let mut bytes = AlignedBytes::zeroed(len);
            assert_eq!(AlignedBytes::try_zeroed(len).unwrap()[..], bytes[..]);
            assert_eq!(bytes.len(), len);
            assert_eq!(bytes.as_ptr() as usize % ALIGN, 0);
            bytes.fill(7);
            assert_eq!(&AlignedBytes::copy_of(&bytes)[..], &vec![7; len][..]);
        }
    }
}
