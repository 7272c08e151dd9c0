//! Small trees of files, with and without cycles.

use super::cycles;
use std::path::Path;

/// Checks the cycles that are found in `src/below` of a crate with some files: of each cycle its edges as `from > to`.
fn check_below(below: &str, files: &[(&str, &str)], expected: &[&[&str]]) {
    let dir = tempfile::tempdir().expect("a folder");
    let root = dir.path().join("src");
    std::fs::create_dir_all(&root).expect("a folder");
    std::fs::write(root.join("lib.rs"), "pub mod flow;\n").expect("a file");
    for (name, text) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let found = cycles(&root.join(below));
    let edges: Vec<Vec<String>> = found
        .iter()
        .map(|cycle| cycle.edges.iter().map(|edge| format!("{} > {}", edge.from, edge.to)).collect())
        .collect();
    assert_eq!(edges, expected, "{files:?}");
}

fn check(files: &[(&str, &str)], expected: &[&[&str]]) {
    check_below("flow", files, expected);
}

const CYCLE: &[&str] = &["flow/a.rs > flow/b.rs", "flow/b.rs > flow/a.rs"];

/// Checks a folder of two files.
fn check_pair(a: &str, b: &str, expected: &[&[&str]]) {
    check(&[("flow.rs", "mod a;\nmod b;\n"), ("flow/a.rs", a), ("flow/b.rs", b)], expected);
}

#[test]
fn imports_one_way_are_no_cycle() {
    check_pair("use super::b::B;", "pub struct B;", &[]);
    check_pair("use super::b::B;", "use super::c::A; pub struct B;", &[]);
}

#[test]
fn two_files_that_import_each_other_are_a_cycle_however_they_name_the_other() {
    let b = "use super::a::A;\npub struct B;";
    for a in [
        "use super::b::B; pub struct A;",
        "use crate::flow::b::B; pub struct A;",
        "use super::{c::{D}, b::{self, B as Other}}; pub struct A;",
        "pub struct A { b: super::b::B }",
        "pub struct A; fn f() { crate::flow::b::B::new(); }",
        "use super::b; pub struct A(b::B);",
        "use super::b as other; pub struct A(other::B);",
        "use super::b::*; pub struct A(B);",
        "pub struct A; mod inner { use super::super::b::B; }",
        "pub struct A; macro_rules! b { () => { $crate::flow::b::B } }",
        "pub struct A; const QUOTE: char = '\"'; const B: super::b::B = super::b::B;",
        "pub struct A; fn f<'a>(b: &'a super::b::B) {}",
    ] {
        check_pair(a, b, &[CYCLE]);
    }
}

#[test]
fn what_only_looks_like_an_import_is_none() {
    for a in [
        "// use super::b::B;\npub struct A;",
        "/* /* */ use super::b::B; */ pub struct A;",
        "const TEXT: &str = \"use super::b::B;\"; pub struct A;",
        "const TEXT: &str = r#\"\" super::b::B\"#; pub struct A;",
        "const TEXT: &[u8] = b\"super::b::B\"; pub struct A;",
        "pub(in crate::flow) struct A; pub(in super::b) struct C;",
        "use other::super_b::B; pub struct A;",
        "use super::b; pub struct A;",
        "use super::b::*; pub struct A;",
        "#[cfg(test)]\nmod tests { use super::super::b::B; }\npub struct A;",
        "#[cfg(all(test, unix))]\nmod tests { use super::super::b::B; }\npub struct A;",
        "#[cfg(test)]\nuse super::b::{B, C};\npub struct A;",
        "#[cfg(test)]\n#[derive(Debug)]\npub(super) struct X<T, U>(super::b::B);\npub struct A;",
        "pub struct A { #[cfg(test)]\nb: super::b::B, c: u8 }",
        "pub struct A; impl A { #[cfg(test)]\nfn f(a: u8, b: u8) -> super::b::B { super::b::B } }",
    ] {
        check_pair(a, "use super::a::A; pub struct B;", &[]);
    }
    check_pair("#[cfg(not(test))] use super::b::B; pub struct A;", "use super::a::A; pub struct B;", &[CYCLE]);
    check_pair("#[cfg(any(test, unix))] use super::b::B; pub struct A;", "use super::a::A; pub struct B;", &[CYCLE]);
}

