//! The processor whose code is tuned by measured times.

/// Identifies this machine's processor in a log of `tune`: its architecture, model and features. None if this program
/// has no code generator for it.
#[cfg(feature = "llvm")]
pub fn key() -> Option<String> {
    Some(tilewright_llvm::Processor::detect().ok()?.key())
}

/// None, because this program was built without a code generator.
#[cfg(not(feature = "llvm"))]
pub fn key() -> Option<String> {
    None
}
