//! A stand-in for CUDA's libraries: host code that checks the calls of a GPU program and plays the GPU.
//!
//! It is built from `compiler/cuda/tests/standin`, which documents the checks. A program finds it through
//! `LD_LIBRARY_PATH`, so it works for child processes only. It is not a GPU: times that a program reports with it mean
//! nothing.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A CUDA library that the stand-in replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Library {
    /// The driver's.
    Driver,
    /// The compiler of CUDA C; here the host's C++ compiler.
    Nvrtc,
    /// Matrix products.
    CublasLt,
}

impl Library {
    fn file(self, age: Age) -> &'static str {
        match (self, age) {
            (Library::Driver, Age::Newest) => "libcuda.so",
            (Library::Nvrtc, Age::Newest) => "libnvrtc.so",
            (Library::CublasLt, Age::Newest) => "libcublasLt.so",
            (Library::Driver, Age::Oldest) => "libcuda.so.1",
            (Library::Nvrtc, Age::Oldest) => "libnvrtc.so.11.1",
            (Library::CublasLt, Age::Oldest) => "libcublasLt.so.11",
        }
    }
}

/// Versions of the libraries that the stand-in imitates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Age {
    /// Current versions, with all functions, under the names of a toolkit's installation.
    Newest,
    /// The oldest versions that the runtime supports: without later functions, under names with a version.
    Oldest,
}

impl Age {
    fn file(self) -> &'static str {
        match self {
            Age::Newest => "newest.so",
            Age::Oldest => "oldest.so",
        }
    }
}

/// Exit code of a process that made an illegal library call or left a resource behind.
pub const WRONG: i32 = 86;

/// A built stand-in.
#[derive(Debug)]
pub struct StandIn {
    /// Folder of the libraries and of what was compiled with them.
    folder: PathBuf,
    libraries: PathBuf,
    log: tempfile::NamedTempFile,
}

impl StandIn {
    /// Builds the stand-in, unless it exists, with current versions of these libraries; the others are missing.
    ///
    /// # Panics
    /// If the host's C++ compiler is missing or fails.
    pub fn new(libraries: &[Library]) -> StandIn {
        StandIn::of(libraries, Age::Newest)
    }

    /// Like [`StandIn::new`], with the oldest libraries that the runtime supports, which lack later functions.
    ///
    /// # Panics
    /// As [`StandIn::new`].
    pub fn oldest(libraries: &[Library]) -> StandIn {
        StandIn::of(libraries, Age::Oldest)
    }

    fn of(libraries: &[Library], age: Age) -> StandIn {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/cuda/tests/standin");
        let shim = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/cuda/src/tests");
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(&source).expect("the stand-in is there").map(|e| e.unwrap().path()).collect();
        files.sort();
        let mut hash = DefaultHasher::new();
        for file in files.iter().chain([&shim.join("shim.h")]) {
            std::fs::read(file).expect("its files are read").hash(&mut hash);
        }
        let version = hash.finish();
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let target = target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"));
        let folder = target.join("standin").join(format!("{version:016x}"));
        let all = folder.join(age.file());
        if !all.is_file() {
            std::fs::create_dir_all(&folder).unwrap();
            let made = tempfile::tempdir_in(&folder).unwrap();
            let shim = shim.canonicalize().unwrap();
            let cxx = |add: &dyn Fn(&mut Command)| {
                let mut command = Command::new("c++");
                add(command.current_dir(made.path()));
                let done = command.output().expect("there is a C++ compiler");
                assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            };
            let sources = files.iter().filter(|f| f.extension().is_some_and(|e| e == "cpp"));
            let sources: Vec<PathBuf> = sources.map(|f| f.canonicalize().unwrap()).collect();
            cxx(&|command| {
                command
                    .args(["-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", "-w", "-c"])
                    .arg(format!("-DSTANDIN_VERSION={}", version & 0x7fff_ffff))
                    .arg("-DSTANDIN_COMPILER=\"c++\"")
                    .arg(format!("-DSTANDIN_SHIM=\"{}\"", shim.display()))
                    .args(&sources);
            });
            let objects = sources.iter().map(|source| Path::new(source.file_stem().unwrap()).with_extension("o"));
            let objects: Vec<PathBuf> = objects.collect();
            let exported =
                format!("-Wl,--version-script={}", source.canonicalize().unwrap().join("oldest.map").display());
            for (age, exported) in [(Age::Newest, None), (Age::Oldest, Some(exported))] {
                cxx(&|command| {
                    command.args(["-shared", "-o", age.file()]).args(&exported).args(&objects);
                });
                std::fs::rename(made.path().join(age.file()), folder.join(age.file())).unwrap();
            }
        }
        // Link the one library under the requested names.
        let mut names: Vec<&str> = libraries.iter().map(|l| l.file(age)).collect();
        names.sort_unstable();
        let libraries = folder.join(names.join("+"));
        std::fs::create_dir_all(&libraries).unwrap();
        for name in names {
            // Another test may create it at the same time.
            let _ = std::os::unix::fs::symlink(&all, libraries.join(name));
        }
        StandIn { folder, libraries, log: tempfile::NamedTempFile::new().unwrap() }
    }

    /// The library file with all current functions.
    pub fn file(&self) -> PathBuf {
        self.folder.join(Age::Newest.file()).canonicalize().unwrap()
    }

    /// Lets a child process find the stand-in, and keep what it compiles between test runs.
    pub fn apply(&self, command: &mut Command) {
        let mut paths = vec![self.libraries.canonicalize().unwrap()];
        paths.extend(std::env::var_os("LD_LIBRARY_PATH").iter().flat_map(std::env::split_paths));
        command.env("LD_LIBRARY_PATH", std::env::join_paths(paths).unwrap());
        command.env("XDG_CACHE_HOME", self.folder.canonicalize().unwrap());
        command.env("TILEWRIGHT_STANDIN_LOG", self.log.path());
    }

    /// Calls since the last query, one per line, in order.
    pub fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.log.path()).unwrap_or_default();
        self.log.as_file().set_len(0).unwrap();
        text.lines().map(str::to_string).collect()
    }
}
