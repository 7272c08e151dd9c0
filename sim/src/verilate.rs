//! Builds libraries of Verilated designs, each only once.
//!
//! The result is a shared library in the cache directory, in a folder named by a hash of all inputs. It is built in a
//! temporary folder and renamed, so that concurrent builds do not interfere.

mod compile;
mod compiler;
mod sources;
mod verilator;

pub use compiler::Compiler;
pub use verilator::Verilator;

use compile::{CompileUnit, compile, shared};
use compiler::{INSTALL_CXX, Pass};
use sha2::{Digest, Sha256};
use sources::Sources;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use tilewright_hw::cache;
use tilewright_hw::device::DeviceError;
use tilewright_hw::interrupt::Interrupted;
use tilewright_hw::process;
use verilator::install_verilator;

const LIBRARY: &str = "libtw_core.so";
const SHIM: &str = "shim.cpp";
/// Code that runs once, as a single file because reading its headers takes longest.
const SLOW: &str = "slow.cpp";
/// The shim and the small files that run in every cycle, as a single file for the same reason.
const SMALL: &str = "small.cpp";
/// Size in bytes up to which a file is small.
const SMALL_BYTES: u64 = 1 << 15;
/// Report in the library's folder: the tools used, and which files were optimized.
const REPORT: &str = "build.txt";

/// Progress of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The library was in the cache.
    Cached,
    /// Verilator is running.
    Verilating,
    /// The C++ compiler is running: files done, files in all, and how many files are optimized because they run in
    /// every cycle.
    Compiling(usize, usize, usize),
    /// The instrumented design is running, so that the compiler learns which code is frequent.
    Training,
    /// The library was built.
    Built,
    /// The library is ready, but runs will be slower: this Verilator version uses other names than
    /// [`crate::Rtl::has_direct_edges`] needs.
    SlowEdges,
}

/// Build options of a design.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flags {
    pub(crate) waves: bool,
    pub(crate) assertions: bool,
    pub(crate) stalls: bool,
}

/// The inputs of a library. Its name is a hash of all of them except the defines, which follow from the rest; for
/// Verilator, of its version.
#[derive(Debug, Clone)]
pub(crate) struct Recipe<'a> {
    /// Prefix of the library's folder name.
    pub(crate) kind: &'static str,
    /// The top module.
    pub(crate) top: &'a str,
    /// The C++ class of the model.
    pub(crate) class: &'static str,
    /// The configuration's package as file name and text, if it is not among the sources.
    pub(crate) package: Option<(&'static str, String)>,
    /// The sources as name and text: packages first, headers included.
    pub(crate) sources: Vec<(&'a str, &'a str)>,
    /// A module that wraps them, as file name and text.
    pub(crate) bench: Option<(&'static str, &'static str)>,
    /// The C++ program around the model.
    pub(crate) shim: &'static str,
    /// A header for the shim, generated for the design, as name and text.
    pub(crate) header: Option<(&'static str, String)>,
    /// Macros for the shim, as name and value.
    pub(crate) defines: Vec<(&'static str, u32)>,
    /// The build options.
    pub(crate) flags: Flags,
    /// Whether the library is for long runs, which justify a slow build: an instrumented library runs first, and its
    /// profile optimizes the second one.
    pub(crate) long_runs: bool,
    /// The Verilator to use, if not the one on PATH.
    pub(crate) verilator: Option<PathBuf>,
}

impl Recipe<'_> {
    fn is_fast(&self) -> bool {
        self.long_runs && is_fast_build(self.flags)
    }

    /// Returns the model's optimization level. For short runs, a higher one would take longer to build than it saves.
    fn optimization(&self) -> &'static str {
        if self.is_fast() { "-O3" } else { "-O1" }
    }
}

pub(crate) fn tool_error(tool: &str, reason: impl ToString, remedy: &str) -> DeviceError {
    DeviceError::Tool { tool: tool.into(), reason: reason.to_string(), remedy: remedy.into() }
}

fn io_error(path: &Path, e: &std::io::Error) -> DeviceError {
    tool_error(&path.display().to_string(), e, "choose a writable cache directory")
}

