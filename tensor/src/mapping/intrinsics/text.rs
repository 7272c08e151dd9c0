//! Intrinsics from their text.

use crate::tir::{Intrinsic, TirError, parse};

/// Parses the text of an intrinsic.
pub fn intrinsic(text: &str) -> Result<Intrinsic, TirError> {
    let mut isa = parse(&format!("function isa {{ {text} }}"))?;
    isa.intrinsics
        .pop()
        .ok_or_else(|| TirError::Malformed { function: isa.name, problems: vec!["it has no intrinsic".into()] })
}
