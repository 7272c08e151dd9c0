//! The files of a design.

/// A file of a design.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Its name.
    pub name: String,
    /// Its contents.
    pub text: String,
}

impl SourceFile {
    /// A file.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> SourceFile {
        SourceFile { name: name.into(), text: text.into() }
    }
}

/// The files of a design, and the core's clock.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The files, SystemVerilog packages first.
    pub files: Vec<SourceFile>,
    /// The core's clock, MHz.
    pub mhz: f64,
}

impl Sources {
    /// Returns the names of the SystemVerilog and Verilog files, packages first.
    pub fn verilog(&self) -> impl Iterator<Item = &str> {
        let is_verilog = |name: &&str| name.ends_with(".sv") || name.ends_with(".v");
        self.files.iter().map(|file| file.name.as_str()).filter(is_verilog)
    }
}
