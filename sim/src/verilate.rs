//! Building libraries of Verilated designs, each once.
//!
//! The result is a shared library in the cache directory, in a folder named by a hash of everything that goes into it. It
//! is built in a temporary folder and renamed, so that builds at the same time do not meet.

mod compiler;
mod sources;
mod verilator;

pub use compiler::Compiler;
pub use verilator::Verilator;

use compiler::{INSTALL_CXX, Pass};
use sha2::{Digest, Sha256};
use sources::Sources;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use tilewright_hw::cache;
use tilewright_hw::device::DeviceError;
use verilator::install_verilator;

const LIBRARY: &str = "libtw_core.so";
const SHIM: &str = "shim.cpp";
/// What runs once, as one file, because reading its headers takes longest.
const SLOW: &str = "slow.cpp";
/// Beside the library: what it was built with, and which files were optimised.
const REPORT: &str = "build.txt";

/// What a build reports while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The library was in the cache.
    Cached,
    /// Verilator runs.
    Verilating,
    /// The C++ compiler runs: files done, files in all, and how many of these are optimised because they run in every cycle.
    Compiling(usize, usize, usize),
    /// The instrumented design runs, so that the compiler learns what is done often.
    Training,
    /// The library is there.
    Built,
    /// The library is there, but this Verilator names what [`crate::Rtl::has_direct_edges`] needs otherwise: runs are slower.
    SlowEdges,
}

/// How a design is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flags {
    pub(crate) waves: bool,
    pub(crate) assertions: bool,
    pub(crate) stalls: bool,
}

