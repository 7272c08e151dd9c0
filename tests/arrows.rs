//! Holds the arrows between the workspace's crates, and between the files of some folders: who may depend on whom.

#[path = "arrows/imports.rs"]
mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// The crates of the workspace, each with the crates that its library can use.
const ARROWS: &[(&str, &[&str])] = &[
    ("tilewright-hw", &[]),
    ("tilewright-testing", &["tilewright-hw"]),
    ("tilewright-sim", &["tilewright-hw"]),
    ("tilewright-shell", &["tilewright-hw"]),
    ("tilewright-driver", &["tilewright-hw"]),
    ("tilewright-runtime", &["tilewright-hw", "tilewright-driver"]),
    (
        "tilewright-ffi",
        &["tilewright-hw", "tilewright-sim", "tilewright-driver", "tilewright-runtime", "tilewright-rpc"],
    ),
    ("tilewright-rpc", &["tilewright-hw", "tilewright-runtime"]),
    ("tilewright-tensor", &["tilewright-hw", "tilewright-driver"]),
    ("tilewright-compiler", &["tilewright-hw", "tilewright-driver", "tilewright-tensor", "tilewright-runtime"]),
    ("tilewright-llvm", &["tilewright-hw", "tilewright-driver", "tilewright-runtime", "tilewright-compiler"]),
    ("tilewright-cuda", &["tilewright-runtime", "tilewright-compiler"]),
    (
        "tilewright",
        &[
            "tilewright-hw",
            "tilewright-shell",
            "tilewright-sim",
            "tilewright-driver",
            "tilewright-runtime",
            "tilewright-rpc",
            "tilewright-compiler",
            "tilewright-llvm",
            "tilewright-cuda",
        ],
    ),
    (
        "tilewright-python",
        &["tilewright", "tilewright-hw", "tilewright-tensor", "tilewright-compiler", "tilewright-runtime"],
    ),
];

/// External crates that only one of our crates can use, so that toolchains do not spread to others.
const KEPT_IN: &[(&str, &str)] = &[
    ("inkwell", "tilewright-llvm"),
    ("rust-hdl", "tilewright-shell"),
    ("clap", "tilewright"),
    ("pyo3", "tilewright-python"),
    ("tonic", "tilewright-rpc"),
    ("tokio", "tilewright-rpc"),
];

/// Folders whose files must not import each other in a cycle.
const WITHOUT_CYCLES: &[&str] = &[
    "compiler/src/codegen/accel",
    "compiler/src/partition",
    "compiler/src/records",
    "compiler/src/tune",
    "hw/src/flow",
    "rpc/src",
    "runtime/src",
    "src",
    "tensor/src/mapping",
];

/// Files that import each other nevertheless, because their types contain each other: values can be functions and
/// modules, whose arguments and results are values.
const KNOTS: &[(&str, &[&str])] = &[("runtime/src", &["function.rs", "module.rs", "value.rs"])];

/// Folders whose files must not import those of another folder: the partition calls the accelerator's code, never back.
const NEVER: &[(&str, &str)] = &[
    ("compiler/src/codegen/accel", "partition"),
    ("compiler/src/partition", "tune"),
    ("compiler/src/records", "partition"),
];

fn metadata() -> Metadata {
    MetadataCommand::new().no_deps().other_options(["--offline".to_string()]).exec().expect("cargo metadata runs")
}

#[test]
fn crates_depend_along_the_arrows_alone() {
    let metadata = metadata();
    let arrows: BTreeMap<&str, BTreeSet<&str>> =
        ARROWS.iter().map(|(name, may)| (*name, may.iter().copied().collect())).collect();
    let mut wrong = Vec::new();
    for package in &metadata.packages {
        let Some(may) = arrows.get(package.name.as_str()) else {
            wrong.push(format!("{} has no line in ARROWS", package.name));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|d| d.kind != DependencyKind::Development) {
            if arrows.contains_key(dependency.name.as_str()) && !may.contains(dependency.name.as_str()) {
                wrong.push(format!("{} must not use {}", package.name, dependency.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(metadata.packages.len(), arrows.len(), "ARROWS names a crate that the workspace has not");
}

#[test]
fn toolchains_stay_in_their_crates() {
    let mut wrong = Vec::new();
    for package in &metadata().packages {
        for (foreign, home) in KEPT_IN {
            if package.name != *home && package.dependencies.iter().any(|d| d.name == *foreign) {
                wrong.push(format!("{} must not use {foreign}, which belongs to {home}", package.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_import_each_other_in_no_cycle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cycles: Vec<String> = WITHOUT_CYCLES
        .iter()
        .flat_map(|folder| {
            let cycles = imports::cycles(&root.join(folder)).into_iter();
            let others =
                cycles.filter(move |cycle| !KNOTS.iter().any(|(of, files)| of == folder && cycle.files == *files));
            others.map(move |cycle| format!("{folder}: {cycle}"))
        })
        .collect();
    assert!(cycles.is_empty(), "{}", cycles.join("\n"));
}

#[test]
fn no_file_imports_a_folder_that_calls_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (folder, other) in NEVER {
        let mut open = vec![root.join(folder)];
        let mut files = 0;
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            // Tests may use everything.
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let is_test = path.components().any(|c| c.as_os_str() == "tests") || path.ends_with("tests.rs");
            assert!(is_test || !code.contains(&format!("crate::{other}::")), "{} imports {other}", path.display());
            files += 1;
        }
        assert!(files > 0, "{folder} has files");
    }
}
