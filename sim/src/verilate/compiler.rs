//! The C++ compiler that builds the Verilated design, and its flags.

use super::{run, tool_error};
use std::process::Command;
use tilewright_hw::device::DeviceError;

pub(super) const INSTALL_CXX: &str = "install a C++ compiler (apt-get install g++), or set CXX, or use --device fsim";
/// Avoids symbols that are unique in the process, which would keep the library from being unloaded. Only GCC makes
/// them.
const GNU_UNIQUE: &str = "-fno-gnu-unique";
/// Bench and model are compiled as one unit, so that the compiler can optimize calls between them.
const CXX_FLAGS: &[&str] = &[
    "-std=c++17",
    "-march=native",
    "-fPIC",
    "-fvisibility=hidden",
    GNU_UNIQUE,
    "-fno-strict-aliasing",
    "-w",
    "-DVL_USER_FINISH",
    "-DVL_USER_STOP",
    "-DVL_USER_FATAL",
];

/// What a compilation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// The final library, without a profile.
    Plain,
    /// A library that counts its branches.
    Instrumented,
    /// The final library, optimized with that profile.
    Trained,
}

impl Pass {
    pub(super) fn flags(self) -> &'static [&'static str] {
        match self {
            Pass::Plain => &[],
            Pass::Instrumented => &["-fprofile-generate", "-fprofile-update=single", "-DTW_TRAINING"],
            Pass::Trained => &["-fprofile-use", "-Wno-missing-profile"],
        }
    }
}

/// An installed C++ compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiler {
    words: Vec<String>,
    version: String,
}

impl Compiler {
    /// Finds the compiler: the one that the variable CXX names, which can include arguments, otherwise `g++`, otherwise
    /// `clang++`.
    ///
    /// # Errors
    /// [`DeviceError::Tool`] if it is not installed or does not report its version.
    pub fn find() -> Result<Compiler, DeviceError> {
        match std::env::var("CXX").ok().filter(|c| !c.trim().is_empty()) {
            Some(cxx) => Compiler::new(&cxx),
            None => Compiler::new("g++").or_else(|e| Compiler::new("clang++").map_err(|_| e)),
        }
    }

    fn new(cxx: &str) -> Result<Compiler, DeviceError> {
        let words: Vec<String> = cxx.split_whitespace().map(String::from).collect();
        let mut compiler = Compiler { words, version: String::new() };
        compiler.version = run(compiler.name(), compiler.command().arg("--version"), INSTALL_CXX)?;
        if compiler.version.is_empty() {
            return Err(tool_error(cxx, "does not report a version", INSTALL_CXX));
        }
        Ok(compiler)
    }

    /// Returns its version output.
    pub fn version(&self) -> &str {
        &self.version
    }

    pub(super) fn name(&self) -> &str {
        self.words.first().map_or("g++", String::as_str)
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(self.name());
        command.args(self.words.iter().skip(1));
        command
    }

    fn is_clang(&self) -> bool {
        self.version.contains("clang")
    }

    /// Returns the flags of every compilation.
    pub(super) fn flags(&self) -> impl Iterator<Item = &'static str> {
        let clang = self.is_clang();
        CXX_FLAGS.iter().copied().filter(move |flag| !clang || *flag != GNU_UNIQUE)
    }

    /// Returns the passes of a build. The design's code is much larger than an instruction cache and most of it rarely
    /// runs, so a fast build is compiled twice, the second time with the profile of the first. Only GCC supports this.
    pub(super) fn passes(&self, fast: bool) -> &'static [Pass] {
        if fast && !self.is_clang() { &[Pass::Instrumented, Pass::Trained] } else { &[Pass::Plain] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiler(version: &str) -> Compiler {
        Compiler { words: vec!["c++".into()], version: version.into() }
    }

    #[test]
    fn clang_gets_no_flag_that_it_does_not_know() {
        let clang = compiler("Debian clang version 19.1.7");
        assert!(clang.flags().all(|flag| flag != GNU_UNIQUE));
        assert_eq!(clang.passes(true), [Pass::Plain]);
        let gcc = compiler("g++ (Debian 12.2.0-14) 12.2.0");
        assert!(gcc.flags().any(|flag| flag == GNU_UNIQUE));
        assert_eq!(gcc.passes(true), [Pass::Instrumented, Pass::Trained]);
        assert_eq!(gcc.passes(false), [Pass::Plain]);
    }

    #[test]
    fn arguments_of_the_compiler_stay_its_own() {
        let compiler = Compiler { words: vec!["ccache".into(), "g++".into()], version: String::new() };
        assert_eq!(compiler.name(), "ccache");
        assert_eq!(compiler.command().get_args().collect::<Vec<_>>(), ["g++"]);
        assert!(Compiler::new("no-such-compiler").is_err());
    }
}