/// What a library is made of. All of it but the defines, which follow from the rest, goes into its name; of Verilator its version.
#[derive(Debug, Clone)]
pub(crate) struct Recipe<'a> {
    /// What the library's folder begins with.
    pub(crate) kind: &'static str,
    /// The top module.
    pub(crate) top: &'a str,
    /// The class of the model in C++.
    pub(crate) class: &'static str,
    /// The configuration's package, where it is not among the sources: file and text.
    pub(crate) package: Option<(&'static str, String)>,
    /// The sources, packages first, with headers: name and text.
    pub(crate) sources: Vec<(&'a str, &'a str)>,
    /// A module around them: file and text.
    pub(crate) bench: Option<(&'static str, &'static str)>,
    /// The C++ program around the model.
    pub(crate) shim: &'static str,
    /// A header of it that is written for the design: name and text.
    pub(crate) header: Option<(&'static str, String)>,
    /// What the C++ program is told: name and value.
    pub(crate) defines: Vec<(&'static str, u32)>,
    /// How it is built.
    pub(crate) flags: Flags,
    /// Whether an instrumented library is run first, by which the second is laid out.
    pub(crate) trained: bool,
    /// The Verilator that makes it, if it is not the one on PATH.
    pub(crate) verilator: Option<PathBuf>,
}

impl Recipe<'_> {
    fn is_trained(&self) -> bool {
        self.trained && is_fast_build(self.flags)
    }
}

pub(crate) fn tool_error(tool: &str, reason: impl ToString, remedy: &str) -> DeviceError {
    DeviceError::Tool { tool: tool.into(), reason: reason.to_string(), remedy: remedy.into() }
}

fn io_error(path: &Path, e: &std::io::Error) -> DeviceError {
    tool_error(&path.display().to_string(), e, "give a cache directory that can be written")
}

/// The default cache directory.
///
/// # Errors
/// [`DeviceError::Tool`] where neither `XDG_CACHE_HOME` nor `HOME` is set.
pub fn default_cache_dir() -> Result<PathBuf, DeviceError> {
    tilewright_hw::cache::folder()
        .ok_or_else(|| tool_error("cache directory", "neither XDG_CACHE_HOME nor HOME is set", "set one of them"))
}

/// Runs a program and gives its output.
fn run(tool: &str, command: &mut Command, remedy: &str) -> Result<String, DeviceError> {
    let output = command.output().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => tool_error(tool, "is not installed", remedy),
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
        // What nothing may depend on is noise (`tw_ram`).
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

/// How well the model is optimised: one that is checked or draws waves is for short runs too, and the build takes longer than
/// they do.
fn optimisation(flags: Flags) -> &'static str {
    if is_fast_build(flags) { "-O3" } else { "-O1" }
}

pub(crate) fn is_fast_build(flags: Flags) -> bool {
    !flags.assertions && !flags.waves && !flags.stalls
}

/// The hash that names a build with a version of Verilator and a compiler.
fn key(recipe: &Recipe, verilator: &Verilator, compiler: &Compiler) -> String {
    let mut sha = Sha256::new();
    let mut add = |text: &str| {
        sha.update((text.len() as u64).to_le_bytes());
        sha.update(text.as_bytes());
    };
    add(verilator.version());
    add(compiler.version());
    // The library is compiled for the processor at hand.
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    add(processor.lines().find(|l| l.starts_with("flags")).unwrap_or(std::env::consts::ARCH));
    add(recipe.shim);
    recipe.bench.iter().for_each(|(_, text)| add(text));
    verilator_flags(recipe).into_iter().for_each(&mut add);
    compiler.flags().chain([optimisation(recipe.flags)]).for_each(&mut add);
    compiler.passes(recipe.is_trained()).iter().flat_map(|pass| pass.flags()).for_each(|f| add(f));
    recipe.header.iter().for_each(|(_, text)| add(text));
    recipe.package.iter().for_each(|(_, text)| add(text));
    for (name, text) in &recipe.sources {
        add(name);
        add(text);
    }
    sha.finalize()[..12].iter().map(|b| format!("{b:02x}")).collect()
}

/// One lock for each build, so that a process does not build the same thing twice at once.
fn lock_of(key: &str) -> Arc<Mutex<()>> {
    static LOCKS: LazyLock<Mutex<HashMap<String, Arc<Mutex<()>>>>> = LazyLock::new(Default::default);
    LOCKS.lock().unwrap_or_else(PoisonError::into_inner).entry(key.into()).or_default().clone()
}

/// Looks for the programs that a simulator of the RTL is built with.
///
/// # Errors
/// [`DeviceError`], which names what to install. Where both are missing, what is harder to come by is named.
pub fn find_tools() -> Result<(Verilator, Compiler), DeviceError> {
    Ok((Verilator::find(None)?, Compiler::find()?))
}

/// Runs an instrumented library and writes its profile.
pub(crate) type Train<'a> = &'a dyn Fn(&Path) -> Result<(), DeviceError>;

/// The shared library of a recipe, built where it is not in the cache.
pub(crate) fn library(
    recipe: &Recipe,
    cache: &Path,
    progress: &dyn Fn(Progress),
    train: Train,
) -> Result<PathBuf, DeviceError> {
    let (verilator, compiler) = (Verilator::find(recipe.verilator.as_deref())?, Compiler::find()?);
    let key = key(recipe, &verilator, &compiler);
    let lock = lock_of(&key);
    let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
    let home = cache.join(format!("{}-{key}", recipe.kind));
    let library = home.join(LIBRARY);
    if library.exists() {
        progress(Progress::Cached);
        return Ok(library);
    }
    std::fs::create_dir_all(cache).map_err(|e| io_error(cache, &e))?;
    cache::remove_left_builds(cache);
    let work =
        tempfile::Builder::new().prefix(cache::BUILD_PREFIX).tempdir_in(cache).map_err(|e| io_error(cache, &e))?;
    build(recipe, (&verilator, &compiler), work.path(), progress, train)?;
    // What the compiler left is not needed any more.
    let _ = std::fs::remove_dir_all(work.path().join("obj"));
    let work = work.keep();
    if std::fs::rename(&work, &home).is_err() {
        // Another process was faster.
        let _ = std::fs::remove_dir_all(&work);
        if !library.exists() {
            return Err(tool_error(&home.display().to_string(), "cannot be written", "clear the cache directory"));
        }
    }
    progress(Progress::Built);
    Ok(library)
}

/// What a build tells about itself.
fn report(recipe: &Recipe, verilator: &Verilator, compiler: &Compiler, of_model: &Sources) -> String {
    let trained = compiler.passes(recipe.is_trained()).contains(&Pass::Trained);
    let how = if trained { ", laid out by the branches that a run counted" } else { "" };
    format!(
        "{}\n{}\nrun in every cycle, compiled with {}{how}: {}\nrun once, compiled with -O0: {}\n",
        verilator.version(),
        compiler.version().lines().next().unwrap_or_default(),
        optimisation(recipe.flags),
        of_model.fast.join(" "),
        of_model.slow.join(" "),
    )
}

fn build(
    recipe: &Recipe,
    (verilator, compiler): (&Verilator, &Compiler),
    work: &Path,
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
    // Headers are found by name; packages and modules are listed.
    verilate.args(verilog.iter().map(|(name, _)| *name).filter(|n| n.ends_with(".sv") || n.ends_with(".v"))).arg("-I.");
    run("verilator", &mut verilate, &install_verilator())?;

    let obj = work.join("obj");
    let makefile = obj.join(format!("{}_classes.mk", recipe.class));
    let lists = std::fs::read_to_string(&makefile).map_err(|e| io_error(&makefile, &e))?;
    let of_model = Sources::read(&lists).map_err(|reason| tool_error("verilator", reason, &install_verilator()))?;
    let slow: Vec<String> = of_model.slow.iter().map(|name| format!("#include \"{name}.cpp\"\n")).collect();
    write(SLOW, &slow.concat())?;
    write(REPORT, &report(recipe, verilator, compiler, &of_model))?;
    let include = verilator.include();
    let mut sources: Vec<PathBuf> = of_model.fast.iter().map(|name| obj.join(format!("{name}.cpp"))).collect();
    sources.extend([SLOW, SHIM].map(|f| work.join(f)));
    sources.extend(of_model.library.iter().map(|name| include.join(format!("{name}.cpp"))));

    let flags = recipe.flags;
    let mut flags_of_all: Vec<String> = compiler.flags().map(String::from).collect();
    flags_of_all.push(optimisation(flags).into());
    flags_of_all.extend(recipe.defines.iter().map(|(name, value)| format!("-D{name}={value}")));
    if flags.waves {
        flags_of_all.extend(["-DTW_WAVES", "-DVM_TRACE=1", "-DVM_TRACE_FST=1"].map(String::from));
    }
    if flags.assertions {
        flags_of_all.push("-DTW_ASSERTIONS".into());
    }
    flags_of_all.extend(["-I.", "-Iobj"].map(String::from));
    flags_of_all.extend([include, &include.join("vltstd")].map(|dir| format!("-I{}", dir.display())));

    for &pass in compiler.passes(recipe.is_trained()) {
        let objects = compile(compiler, &sources, &flags_of_all, pass, work, progress)?;
        let library = if pass == Pass::Instrumented { "instrumented.so" } else { LIBRARY };
        let mut link = compiler.command();
        link.current_dir(work).args(pass.flags()).args(["-shared", "-o", library]).args(&objects).arg("-pthread");
        if flags.waves {
            link.args(verilator.libraries_of_waves());
        }
        run(compiler.name(), &mut link, INSTALL_CXX)?;
        if pass == Pass::Instrumented {
            progress(Progress::Training);
            train(&work.join(library))?;
            let _ = std::fs::remove_file(work.join(library));
        }
    }
    Ok(())
}

/// Compiles every source, as many at a time as there are processors.
fn compile(
    compiler: &Compiler,
    sources: &[PathBuf],
    flags: &[String],
    pass: Pass,
    work: &Path,
    progress: &dyn Fn(Progress),
) -> Result<Vec<PathBuf>, DeviceError> {
    let object = |index: usize| work.join("obj").join(format!("{index}.o"));
    let next = AtomicUsize::new(0);
    let (done, results) = std::sync::mpsc::channel();
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(source) = sources.get(index) else { return };
            let mut compile = compiler.command();
            compile.current_dir(work).args(flags).args(pass.flags());
            // Set-up code runs once.
            if source.ends_with(SLOW) {
                compile.arg("-O0");
            }
            compile.arg("-c").arg(source).arg("-o").arg(object(index));
            let result = run(compiler.name(), &mut compile, INSTALL_CXX);
            let failed = result.is_err();
            if done.send(result).is_err() || failed {
                return;
            }
        }
    };
    let optimised = sources.iter().filter(|source| !source.ends_with(SLOW)).count();
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(sources.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(worker);
        }
        for finished in 0..sources.len() {
            progress(Progress::Compiling(finished, sources.len(), optimised));
            match results.recv() {
                Ok(Ok(_)) => {}
                Ok(Err(e)) => {
                    // The others find nothing more to do.
                    next.store(sources.len(), Ordering::Relaxed);
                    return Err(e);
                }
                Err(_) => return Err(tool_error(compiler.name(), "ended without an answer", INSTALL_CXX)),
            }
        }
        Ok((0..sources.len()).map(object).collect())
    })
}
