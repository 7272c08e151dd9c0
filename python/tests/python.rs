//! Runs the tests in Python against the library of this build.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A Python that can import the package; without one the calling test skips.
fn python() -> Option<PathBuf> {
    const NEEDS: &str = "import sys; assert sys.version_info >= (3, 10); import numpy";
    let candidates = [here().join("../.venv/bin/python"), "python3".into()];
    let works = |python: &PathBuf| {
        Command::new(python).args(["-c", NEEDS]).output().is_ok_and(|output| output.status.success())
    };
    let found = candidates.into_iter().find(works);
    if found.is_none() {
        tilewright_testing::skip("needs Python 3.10 or newer with NumPy; run `make setup`");
    }
    found
}

/// A folder with the package and the library that cargo has built for these tests.
fn package() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().join("tilewright");
    std::fs::create_dir(&folder).expect("the folder can be written");
    for entry in std::fs::read_dir(here().join("tilewright")).expect("the package is there") {
        let path = entry.expect("it can be listed").path();
        if path.is_file() {
            std::fs::copy(&path, folder.join(path.file_name().expect("a name"))).expect("it is copied");
        }
    }
    let test = std::env::current_exe().expect("the test has a path");
    let library = test.parent().expect("it is in a folder").join("libtilewright_python.so");
    std::os::unix::fs::symlink(library, folder.join("_native.abi3.so")).expect("the folder can be written");
    dir
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs tests in Python with the package.
fn tests(python: &Path, arguments: &[&str]) -> (bool, String) {
    let package = package();
    let output = Command::new(python)
        .args(arguments)
        // Python would find the package without the library in the folder above.
        .current_dir(here().join("tests"))
        .env("PYTHONPATH", package.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("Python runs");
    (output.status.success(), text(&output))
}

#[test]
fn the_tests_in_python_pass() {
    let Some(python) = python() else { return };
    let (passed, text) = tests(&python, &["-W", "error", "-m", "unittest", "discover", "--verbose"]);
    assert!(passed, "{text}");
    // Python says OK without any test, too.
    assert!(!text.contains("Ran 0 tests"), "{text}");
    for line in text.lines() {
        if let Some((_, reason)) = line.split_once(" ... skipped ") {
            tilewright_testing::skip(reason.trim_matches(['\'', '"']));
        }
    }
}

#[test]
fn modules_of_pytorch_are_compiled() {
    let Some(python) = python() else { return };
    let has_torch = |python: &PathBuf| {
        Command::new(python).args(["-c", "import torch, onnx"]).output().is_ok_and(|output| output.status.success())
    };
    if !has_torch(&python) {
        return tilewright_testing::skip("needs PyTorch; run `make torch`");
    }
    let (passed, text) = tests(&python, &["-m", "unittest", "torch_modules"]);
    assert!(passed && text.contains("Ran 2 tests"), "{text}");
}

#[test]
fn the_type_checker_accepts_stubs_and_tests() {
    let Some(python) = python() else { return };
    if !Command::new(&python).args(["-m", "mypy", "--version"]).output().is_ok_and(|output| output.status.success()) {
        return tilewright_testing::skip("needs mypy; run `make setup`");
    }
    let cache = tempfile::tempdir().expect("a folder");
    let output = Command::new(python)
        .args(["-m", "mypy", "--cache-dir"])
        .arg(cache.path())
        .current_dir(here())
        .output()
        .expect("mypy runs");
    assert!(output.status.success(), "{}", text(&output));
}
