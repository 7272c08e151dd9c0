//! Follows the pages that add an operator on copies of the tree: applies their diffs and runs their commands, so that
//! the pages work.
//!
//! The code blocks of the pages:
//! - `diff` names a file and shows lines that occur in it once, with lines to add and remove, or it shows a new file.
//! - `sh` has commands, which must succeed, or fail if the block says `fails`.
//! - `text` after `sh` has lines of the commands' output.
//!
//! Blocks that say `full` take minutes and run with the ignored tests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

const PAGES: [&str; 2] = ["docs/add-an-operator.md", "docs/add-an-accelerated-operator.md"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A step of a page, with the heading above it.
#[derive(Debug, Clone, PartialEq)]
struct Step {
    heading: String,
    what: What,
}

#[derive(Debug, Clone, PartialEq)]
enum What {
    /// Replaces lines of a file.
    Edit { file: String, old: String, new: String },
    /// Runs commands whose output contains some lines.
    Run { commands: Vec<String>, fails: bool, full: bool, shows: Vec<String> },
}

/// Reads the steps of a page.
fn steps(page: &str) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    let mut heading = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix('#') {
            heading = title.trim_start_matches('#').trim().to_string();
        }
        let Some(info) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let words: Vec<&str> = info.split_whitespace().collect();
        let what = match words.split_first() {
            Some((&"diff", _)) => edit(&block).map_err(|why| format!("{heading}: {why}"))?,
            Some((&"sh", flags)) => What::Run {
                commands: block.iter().map(|line| line.to_string()).collect(),
                fails: flags.contains(&"fails"),
                full: flags.contains(&"full"),
                shows: Vec::new(),
            },
            Some((&"text", _)) => match steps.last_mut() {
                Some(Step { what: What::Run { shows, .. }, .. }) => {
                    shows.extend(block.iter().map(|line| line.to_string()));
                    continue;
                }
                _ => return Err(format!("{heading}: an output stands behind no command")),
            },
            _ => return Err(format!("{heading}: a block is {info:?}, none of diff, sh and text")),
        };
        steps.push(Step { heading: heading.clone(), what });
    }
    Ok(steps)
}

/// Reads a block that begins with `+++ FILE`, followed by lines that each begin with a sign.
fn edit(block: &[&str]) -> Result<What, String> {
    let (file, lines) = match block.split_first() {
        Some((first, lines)) => (first.strip_prefix("+++ ").ok_or("a diff begins with +++ and a file")?, lines),
        None => return Err("a diff is empty".into()),
    };
    let (mut old, mut new) = (String::new(), String::new());
    for line in lines {
        let (sign, rest) = line.split_at_checked(1).unwrap_or((" ", ""));
        if sign != "+" {
            old += &format!("{rest}\n");
        }
        if sign != "-" {
            new += &format!("{rest}\n");
        }
        if ![" ", "+", "-"].contains(&sign) {
            return Err(format!("{line:?} has none of the signs of a diff"));
        }
    }
    Ok(What::Edit { file: file.to_string(), old, new })
}

/// Returns the content of a file after an edit.
fn apply(text: &str, old: &str, new: &str) -> Result<String, String> {
    if old.is_empty() {
        return if text.is_empty() { Ok(new.into()) } else { Err("it is there already".into()) };
    }
    let starts = text.match_indices('\n').map(|(at, _)| at + 1);
    let places: Vec<usize> = std::iter::once(0).chain(starts).filter(|at| text[*at..].starts_with(old)).collect();
    match places.as_slice() {
        [at] => Ok(format!("{}{new}{}", &text[..*at], &text[at + old.len()..])),
        _ => Err(format!("its lines are there {} times instead of once:\n{old}", places.len())),
    }
}

/// Applies all edits of a page, in order, to files that `read` returns.
fn apply_all(page: &str, read: impl Fn(&str) -> std::io::Result<String>) -> Result<Vec<(String, String)>, String> {
    let mut files: Vec<(String, String)> = Vec::new();
    for Step { heading, what } in steps(page)? {
        let What::Edit { file, old, new } = what else { continue };
        let at = match files.iter().position(|(name, _)| *name == file) {
            Some(at) => at,
            None => {
                let text = if old.is_empty() { Ok(String::new()) } else { read(&file) };
                let text = text.map_err(|e| format!("{heading}: {file}: {e}"))?;
                files.push((file.clone(), text));
                files.len() - 1
            }
        };
        files[at].1 = apply(&files[at].1, &old, &new).map_err(|why| format!("{heading}: {file}: {why}"))?;
    }
    Ok(files)
}

fn text_of(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).expect("the page is there")
}

fn of_tree(file: &str) -> std::io::Result<String> {
    std::fs::read_to_string(root().join(file))
}

#[test]
fn every_edit_of_the_pages_finds_its_place() {
    for page in PAGES {
        let files = apply_all(&text_of(page), of_tree).unwrap_or_else(|why| panic!("{page}: {why}"));
        assert!(files.len() >= 4, "{page}: {:?}", files.iter().map(|(name, _)| name).collect::<Vec<_>>());
    }
}

/// An accelerated operator needs its own file, changes in one other file, and its test.
#[test]
fn an_accelerated_operator_touches_one_file_beside_its_own() {
    let files = apply_all(&text_of(PAGES[1]), of_tree).unwrap();
    let others: Vec<&str> =
        files.iter().map(|(name, _)| name.as_str()).filter(|name| !name.contains("tests")).collect();
    let own = "compiler/src/codegen/accel/ops/expand.rs";
    assert_eq!(others, [own, "compiler/src/codegen/accel/ops/mod.rs"]);
}

