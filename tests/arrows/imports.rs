//! Finds import cycles among the Rust files of a folder.
//!
//! [`cycles`] reads the sources of a crate as text, builds a graph whose nodes are files and whose edges are imports,
//! and reports every strongly connected component of more than one file. It does not expand macros and does not
//! evaluate `cfg`, except for tests.

mod source;
mod tree;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use tree::Tree;

/// An import of one file by another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The importing file, relative to the crate's `src`.
    pub from: String,
    /// The file that defines what is imported.
    pub to: String,
    /// The line of the first such import in `from`.
    pub line: usize,
    /// The path as written there.
    pub path: String,
}

/// Files that import each other, directly or through others of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    /// The files, sorted, relative to the crate's `src`.
    pub files: Vec<String>,
    /// Every import between two of them, sorted.
    pub edges: Vec<Edge>,
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "{} files import each other: {}", self.files.len(), self.files.join(", "))?;
        for Edge { from, to, line, path } in &self.edges {
            writeln!(f, "  {from}:{line} uses {to} ({path})")?;
        }
        Ok(())
    }
}

/// Returns the import cycles among the files of a module: one [`Cycle`] for each strongly connected component of more
/// than one file.
///
/// `folder` is the module's folder, such as `hw/src/flow`, or the `src` of a crate. The files are all `.rs` files below
/// it, and the folder's own file (`flow.rs` next to it, or `mod.rs` in it). Left out are files named `tests.rs`, and
/// modules and items under `#[cfg(test)]`.
///
/// An edge leads from a file that names an item to the file that **defines** it. The name is in a `use` or in a path
/// inside the code, and begins with `super`, `self`, `crate`, a child module or an imported module. Paths are followed
/// through re-exports:
/// - A parent that only declares `mod child;` and re-exports with `pub use child::Item;` has no edge to the child. If
///   the parent's own code uses the child, or imports it with a plain `use`, it has one.
/// - A child that uses `super::Item`, where the parent re-exports `Item` from a sibling, has an edge to the sibling,
///   and none to the parent.
/// - `use super::module;` alone is no edge; `module::Item` in the code is one to the file that defines `Item`.
/// - `use module::*;` is an edge to the files that define those of the module's names that occur in the importing file.
///
/// Calls of methods are invisible: the file with `impl Type` may be another than the one with `struct Type`.
///
/// # Panics
/// If `folder` is in no crate (no folder around it has a `lib.rs` or `main.rs`), or a file cannot be read.
pub fn cycles(folder: &Path) -> Vec<Cycle> {
    let edges = Tree::read(folder).edges();
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for edge in &edges {
        next.entry(&edge.from).or_default().push(&edge.to);
    }
    let reachable: BTreeMap<&str, BTreeSet<&str>> = next.keys().map(|file| (*file, reachable(file, &next))).collect();
    let meet = |a: &str, b: &str| reachable.get(a).is_some_and(|files| files.contains(b));
    let mut done: BTreeSet<&str> = BTreeSet::new();
    let mut cycles = Vec::new();
    for &file in next.keys() {
        if done.contains(file) || !meet(file, file) {
            continue;
        }
        let files: BTreeSet<&str> = reachable[file].iter().copied().filter(|other| meet(other, file)).collect();
        let inside = |edge: &&Edge| files.contains(edge.from.as_str()) && files.contains(edge.to.as_str());
        cycles.push(Cycle {
            files: files.iter().map(|file| file.to_string()).collect(),
            edges: edges.iter().filter(inside).cloned().collect(),
        });
        done.extend(files);
    }
    cycles
}

/// The files that can be reached from one along one edge or more.
fn reachable<'a>(file: &str, next: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut ahead: Vec<&str> = next.get(file).cloned().unwrap_or_default();
    while let Some(file) = ahead.pop() {
        if found.insert(file) {
            ahead.extend(next.get(file).into_iter().flatten());
        }
    }
    found
}
