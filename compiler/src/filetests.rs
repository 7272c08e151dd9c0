//! Runs the text files under `tests/files`: a command on top, its input below, its exact output under the line `----`.
//!
//! [`commands`] says what each command does. In addition to the text, a command checks that the rewrite or the code
//! keeps the meaning of the program, so a wrong result is never taken as output. `BLESS=1 cargo test` writes outputs.

mod commands;
mod meaning;
mod tests;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Separates a file's input from its output.
const LINE: &str = "----\n";
/// Length limit of a file, in lines.
const MOST_LINES: usize = 60;

/// The parts of a file.
struct File<'t> {
    /// The first line, without `# `.
    command: &'t str,
    /// What the command reads.
    input: &'t str,
    /// Everything above the output, with the separator.
    head: &'t str,
    /// The output that the file expects.
    output: &'t str,
}

impl<'t> File<'t> {
    /// Takes a text apart. The output is empty if the file has none.
    fn parse(text: &'t str) -> Result<File<'t>, String> {
        let Some(command) = text.lines().next().and_then(|line| line.strip_prefix("# ")) else {
            return Err("the first line must be `# ` and a command".into());
        };
        let header: usize = text.split_inclusive('\n').take_while(|line| line.starts_with('#')).map(str::len).sum();
        if text[..header].lines().count() < 2 {
            return Err("the second line must be `# ` and a sentence that says what the file shows".into());
        }
        let end = if text[header..].starts_with(LINE) {
            Some(header)
        } else {
            text[header..].find(&format!("\n{LINE}")).map(|at| header + at + 1)
        };
        let Some(end) = end else { return Err("the line `----` is missing below the input".into()) };
        let from = end + LINE.len();
        Ok(File { command, input: &text[header..end], head: &text[..from], output: &text[from..] })
    }
}

/// All files of a folder and the folders in it, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { open.push(path) } else { all.push(path) }
        }
    }
    all.sort();
    all
}

/// Runs every file of a folder. With `bless`, writes the outputs that differ.
///
/// # Errors
/// A report of all files that fail: a wrong or missing output, a malformed file, a program that changed its meaning.
fn run_folder(folder: &Path, bless: bool) -> Result<(), String> {
    let files = files(folder);
    if files.is_empty() {
        return Err(format!("{} has no files", folder.display()));
    }
    let mut report = String::new();
    for path in files {
        if let Err(e) = run_file(&path, bless) {
            // Writing to a string cannot fail.
            let _ = writeln!(report, "{}: {e}", path.display());
        }
    }
    if report.is_empty() { Ok(()) } else { Err(report) }
}

fn run_file(path: &Path, bless: bool) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let file = File::parse(&text)?;
    let output = commands::run(file.command, file.input)?;
    let whole = format!("{}{output}", file.head);
    if whole.lines().count() >= MOST_LINES {
        return Err(format!("it has {} lines; split it, or make it smaller than {MOST_LINES}", whole.lines().count()));
    }
    if output == file.output {
        return Ok(());
    }
    if bless {
        return std::fs::write(path, whole).map_err(|e| e.to_string());
    }
    let what = if file.output.is_empty() { "it has no output" } else { "the output differs" };
    let how = "if the new output is right, run: BLESS=1 cargo test -p tilewright-compiler --lib filetests";
    Err(format!("{what} (- file, + now)\n{}{how}", diff(file.output, &output)))
}

/// The lines of two texts, those of the first alone after `-`, those of the second alone after `+`.
fn diff(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    // Length of the longest common part of what follows two lines.
    let mut common = vec![vec![0; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for k in (0..new.len()).rev() {
            common[i][k] =
                if old[i] == new[k] { common[i + 1][k + 1] + 1 } else { common[i + 1][k].max(common[i][k + 1]) };
        }
    }
    let (mut text, mut i, mut k) = (String::new(), 0, 0);
    while i < old.len() || k < new.len() {
        let (sign, line) = if i < old.len() && k < new.len() && old[i] == new[k] {
            (i, k) = (i + 1, k + 1);
            (' ', old[i - 1])
        } else if k == new.len() || i < old.len() && common[i + 1][k] >= common[i][k + 1] {
            i += 1;
            ('-', old[i - 1])
        } else {
            k += 1;
            ('+', new[k - 1])
        };
        let _ = writeln!(text, "{sign} {line}");
    }
    text
}