#[test]
fn a_page_that_does_not_fit_the_tree_is_refused_by_its_heading() {
    let page =
        "# Page\n## A row\n```diff\n+++ table\n one\n-two\n+2\n```\n## An arm\n```diff\n+++ table\n 2\n+3\n```\n";
    let with = |text: &'static str| apply_all(page, move |_| Ok(text.to_string()));
    assert_eq!(with("one\ntwo\n"), Ok(vec![("table".into(), "one\n2\n3\n".into())]));
    assert_eq!(
        with("one\nTwo\n").unwrap_err(),
        "A row: table: its lines are there 0 times instead of once:\none\ntwo\n"
    );
    assert!(with("one\ntwo\none\ntwo\n").unwrap_err().starts_with("A row: table: its lines are there 2 times"));
    assert!(with("one\ntwo\n2\n").unwrap_err().starts_with("An arm: table: its lines are there 2 times"));
    // A part of a line does not match.
    assert!(with("one\ntwo more\n").is_err());
    for (wrong, why) in [
        ("# A\n```rust\n```\n", "A: a block is \"rust\", none of diff, sh and text"),
        ("# A\n```text\nx\n```\n", "A: an output stands behind no command"),
        ("# A\n```diff\nx\n```\n", "A: a diff begins with +++ and a file"),
        ("# A\n```diff\n+++ x\n!y\n```\n", "A: \"!y\" has none of the signs of a diff"),
    ] {
        assert_eq!(steps(wrong).unwrap_err(), why);
    }
}

/// Makes a folder contain exactly the tree's files. Equal files are not written again, so that cargo does not rebuild
/// them.
fn copy_tree(to: &Path) {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git runs");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout).expect("names are text");
    // The list also has files that were deleted in the working tree.
    let files: BTreeSet<PathBuf> =
        names.split_terminator('\0').map(PathBuf::from).filter(|name| root().join(name).is_file()).collect();
    remove_others(to, Path::new(""), &files);
    for name in &files {
        let (from, to) = (root().join(name), to.join(name));
        let text = std::fs::read(&from).expect("a file of the tree");
        if std::fs::read(&to).ok().as_ref() != Some(&text) {
            std::fs::create_dir_all(to.parent().expect("a folder")).expect("the folder can be made");
            std::fs::copy(&from, &to).expect("the file can be written");
        }
    }
}

fn remove_others(home: &Path, below: &Path, files: &BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(home.join(below)).into_iter().flatten().flatten() {
        let name = below.join(entry.file_name());
        if entry.path().is_dir() {
            remove_others(home, &name, files);
        } else if !files.contains(&name) {
            std::fs::remove_file(entry.path()).expect("the file can be removed");
        }
    }
}

/// Programs built from the copy run only for seconds, so fast builds matter more than fast code.
const QUICK: &str = r#"
[profile.dev]
debug = false
[profile.dev.package."*"]
opt-level = 0
[profile.dev.package.tilewright-hw]
opt-level = 1
[profile.dev.package.tilewright-sim]
opt-level = 1
[profile.dev.package.tilewright-compiler]
opt-level = 1
"#;

/// Follows a page on a copy of the tree.
fn replay(page: &str, whole: bool) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _held = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if !tilewright_testing::has_program("verilator") {
        return;
    }
    if !root().join(".git").exists() {
        tilewright_testing::skip("needs the tree as a git checkout");
        return;
    }
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("add-operator");
    let (copy, target) = (home.join("tree"), home.join("target"));
    copy_tree(&copy);
    std::fs::create_dir_all(home.join(".cargo")).expect("the folder can be made");
    std::fs::write(home.join(".cargo/config.toml"), QUICK).expect("the file can be written");
    for Step { heading, what } in steps(&text_of(page)).unwrap_or_else(|why| panic!("{page}: {why}")) {
        match what {
            What::Edit { file, old, new } => {
                let path = copy.join(&file);
                let new_file = old.is_empty() && !path.exists();
                let text = if new_file { Ok(String::new()) } else { std::fs::read_to_string(&path) };
                let text = text.unwrap_or_else(|e| panic!("{heading}: {file}: {e}"));
                let text = apply(&text, &old, &new).unwrap_or_else(|why| panic!("{heading}: {file}: {why}"));
                std::fs::write(&path, text).expect("the file can be written");
            }
            What::Run { full: true, .. } if !whole => {}
            What::Run { commands, fails, shows, .. } => {
                for command in commands {
                    run(&copy, &target, &command, fails, &shows).unwrap_or_else(|why| panic!("{heading}: {why}"));
                }
            }
        }
    }
}

fn run(copy: &Path, target: &Path, command: &str, fails: bool, shows: &[String]) -> Result<(), String> {
    // Use another target folder than these tests, because cargo would confuse the copy's crates with the tree's.
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(copy).env("CARGO_TARGET_DIR", target).env("CARGO_NET_OFFLINE", "true");
    // A reader of the page has none of the variables that select what tests do.
    let own = |name: &str| name == "BLESS" || name.starts_with("TILEWRIGHT_FUZZ");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(own)) {
        shell.env_remove(name);
    }
    let output = shell.output().map_err(|e| format!("{command}: {e}"))?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() == fails {
        return Err(format!("`{command}` {}:\n{text}", if fails { "succeeds" } else { "fails" }));
    }
    match shows.iter().find(|line| !text.contains(line.trim())) {
        Some(line) => Err(format!("`{command}` does not show {line:?}:\n{text}")),
        None => Ok(()),
    }
}

#[test]
#[ignore = "compiles a copy; make test-full runs it"]
fn the_page_can_be_followed() {
    replay(PAGES[0], false);
}

#[test]
#[ignore = "compiles the compiler for the copy"]
fn the_pages_can_be_followed_to_their_ends() {
    for page in PAGES {
        replay(page, true);
    }
}
