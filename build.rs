//! Sets `TILEWRIGHT_SOURCES`, a fingerprint of all code that decides what a model becomes, for keys of caches.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Folders with such code.
const FOLDERS: [&str; 9] = [
    "src",
    "hw/src",
    "sim/src",
    "driver/src",
    "runtime/src",
    "tensor/src",
    "compiler/src",
    "compiler/llvm/src",
    "compiler/cuda/src",
];

fn main() {
    let mut files = Vec::new();
    for folder in FOLDERS {
        println!("cargo:rerun-if-changed={folder}");
        list(Path::new(folder), &mut files);
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        (&file, fs::read(&file).unwrap_or_default()).hash(&mut hasher);
    }
    println!("cargo:rustc-env=TILEWRIGHT_SOURCES={:016x}", hasher.finish());
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { list(&path, files) } else { files.push(path) }
    }
}
