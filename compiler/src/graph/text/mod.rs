//! The text form of a graph: printed, and read back to the same graph.
//!
//! ```text
//! graph "net" {
//!   %0 = input "x" : f32[N,1,28,28]
//!   %1 = constant "w" : i8[4] [1, -2, 3, 4]
//!   %2 = constant "v" : f32[64,64] blob "6c1f…"
//!   %3 = clip "act"(%0) {lo = 0.0, hi = inf} : f32[N,1,28,28]
//!   output "y" = %3
//! }
//! ```
//!
//! A node's regions follow its line, each a graph of its own that begins with `region` instead of `graph`.
//!
//! One statement per line; `#` begins a comment. Constants of up to [`INLINE_ELEMENTS`] finite elements are printed in
//! the text. Larger ones are in a separate table, under the SHA-256 of their bytes.

mod form;
mod parse;
mod print;

pub use parse::parse;
pub use print::{print, print_with_blobs};

use std::collections::BTreeMap;

/// Bytes of large constants, little-endian, keyed by their SHA-256 in lowercase hexadecimal.
pub type Blobs = BTreeMap<String, Vec<u8>>;

/// Maximum number of elements of a constant that is printed in the text.
pub const INLINE_ELEMENTS: usize = 32;
