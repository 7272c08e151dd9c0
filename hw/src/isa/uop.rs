//! Micro-ops: the indices that gemm and vector read from their own memories.

use crate::config::HwConfig;

/// Indices of one gemm micro-op, before loops and bases are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GemmUop {
    /// Entry of acc.
    pub acc: u32,
    /// Entry of inp.
    pub inp: u32,
    /// Entry of wgt.
    pub wgt: u32,
}

/// Indices of one vector micro-op, before loops and bases are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct VectorUop {
    /// Entry of the destination.
    pub dst: u32,
    /// Entry of the first operand.
    pub a: u32,
    /// Entry of the second operand.
    pub b: u32,
}

/// Packs three indices, lowest first, into `bytes` little-endian bytes; an index is truncated to its width.
pub fn encode_uop(indices: [u32; 3], widths: [u32; 3], bytes: u32) -> Vec<u8> {
    let mut word = 0u128;
    let mut at = 0;
    for (index, width) in indices.into_iter().zip(widths) {
        word |= (u128::from(index) & ((1 << width) - 1)) << at;
        at += width;
    }
    word.to_le_bytes()[..bytes as usize].to_vec()
}

/// Unpacks what [`encode_uop`] packed; missing bytes read as zero.
pub fn decode_uop(bytes: &[u8], widths: [u32; 3]) -> [u32; 3] {
    let mut raw = [0u8; 16];
    let n = bytes.len().min(16);
    raw[..n].copy_from_slice(&bytes[..n]);
    let word = u128::from_le_bytes(raw);
    let index = |at: u32, width: u32| (word >> at) as u32 & ((1u64 << width) - 1) as u32;
    let [first, second, third] = widths;
    [index(0, first), index(first, second), index(first + second, third)]
}

impl GemmUop {
    /// The bytes in memory: acc, inp, wgt from the lowest bit.
    pub fn to_bytes(&self, config: &HwConfig) -> Vec<u8> {
        encode_uop([self.acc, self.inp, self.wgt], config.gemm_index_bits(), config.gemm_uop_bytes())
    }

    /// Reads a micro-op from its bytes in memory.
    pub fn from_bytes(bytes: &[u8], config: &HwConfig) -> GemmUop {
        let [acc, inp, wgt] = decode_uop(bytes, config.gemm_index_bits());
        GemmUop { acc, inp, wgt }
    }
}

impl VectorUop {
    /// The bytes in memory: dst, a, b from the lowest bit.
    pub fn to_bytes(&self, config: &HwConfig) -> Vec<u8> {
        encode_uop([self.dst, self.a, self.b], [config.vector_index_bits(); 3], config.vector_uop_bytes())
    }

    /// Reads a micro-op from its bytes in memory.
    pub fn from_bytes(bytes: &[u8], config: &HwConfig) -> VectorUop {
        let [dst, a, b] = decode_uop(bytes, [config.vector_index_bits(); 3]);
        VectorUop { dst, a, b }
    }
}