/// Returns the default cache directory.
///
/// # Errors
/// [`DeviceError::Tool`] if neither `XDG_CACHE_HOME` nor `HOME` is set.
pub fn default_cache_dir() -> Result<PathBuf, DeviceError> {
    tilewright_hw::cache::folder()
        .ok_or_else(|| tool_error("cache directory", "neither XDG_CACHE_HOME nor HOME is set", "set one of them"))
}

/// Runs a program and returns its output. It ends with this program, and when the work is stopped.
fn run(tool: &str, command: &mut Command, remedy: &str) -> Result<String, DeviceError> {
    let output = process::output(command).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => tool_error(tool, "is not installed", remedy),
        _ if process::is_interrupted(&e) => Interrupted.into(),
        _ => tool_error(tool, e, remedy),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let from = text.find("%Error").or_else(|| text.find("error")).unwrap_or(0);
    let reason: Vec<&str> = text[from..].lines().take(8).collect();
    Err(tool_error(tool, format!("failed: {}", reason.join("\n")), "see the message above"))
}

fn verilator_flags<'a>(recipe: &Recipe<'a>) -> Vec<&'a str> {
    let flags = recipe.flags;
    let mut list = vec![
        "--cc",
        "-O3",
        "--x-assign",
        "fast",
        "--x-initial",
        "fast",
        "-Wno-fatal",
        "-Wno-lint",
        "-Wno-style",
        "--prefix",
        recipe.class,
        "--Mdir",
        "obj",
        "--top-module",
        recipe.top,
    ];
    if flags.assertions {
        // Values that nothing may depend on become noise (`tw_ram`).
        list.extend(["--assert", "-DTW_STRICT"]);
    }
    if flags.stalls {
        list.push("-DTW_STALLS");
    }
    if flags.waves {
        list.extend(["--trace-fst", "--trace-structs"]);
    }
    list
}

/// Returns whether a build is meant for long runs. Builds with assertions, waves or stalls are for short runs.
pub(crate) fn is_fast_build(flags: Flags) -> bool {
    !flags.assertions && !flags.waves && !flags.stalls
}

/// Returns the features of this processor. All code is compiled for it.
fn processor() -> String {
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    processor.lines().find(|l| l.starts_with("flags")).unwrap_or(std::env::consts::ARCH).into()
}

/// Returns the hash of a list of texts.
fn hash<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut sha = Sha256::new();
    for text in texts {
        sha.update((text.len() as u64).to_le_bytes());
        sha.update(text.as_bytes());
    }
    sha.finalize()[..12].iter().map(|b| format!("{b:02x}")).collect()
}

/// Returns the hash that names a build with these tools.
fn key(recipe: &Recipe, verilator: &Verilator, compiler: &Compiler) -> String {
    let processor = processor();
    let mut texts = vec![verilator.version(), compiler.version(), processor.as_str(), recipe.shim];
    texts.extend(recipe.bench.map(|(_, text)| text));
    texts.append(&mut verilator_flags(recipe));
    compiler.flags().chain([recipe.optimization()]).for_each(|flag| texts.push(flag));
    compiler.passes(recipe.is_fast()).iter().flat_map(|pass| pass.flags()).for_each(|flag| texts.push(flag));
    texts.extend(recipe.header.as_ref().map(|(_, text)| text.as_str()));
    texts.extend(recipe.package.as_ref().map(|(_, text)| text.as_str()));
    recipe.sources.iter().for_each(|(name, text)| texts.extend([name, text]));
    hash(texts)
}

/// Returns a lock per folder, so that a process does not build the same thing twice at the same time.
fn lock_of(home: &Path) -> Arc<Mutex<()>> {
    static LOCKS: LazyLock<Mutex<HashMap<PathBuf, Arc<Mutex<()>>>>> = LazyLock::new(Default::default);
    LOCKS.lock().unwrap_or_else(PoisonError::into_inner).entry(home.into()).or_default().clone()
}

/// Finds the programs that build a simulator of the RTL.
///
/// # Errors
/// [`DeviceError`] that names what to install. If both are missing, it names Verilator, which is harder to get.
pub fn find_tools() -> Result<(Verilator, Compiler), DeviceError> {
    Ok((Verilator::find(None)?, Compiler::find()?))
}

