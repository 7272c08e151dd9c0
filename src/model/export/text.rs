//! Pieces of C.

use std::fmt::Write;

/// A C source with bytes under a symbol, as words of 64 bits, which are aligned for all elements.
pub(super) fn words(symbol: &str, bytes: &[u8]) -> String {
    let mut text = format!("#include <stdint.h>\n\nextern const uint64_t {symbol}[];\nconst uint64_t {symbol}[] = {{");
    for (i, part) in bytes.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        let _ = write!(text, "{}0x{:x}u,", if i % 5 == 0 { "\n    " } else { " " }, u64::from_le_bytes(word));
    }
    text + if bytes.is_empty() { "\n    0,\n};\n" } else { "\n};\n" }
}

/// Escapes text for a C comment.
pub(in crate::model) fn comment(text: &str) -> String {
    text.replace("*/", "* /").replace("/*", "/ *").replace(['\n', '\r', '\\'], " ")
}
