//! A design as files.

/// A design's files by name, and the clock that its core has.
#[derive(Debug, Clone)]
pub struct Sources {
    /// Name and text, SystemVerilog packages first.
    pub files: Vec<(String, String)>,
    /// The core's clock, MHz.
    pub mhz: f64,
}

impl Sources {
    /// The names of the files that tools read as SystemVerilog, packages first.
    pub fn verilog(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(name, _)| name.as_str()).filter(|name| name.ends_with(".sv") || name.ends_with(".v"))
    }
}