/// Finds Verilator, at the given path or on PATH, and the compiler. The versions of each pair are queried only once,
/// since that takes as long as loading a library.
fn known_tools(verilator: Option<PathBuf>) -> Result<(Verilator, Compiler), DeviceError> {
    type Named = (Option<PathBuf>, [Option<OsString>; 2]);
    static KNOWN: LazyLock<Mutex<HashMap<Named, (Verilator, Compiler)>>> = LazyLock::new(Default::default);
    let named = (verilator, ["PATH", "CXX"].map(std::env::var_os));
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(tools) = known.get(&named) {
        return Ok(tools.clone());
    }
    let tools = (Verilator::find(named.0.as_deref())?, Compiler::find()?);
    known.insert(named, tools.clone());
    Ok(tools)
}

/// Runs an instrumented library and writes its profile.
pub(crate) type Train<'a> = &'a dyn Fn(&Path) -> Result<(), DeviceError>;

/// Returns the shared library of a recipe. Builds it unless it is cached.
pub(crate) fn library(
    recipe: &Recipe,
    cache: &Path,
    progress: &dyn Fn(Progress),
    train: Train,
) -> Result<PathBuf, DeviceError> {
    let (verilator, compiler) = known_tools(recipe.verilator.clone())?;
    let key = key(recipe, &verilator, &compiler);
    let home = cache.join(format!("{}-{key}", recipe.kind));
    let (library, is_new) = place(cache, &home, LIBRARY, |work| {
        build(recipe, (&verilator, &compiler), (cache, work), progress, train)?;
        // The compiler's intermediate files are no longer needed.
        let _ = std::fs::remove_dir_all(work.join("obj"));
        Ok(())
    })?;
    progress(if is_new { Progress::Built } else { Progress::Cached });
    Ok(library)
}

/// Returns a file of a folder in the cache, and whether it was built now. A missing folder is built under a temporary
/// name and renamed.
fn place(
    cache: &Path,
    home: &Path,
    file: &str,
    build: impl FnOnce(&Path) -> Result<(), DeviceError>,
) -> Result<(PathBuf, bool), DeviceError> {
    let lock = lock_of(home);
    let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
    let made = home.join(file);
    if made.exists() {
        return Ok((made, false));
    }
    std::fs::create_dir_all(cache).map_err(|e| io_error(cache, &e))?;
    cache::remove_left_builds(cache);
    let work =
        tempfile::Builder::new().prefix(cache::BUILD_PREFIX).tempdir_in(cache).map_err(|e| io_error(cache, &e))?;
    build(work.path())?;
    let work = work.keep();
    if std::fs::rename(&work, home).is_err() {
        // Another process was faster.
        let _ = std::fs::remove_dir_all(&work);
        if !made.exists() {
            return Err(tool_error(&home.display().to_string(), "cannot be written", "clear the cache directory"));
        }
    }
    Ok((made, true))
}

/// Returns the text of the build report.
fn report(recipe: &Recipe, verilator: &Verilator, compiler: &Compiler, of_model: &Sources) -> String {
    let trained = compiler.passes(recipe.is_fast()).contains(&Pass::Trained);
    let how = if trained { ", optimized with a profile of branches" } else { "" };
    format!(
        "{}\n{}\nrun in every cycle, compiled with {}{how}: {}\nrun once, compiled with -O0: {}\n",
        verilator.version(),
        compiler.version().lines().next().unwrap_or_default(),
        recipe.optimization(),
        of_model.fast.join(" "),
        of_model.slow.join(" "),
    )
}

/// Returns a file that includes others.
fn includes<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    names.into_iter().map(|name| format!("#include \"{name}.cpp\"\n")).collect()
}

