//! What determines the cycles of layers.

use sha2::{Digest, Sha256};

/// Number of hexadecimal digits of a hash.
const DIGITS: usize = 16;

/// Maximum number of characters of the readable text.
const MOST_TEXT: usize = 200;

/// What determines the cycles of layers: shapes and ways to compute, but no values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Workload {
    /// Identifies the workload.
    pub hash: String,
    /// What the hash is of. Long texts are cut off.
    pub text: String,
}

impl Workload {
    /// The workload that a text describes completely.
    pub fn new(text: &str) -> Workload {
        let text_part = match text.char_indices().nth(MOST_TEXT) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_string(),
        };
        Workload { hash: hash(text), text: text_part }
    }
}

/// Returns a hash of a text.
pub(super) fn hash(text: &str) -> String {
    let bytes = Sha256::digest(text.as_bytes());
    bytes.iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_but_their_hashes_differ() {
        let (a, b) = ("x".repeat(MOST_TEXT), "x".repeat(MOST_TEXT + 1));
        let (a, b) = (Workload::new(&a), Workload::new(&b));
        assert_eq!(a.text.len(), MOST_TEXT);
        assert!(b.text.starts_with(&a.text) && b.text.ends_with('…'));
        assert!(a.hash.len() == DIGITS && a.hash != b.hash);
    }
}
