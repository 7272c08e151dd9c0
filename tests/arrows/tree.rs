//! The modules of a crate, and the resolution of paths in them.

use super::Edge;
use super::source::{self, Module, Named};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The names of a module and of those around it, from the crate's root down.
type Place = Vec<String>;

/// The place of `main.rs` if the crate has a `lib.rs` too. No module has such a name.
const MAIN: &str = "main.rs";

/// A module with its file.
struct Node {
    file: String,
    module: Module,
}

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Module(Place),
    /// An item of a module.
    Item(Place),
}

/// A crate's modules, and the files to check.
pub struct Tree {
    nodes: BTreeMap<Place, Node>,
    /// Modules declared with `#[path]`: the place of the declaration, and the place of the file.
    elsewhere: BTreeMap<Place, Place>,
    /// The files to find edges between.
    files: BTreeSet<String>,
}

impl Tree {
    /// Reads the crate around a folder.
    pub fn read(folder: &Path) -> Tree {
        let has_root = |folder: &&Path| ["lib.rs", "main.rs"].iter().any(|name| folder.join(name).is_file());
        let root = folder.ancestors().find(has_root).unwrap_or_else(|| panic!("{} is in no crate", folder.display()));
        let below = relative(folder, root);
        let mut tree = Tree { nodes: BTreeMap::new(), elsewhere: BTreeMap::new(), files: BTreeSet::new() };
        let (mut tests, mut macros): (Vec<Place>, Vec<Named>) = (Vec::new(), Vec::new());
        for path in rust_files(root) {
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let file = relative(&path, root);
            let place = place_of(&file, root);
            let Some(modules) = source::modules(&text).filter(|_| !file.ends_with("/tests.rs") && file != "tests.rs")
            else {
                tests.push(place);
                continue;
            };
            let is_inside = below.is_empty() || file == format!("{below}.rs") || file.starts_with(&format!("{below}/"));
            if is_inside {
                tree.files.insert(file.clone());
            }
            for module in modules {
                let own: Place = place.iter().chain(&module.inside).cloned().collect();
                let child = |name: &String| own.iter().chain([name]).cloned().collect::<Place>();
                tests.extend(module.tests.iter().map(child));
                for (name, written) in &module.elsewhere {
                    let there = path.parent().unwrap_or(root).join(written);
                    tree.elsewhere.insert(child(name), place_of(&relative(&there, root), root));
                }
                for name in &module.exported_macros {
                    let path = [String::from("crate")].into_iter().chain(child(name)).collect();
                    macros.push(Named { path, line: 0, alias: Some(name.clone()), is_exported: true });
                }
                tree.nodes.insert(own, Node { file: file.clone(), module });
            }
        }
        if let Some(root) = tree.nodes.get_mut(&Place::new()) {
            root.module.imports.extend(macros);
        }
        tree.nodes.retain(|place, _| !tests.iter().any(|test| place.starts_with(test)));
        let left: BTreeSet<String> = tree.nodes.values().map(|node| node.file.clone()).collect();
        tree.files.retain(|file| left.contains(file));
        tree
    }

    /// Returns all edges between the files, sorted. Each pair of files has at most one, the first in the file.
    pub fn edges(&self) -> Vec<Edge> {
        let mut found: BTreeMap<(String, String), (usize, String)> = BTreeMap::new();
        for (place, node) in &self.nodes {
            let mut named: Vec<Named> = node.module.paths.clone();
            for import in &node.module.imports {
                match import.path.split_last() {
                    Some((last, before)) if last == "*" => named.extend(self.by_glob(place, node, import, before)),
                    _ => named.push(import.clone()),
                }
            }
            for Named { path, line, is_exported, .. } in named {
                for target in self.resolve(place, &path) {
                    // The path of a module makes no edge; only uses of its items do.
                    let Target::Item(to) = target else { continue };
                    let Some(there) = self.nodes.get(&to) else { continue };
                    let is_own_child = is_exported && to.starts_with(place);
                    if there.file == node.file || is_own_child || line == 0 {
                        continue;
                    }
                    if self.files.contains(&node.file) && self.files.contains(&there.file) {
                        let edge = found.entry((node.file.clone(), there.file.clone()));
                        let (first, text) = edge.or_insert((line, path.join("::")));
                        if line < *first {
                            (*first, *text) = (line, path.join("::"));
                        }
                    }
                }
            }
        }
        found.into_iter().map(|((from, to), (line, path))| Edge { from, to, line, path }).collect()
    }