fn build(
    recipe: &Recipe,
    (verilator, compiler): (&Verilator, &Compiler),
    (cache, work): (&Path, &Path),
    progress: &dyn Fn(Progress),
    train: Train,
) -> Result<(), DeviceError> {
    let write = |name: &str, text: &str| {
        let path = work.join(name);
        let parent = path.parent().unwrap_or(work);
        std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text)).map_err(|e| io_error(&path, &e))
    };
    let package = recipe.package.iter().map(|(name, text)| (*name, text.as_str()));
    let verilog: Vec<(&str, &str)> = package.chain(recipe.sources.iter().copied()).chain(recipe.bench).collect();
    let header = recipe.header.iter().map(|(name, text)| (*name, text.as_str()));
    for (name, text) in verilog.iter().copied().chain(header).chain([(SHIM, recipe.shim)]) {
        write(name, text)?;
    }
    progress(Progress::Verilating);
    let mut verilate = verilator.command();
    verilate.current_dir(work).args(verilator_flags(recipe));
    // Headers are found by name. Packages and modules are listed.
    verilate.args(verilog.iter().map(|(name, _)| *name).filter(|n| n.ends_with(".sv") || n.ends_with(".v"))).arg("-I.");
    run("verilator", &mut verilate, &install_verilator())?;

    let obj = work.join("obj");
    let makefile = obj.join(format!("{}_classes.mk", recipe.class));
    let lists = std::fs::read_to_string(&makefile).map_err(|e| io_error(&makefile, &e))?;
    let of_model = Sources::read(&lists).map_err(|reason| tool_error("verilator", reason, &install_verilator()))?;
    write(SLOW, &includes(&of_model.slow))?;
    write(REPORT, &report(recipe, verilator, compiler, &of_model))?;
    let is_small =
        |name: &&String| std::fs::metadata(obj.join(format!("{name}.cpp"))).is_ok_and(|file| file.len() <= SMALL_BYTES);
    let (small, large): (Vec<&String>, Vec<&String>) = of_model.fast.iter().partition(is_small);
    write(SMALL, &(includes(small) + &format!("#include \"{SHIM}\"\n")))?;
    let unit = |source: PathBuf, slow| {
        let object = source.with_extension("o");
        CompileUnit { source, object, slow }
    };
    let mut units: Vec<CompileUnit> =
        large.into_iter().map(|name| unit(obj.join(format!("{name}.cpp")), false)).collect();
    units.extend([(SLOW, true), (SMALL, false)].map(|(name, slow)| unit(work.join(name), slow)));

    let flags = recipe.flags;
    let mut flags_of_model = vec![recipe.optimization().to_string()];
    flags_of_model.extend(recipe.defines.iter().map(|(name, value)| format!("-D{name}={value}")));
    if flags.assertions {
        flags_of_model.push("-DTW_ASSERTIONS".into());
    }
    flags_of_model.extend(["-I.", "-Iobj"].map(String::from));
    let include = verilator.include();
    let mut flags_of_all: Vec<String> = compiler.flags().map(String::from).collect();
    if flags.waves {
        flags_of_all.extend(["-DTW_WAVES", "-DVM_TRACE=1", "-DVM_TRACE_FST=1"].map(String::from));
    }
    flags_of_all.extend([include, &include.join("vltstd")].map(|dir| format!("-I{}", dir.display())));

    let sources: Vec<PathBuf> = of_model.library.iter().map(|name| include.join(format!("{name}.cpp"))).collect();
    let of_library = [&flags_of_all[..], &["-O2".to_string()]].concat();
    let name = |source: &Path| {
        let words = [verilator.version(), compiler.version(), &processor(), &source.display().to_string()];
        hash(words.into_iter().chain(of_library.iter().map(String::as_str)))
    };
    let library = shared(compiler, &sources, &of_library, (cache, &name), progress)?;
    for &pass in compiler.passes(recipe.is_fast()) {
        let flags_of_pass = pass.flags().iter().map(|flag| flag.to_string());
        let all: Vec<String> = [&flags_of_all[..], &flags_of_model].concat().into_iter().chain(flags_of_pass).collect();
        let objects = [compile(compiler, &units, &all, work, progress)?, library.clone()].concat();
        let linked = if pass == Pass::Instrumented { "instrumented.so" } else { LIBRARY };
        let mut link = compiler.command();
        link.current_dir(work).args(pass.flags()).args(["-shared", "-o", linked]).args(&objects).arg("-pthread");
        if flags.waves {
            link.args(verilator.libraries_of_waves());
        }
        run(compiler.name(), &mut link, INSTALL_CXX)?;
        if pass == Pass::Instrumented {
            progress(Progress::Training);
            train(&work.join(linked))?;
            let _ = std::fs::remove_file(work.join(linked));
        }
    }
    Ok(())
}