#[test]
fn files_of_tests_are_left_out() {
    let own = "#[cfg(test)]\nmod helpers;\nuse super::b::B;\npub struct A;";
    let files = [
        ("flow.rs", "mod a;\nmod b;\n"),
        ("flow/a.rs", own),
        ("flow/a/helpers.rs", "use super::super::b::B; mod deep;"),
        ("flow/a/helpers/deep.rs", "use crate::flow::b::B;"),
        ("flow/b.rs", "pub struct B; fn f() { super::a::helpers::g() }"),
        ("flow/b/tests.rs", "use super::super::a::A;"),
        ("flow/c.rs", "#![cfg(test)]\nuse super::a::A;"),
    ];
    check(&files[..4], &[]);
    check(&files[..], &[&["flow/a.rs > flow/b.rs", "flow/b.rs > flow/a.rs"]]);
}

/// A parent that re-exports its children is no part of a cycle; what a child takes from it is the sibling's.
#[test]
fn re_exports_lead_to_the_file_that_defines_an_item() {
    let parent = "mod a;\nmod b;\npub use a::A;\npub(crate) use b::{B as Renamed};\n";
    check(
        &[
            ("flow.rs", parent),
            ("flow/a.rs", "use super::Renamed; pub struct A;"),
            ("flow/b.rs", "use super::A; pub struct B;"),
        ],
        &[CYCLE],
    );
    check(
        &[("flow.rs", parent), ("flow/a.rs", "use super::Renamed; pub struct A;"), ("flow/b.rs", "pub struct B;")],
        &[],
    );
    // The same by a glob, and over two modules.
    check(
        &[
            ("flow.rs", "mod a;\nmod deep;\npub use deep::*;\n"),
            ("flow/a.rs", "use super::C; pub struct A;"),
            ("flow/deep.rs", "mod c;\npub use c::C;\n"),
            ("flow/deep/c.rs", "use crate::flow::a::A; pub struct C;"),
        ],
        &[&["flow/a.rs > flow/deep/c.rs", "flow/deep/c.rs > flow/a.rs"]],
    );
}

#[test]
fn a_parent_that_uses_its_child_is_in_a_cycle_with_one_that_uses_the_parent() {
    let child = "use super::Parent; pub fn run(parent: &Parent) {}";
    let edges: &[&str] = &["flow.rs > flow/a.rs", "flow/a.rs > flow.rs"];
    for parent in [
        "mod a;\npub struct Parent;\nfn f() { a::run(&Parent) }",
        "mod a;\nuse a::run;\npub struct Parent;\nfn f() { run(&Parent) }",
        "mod a;\npub struct Parent;\nfn f() { self::a::run(&Parent) }",
    ] {
        check(&[("flow.rs", parent), ("flow/a.rs", child)], &[edges]);
    }
    check(&[("flow.rs", "mod a;\npub use a::run;\npub struct Parent;"), ("flow/a.rs", child)], &[]);
    let edges: &[&str] = &["flow/a.rs > flow/mod.rs", "flow/mod.rs > flow/a.rs"];
    check(&[("flow/mod.rs", "mod a;\npub struct Parent;\nfn f() { a::run(&Parent) }"), ("flow/a.rs", child)], &[edges]);
}

/// Each strongly connected component is a cycle of its own, and edges between components belong to none.
#[test]
fn cycles_are_told_apart() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\nmod e;\nmod f;\npub struct Root;"),
        ("a.rs", "use crate::b::B; use crate::d::D; pub struct A;"),
        ("b.rs", "use crate::c::C; pub struct B;"),
        ("c.rs", "use crate::a::A; pub struct C;"),
        ("d.rs", "use crate::e::E; pub struct D;"),
        ("e.rs", "use crate::{d::D, f::F}; pub struct E;"),
        ("f.rs", "use crate::Root; pub struct F;"),
    ];
    check_below("", &files, &[&["a.rs > b.rs", "b.rs > c.rs", "c.rs > a.rs"], &["d.rs > e.rs", "e.rs > d.rs"]]);
    // Only imports between the folder's files count.
    check_below("a", &files, &[]);
}

#[test]
fn a_cycle_is_told_with_its_first_imports() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("lib.rs"), "mod a;\nmod b;\n").expect("a file");
    std::fs::write(dir.path().join("a.rs"), "\nuse super::b::C;\nuse super::b::B;\n").expect("a file");
    std::fs::write(dir.path().join("b.rs"), "pub struct B;\npub struct C(crate::a::A);\n").expect("a file");
    let [cycle] = &cycles(dir.path())[..] else { panic!("one cycle") };
    assert_eq!(
        cycle.to_string(),
        "2 files import each other: a.rs, b.rs\n  a.rs:2 uses b.rs (super::b::C)\n  b.rs:2 uses a.rs (crate::a::A)\n"
    );
}
