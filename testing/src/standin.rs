//! The stand-in for CUDA's libraries: host code that checks the calls of a program which runs on a GPU, and plays the GPU.
//!
//! It is built from `compiler/cuda/tests/standin`, which says what it checks. A program finds it through `LD_LIBRARY_PATH`, so
//! it is for child processes. It is no GPU: no time that a program reports about it is a figure.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library of CUDA that it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Library {
    /// The driver's.
    Driver,
    /// The compiler of CUDA C, which is the host's C++ compiler then.
    Nvrtc,
    /// Products of matrices.
    CublasLt,
}

impl Library {
    fn file(self) -> &'static str {
        match self {
            Library::Driver => "libcuda.so",
            Library::Nvrtc => "libnvrtc.so",
            Library::CublasLt => "libcublasLt.so",
        }
    }
}

/// The code with which a process ends that did what no GPU's libraries allow, or left something of theirs behind.
pub const WRONG: i32 = 86;

/// A built stand-in.
#[derive(Debug)]
pub struct StandIn {
    /// The libraries, and beside them what was compiled for them.
    folder: PathBuf,
    libraries: PathBuf,
    log: tempfile::NamedTempFile,
}

impl StandIn {
    /// Builds it, if it is not there yet, with these libraries; the others are missing.
    ///
    /// # Panics
    /// Where the host's C++ compiler is missing or refuses it.
    pub fn new(libraries: &[Library]) -> StandIn {
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
        let all = folder.join("all.so");
        if !all.is_file() {
            std::fs::create_dir_all(&folder).unwrap();
            let made = tempfile::tempdir_in(&folder).unwrap();
            let to = made.path().join("all.so");
            let shim = shim.canonicalize().unwrap();
            let done = Command::new("c++")
                .args(["-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", "-shared", "-w", "-o"])
                .arg(&to)
                .arg(format!("-DSTANDIN_VERSION={}", version & 0x7fff_ffff))
                .arg("-DSTANDIN_COMPILER=\"c++\"")
                .arg(format!("-DSTANDIN_SHIM=\"{}\"", shim.display()))
                .args(files.iter().filter(|f| f.extension().is_some_and(|e| e == "cpp")))
                .output()
                .expect("there is a C++ compiler");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            std::fs::rename(&to, &all).unwrap();
        }
        // One library under the names that are looked for.
        let mut names: Vec<&str> = libraries.iter().map(|l| l.file()).collect();
        names.sort_unstable();
        let libraries = folder.join(names.join("+"));
        std::fs::create_dir_all(&libraries).unwrap();
        for name in names {
            // Another test may make it at the same time.
            let _ = std::os::unix::fs::symlink(&all, libraries.join(name));
        }
        StandIn { folder, libraries, log: tempfile::NamedTempFile::new().unwrap() }
    }

    /// The file of all its libraries.
    pub fn file(&self) -> PathBuf {
        self.folder.join("all.so").canonicalize().unwrap()
    }

    /// Lets a child process find it, and keep what it compiles between runs of the tests.
    pub fn apply(&self, command: &mut Command) {
        let mut paths = vec![self.libraries.canonicalize().unwrap()];
        paths.extend(std::env::var_os("LD_LIBRARY_PATH").iter().flat_map(std::env::split_paths));
        command.env("LD_LIBRARY_PATH", std::env::join_paths(paths).unwrap());
        command.env("XDG_CACHE_HOME", self.folder.canonicalize().unwrap());
        command.env("TILEWRIGHT_STANDIN_LOG", self.log.path());
    }

    /// The calls that were made, a line each, in their order; they are told once.
    pub fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.log.path()).unwrap_or_default();
        self.log.as_file().set_len(0).unwrap();
        text.lines().map(str::to_string).collect()
    }
}