    /// Expands a glob import to those names of the module that occur in the importing module. The glob of an enum
    /// becomes the path of the enum.
    fn by_glob(&self, place: &Place, node: &Node, import: &Named, before: &[String]) -> Vec<Named> {
        let mut named = Vec::new();
        for target in self.resolve(place, before) {
            match target {
                Target::Item(_) => named.push(Named { path: before.to_vec(), ..import.clone() }),
                Target::Module(module) => {
                    let words = node.module.words.iter().filter(|word| self.has(&module, &word.text));
                    named.extend(words.map(|word| Named {
                        path: before.iter().chain([&word.text]).cloned().collect(),
                        line: word.line,
                        ..import.clone()
                    }));
                }
            }
        }
        named
    }

    /// Returns whether a module has a name.
    fn has(&self, module: &Place, name: &str) -> bool {
        !self.named(module, name, &mut BTreeSet::new()).is_empty()
    }

    /// Resolves a path in a module. Paths into other crates have no target.
    fn resolve(&self, place: &Place, path: &[String]) -> Vec<Target> {
        self.resolve_once(place, path, &mut BTreeSet::new())
    }

    fn resolve_once(&self, place: &Place, path: &[String], seen: &mut BTreeSet<(Place, String)>) -> Vec<Target> {
        let (mut at, mut rest) = (place.clone(), path);
        let mut is_relative = true;
        while let Some((first, after)) = rest.split_first() {
            match first.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()),
                _ => break,
            }
            (rest, is_relative) = (after, false);
        }
        let mut targets = vec![Target::Module(at)];
        for (depth, name) in rest.iter().enumerate() {
            let mut next = Vec::new();
            for target in targets {
                match target {
                    Target::Item(place) => next.push(Target::Item(place)),
                    Target::Module(place) => {
                        let found = self.named(&place, name, seen);
                        // An unknown first name is another crate. A later unknown name is an item made by a macro.
                        if found.is_empty() && !(depth == 0 && is_relative) {
                            next.push(Target::Item(place));
                        }
                        next.extend(found);
                    }
                }
            }
            targets = next;
        }
        targets
    }

    /// Resolves a name in a module.
    fn named(&self, place: &Place, name: &str, seen: &mut BTreeSet<(Place, String)>) -> Vec<Target> {
        if !seen.insert((place.clone(), name.to_string())) {
            return Vec::new();
        }
        let mut child: Place = if place.as_slice() == [MAIN] { Place::new() } else { place.clone() };
        child.push(name.into());
        let child = self.elsewhere.get(&child).cloned().unwrap_or(child);
        if self.nodes.contains_key(&child) {
            return vec![Target::Module(child)];
        }
        let mut places = vec![place.clone()];
        if place.is_empty() {
            places.push(vec![MAIN.into()]);
        }
        for place in places {
            let Some(node) = self.nodes.get(&place) else { continue };
            if node.module.items.iter().any(|item| item == name) {
                return vec![Target::Item(place)];
            }
            let imported = node.module.imports.iter().filter(|import| import.alias.as_deref() == Some(name));
            let found: Vec<Target> =
                imported.flat_map(|import| self.resolve_once(&place, &import.path, seen)).collect();
            if !found.is_empty() {
                return found;
            }
            for import in &node.module.imports {
                let Some(("*", before)) = import.path.split_last().map(|(last, before)| (last.as_str(), before)) else {
                    continue;
                };
                for target in self.resolve_once(&place, before, seen) {
                    if let Target::Module(module) = target {
                        let found = self.named(&module, name, seen);
                        if !found.is_empty() {
                            return found;
                        }
                    }
                }
            }
        }
        Vec::new()
    }
}

/// Returns all Rust files below a folder, sorted.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns a path relative to a root, with `/` between its parts.
fn relative(path: &Path, root: &Path) -> String {
    let parts = path.strip_prefix(root).unwrap_or(path).components();
    parts.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect::<Vec<_>>().join("/")
}

/// Returns the place of the module in a file.
fn place_of(file: &str, root: &Path) -> Place {
    let parts: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    match parts[..] {
        ["lib"] => Place::new(),
        ["main"] if root.join("lib.rs").is_file() => vec![MAIN.into()],
        ["main"] => Place::new(),
        [ref folders @ .., "mod"] => folders.iter().map(|part| part.to_string()).collect(),
        _ => parts.iter().map(|part| part.to_string()).collect(),
    }
}
