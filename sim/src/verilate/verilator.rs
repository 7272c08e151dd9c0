//! The Verilator that builds a simulator: its version, and the folder of its library.

use super::{run, tool_error};
use std::path::{Path, PathBuf};
use std::process::Command;
use tilewright_hw::device::DeviceError;
use tilewright_hw::flow::tools;

/// The variable that Verilator checks first for its own files, whichever program is called.
const ROOT: &str = "VERILATOR_ROOT";

/// An installed Verilator that is new enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verilator {
    /// The program, if it is not the one on PATH.
    program: Option<PathBuf>,
    version: String,
    include: PathBuf,
}

pub(super) fn install_verilator() -> String {
    let least = tools::version_of("VERILATOR");
    format!("install Verilator {least} or newer (apt-get install verilator), or use --device fsim")
}

fn command_of(program: Option<&Path>) -> Command {
    let Some(program) = program else { return Command::new("verilator") };
    let mut command = Command::new(program);
    // The variable would point to another version's files.
    command.env_remove(ROOT);
    command
}

/// Returns Verilator's version. A build without a version number reports only a revision; the header of its library
/// then has the number. Returns `None` if neither has it: digits of a revision are not a version.
fn version_of(says: &str, header: &str) -> Option<String> {
    let line = says.lines().next().unwrap_or_default().trim();
    if line.starts_with("Verilator ") {
        return Some(line.into());
    }
    let number = header.lines().find_map(|l| l.strip_prefix("#define VERILATOR_VERSION "))?;
    Some(format!("Verilator {} ({line})", number.trim().trim_matches('"')))
}

impl Verilator {
    /// Finds the program at a path or, without one, `verilator` on PATH.
    ///
    /// # Errors
    /// [`DeviceError::Tool`] if it is missing or too old, or does not report its version.
    pub fn find(program: Option<&Path>) -> Result<Verilator, DeviceError> {
        let ask = |arguments: &[&str]| run("verilator", command_of(program).args(arguments), &install_verilator());
        let says = ask(&["--version"])?;
        let include = Path::new(ask(&["--getenv", ROOT])?.trim()).join("include");
        let header = std::fs::read_to_string(include.join("verilated_config.h")).unwrap_or_default();
        let version = version_of(&says, &header).ok_or_else(|| {
            let reason = format!("does not report its version, only {:?}", says.trim());
            tool_error("verilator", reason, &install_verilator())
        })?;
        if !tools::at_least(&version, tools::version_of("VERILATOR")) {
            let reason = format!("has version {version:?}, which is too old");
            return Err(tool_error("verilator", reason, &install_verilator()));
        }
        Ok(Verilator { program: program.map(Path::to_path_buf), version, include })
    }

    /// Returns its version in one line.
    pub fn version(&self) -> &str {
        &self.version
    }

    pub(super) fn command(&self) -> Command {
        command_of(self.program.as_deref())
    }

    /// Returns the folder of its library's sources and headers.
    pub(super) fn include(&self) -> &Path {
        &self.include
    }

    /// Returns the libraries to link for a model with waves. Newer versions also need LZ4, as their makefile shows.
    pub(super) fn libraries_of_waves(&self) -> Vec<&'static str> {
        let makefile = std::fs::read_to_string(self.include.join("verilated.mk")).unwrap_or_default();
        ["-llz4", "-lz"].into_iter().filter(|library| *library == "-lz" || makefile.contains(library)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_without_a_number_is_the_one_of_its_library() {
        let header = "#define VERILATOR_PRODUCT \"Verilator\"\n#define VERILATOR_VERSION \"5.49\"\n";
        let debian = "Verilator 5.006 2023-01-22 rev (Debian 5.006-3)\n";
        assert_eq!(version_of(debian, header).unwrap(), debian.trim());
        let packaged = version_of(" rev vUNKNOWN-built20260516-4e853d8\n", header).unwrap();
        assert_eq!(packaged, "Verilator 5.49 (rev vUNKNOWN-built20260516-4e853d8)");
        assert!(tools::at_least(&packaged, "5.006"));
        // Digits of a revision must not pass as a version.
        assert_eq!(version_of(" rev vUNKNOWN-built20260516\n", ""), None);
    }
}
