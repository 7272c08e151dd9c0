//! Elements of less than a byte: the first one is in the low bits of a byte.

/// Whether `count` elements of `width` bits fill so many bytes.
pub(super) fn fill(bytes: &[u8], width: usize, count: usize) -> bool {
    count.checked_mul(width).is_some_and(|bits| bits.div_ceil(8) == bytes.len())
}

/// The bits of element `i`.
pub(super) fn unsigned(bytes: &[u8], width: usize, i: usize) -> u8 {
    let at = i * width;
    bytes[at / 8] >> (at % 8) & ((1u16 << width) - 1) as u8
}

/// Element `i` with its sign.
pub(super) fn signed(bytes: &[u8], width: usize, i: usize) -> i8 {
    let unused = 8 - width;
    (unsigned(bytes, width, i) << unused).cast_signed() >> unused
}
