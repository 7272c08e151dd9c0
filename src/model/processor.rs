//! The processor whose code is tuned by measured times.

/// Identifies a processor in a log of `tune`: its architecture, model and features. It is this machine's, unless it is
/// named. None if this program has no code generator for it.
#[cfg(feature = "llvm")]
pub fn key(name: Option<&str>) -> Option<String> {
    use tilewright_llvm::Processor;
    Some(name.map_or_else(Processor::detect, Processor::named).ok()?.key())
}

/// None, because this program was built without a code generator.
#[cfg(not(feature = "llvm"))]
pub fn key(_: Option<&str>) -> Option<String> {
    None
}
