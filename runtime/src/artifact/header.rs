//! What artifacts and files of parameters begin with.

/// Bytes before the contents.
pub(super) const HEADER_BYTES: usize = 64;

/// Hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
