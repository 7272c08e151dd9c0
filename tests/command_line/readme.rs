//! The commands of README.md and of the pages in docs/ print what the pages show.

use std::path::Path;

use crate::board::Board;
use crate::tilewright;

/// The pages whose commands run, each with the number of commands that `make test` runs, so that no command is lost
/// unnoticed.
const PAGES: &[(&str, usize)] = &[
    ("README.md", 1),
    ("docs/simulate.md", 7),
    ("docs/synthesize.md", 2),
    ("docs/compare.md", 1),
    ("docs/quantize.md", 1),
    ("docs/shapes.md", 0),
    ("docs/remote.md", 0),
    ("docs/debug.md", 5),
    ("docs/extend.md", 3),
    ("docs/tune.md", 4),
    ("docs/tutorials/1-vector-add.md", 5),
    ("docs/tutorials/2-matrix-product.md", 3),
    ("docs/tutorials/3-convolution.md", 5),
];

/// Texts of commands that do not run: they need the Verilated design, place and route, files that only the reader has,
/// or depend on the speed of the machine.
const LEFT_OUT: &[&str] = &[
    "--device rtl",
    "synth --board",
    "flash --board",
    "my_classifier.onnx",
    "--b dir:good",
    "--compare a.json",
    "tilewright bench",
];

/// Commands that take too long for `make test`; `make test-full` runs them.
const LONG: &[&str] =
    &["--report photo.html", "-o lines.twa", "inspect lines.twa", "-o batches.twa", "inspect batches.twa"];

/// Commands that report faults of a file, and so end with exit code 1.
const FIND_FAULTS: &[&str] = &["configs check mine.toml"];

/// Commands that the page shows to fail, and so end with exit code 2.
const FAIL: &[&str] =
    &["schedule plain.te --device csim", "schedule naive.te", "schedule sized.te --device csim --bind rows=7"];

/// A command and the lines after it.
struct Example {
    command: String,
    printed: Vec<String>,
}

fn examples(page: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let (mut inside, mut goes_on) = (false, false);
    for line in page.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match line.strip_prefix("$ ") {
                Some(command) => found.push(Example { command: command.into(), printed: Vec::new() }),
                None => {
                    let last = found.last_mut().expect("a block begins with a command");
                    if goes_on {
                        last.command += line.trim_start();
                    } else {
                        last.printed.push(line.into());
                    }
                }
            },
        }
        goes_on = inside && line.ends_with('\\') && found.last().is_some_and(|e| e.printed.is_empty());
        if goes_on {
            found.last_mut().expect("there is one").command.pop();
        }
    }
    found
}

/// Returns a line without seconds, which differ between machines.
fn plain(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let unit = |i: usize| words.get(i + 1).is_some_and(|unit| unit.trim_end_matches([',', ';']) == "s");
    let word = |i: usize| if unit(i) { "_" } else { words[i] };
    (0..words.len()).map(word).collect::<Vec<_>>().join(" ").trim_end().into()
}

/// Whether the lines are printed in this order; `...` stands for any others.
fn agrees(wanted: &[String], printed: &str) -> Result<(), String> {
    let mut left = printed.lines().map(plain);
    let mut skip = false;
    for line in wanted {
        if line == "..." {
            skip = true;
            continue;
        }
        let line = plain(line);
        let found = if skip { left.any(|l| l == line) } else { left.next().is_some_and(|l| l == line) };
        if !found {
            return Err(format!("`{line}` is not in its place"));
        }
        skip = false;
    }
    if skip || left.next().is_none() { Ok(()) } else { Err("more is printed".into()) }
}

/// Whether the command contains one of these texts.
fn is_one_of(command: &str, texts: &[&str]) -> bool {
    texts.iter().any(|text| command.contains(text))
}

/// Runs the commands of a page that `chosen` selects in a new folder, compares their output with the page, and returns
/// how many commands ran.
fn run_page(page: &str, chosen: impl Fn(&str) -> bool) -> usize {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root.join("tests"), dir.path().join("tests")).unwrap();
    std::fs::write(dir.path().join("in.bin"), [7; 32]).unwrap();
    let mut run = 0;
    for Example { command, printed } in examples(&std::fs::read_to_string(root.join(page)).unwrap()) {
        if is_one_of(&command, LEFT_OUT) || !chosen(&command) {
            continue;
        }
        // A remark after the command is for the reader.
        let words: Vec<&str> = command.split_whitespace().take_while(|word| *word != "#").collect();
        match words.as_slice() {
            // A file that the reader writes, with the content on the page.
            ["cat", file] => std::fs::write(dir.path().join(file), printed.join("\n")).unwrap(),
            ["tilewright", arguments @ ..] => {
                let outcome = tilewright(dir.path(), arguments);
                let all = outcome.stdout + &outcome.stderr;
                // If the page shows no output, there is nothing to compare.
                let compared = if printed.is_empty() { Ok(()) } else { agrees(&printed, &all) };
                compared.unwrap_or_else(|e| panic!("{page}: {command}: {e}\n{all}"));
                let code = if is_one_of(&command, FAIL) { 2 } else { i32::from(is_one_of(&command, FIND_FAULTS)) };
                assert_eq!(outcome.code, code, "{page}: {command}: {all}");
                run += 1;
            }
            _ => panic!("{page}: {command} is no command of the program"),
        }
    }
    run
}

#[test]
fn commands_of_the_pages_print_what_the_pages_show() {
    for (page, commands) in PAGES {
        assert_eq!(run_page(page, |command| !is_one_of(command, LONG)), *commands, "commands of {page}");
    }
}

#[test]
#[ignore = "long; make test-full runs it"]
fn long_commands_of_the_pages_print_what_the_pages_show() {
    let run: usize = PAGES.iter().map(|(page, _)| run_page(page, |command| is_one_of(command, LONG))).sum();
    assert_eq!(run, LONG.len());
}

/// docs/add-a-board.md, with the page's new board in a folder.
fn page_of_a_board(dir: &Path) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/add-a-board.md")).unwrap();
    let file =
        page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the page shows a board.toml");
    std::fs::create_dir(dir.join("my-board")).unwrap();
    std::fs::write(dir.join("my-board/board.toml"), file).unwrap();
    page
}

/// The page's command that serves until it is stopped answers requests.
#[test]
#[ignore = "long; make test-full runs it"]
fn an_added_board_is_simulated_as_the_page_says() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let page = page_of_a_board(dir);
    let serving = examples(&page).into_iter().find(|e| e.command.contains("virtual-board")).expect("the page has it");
    let words: Vec<&str> = serving.command.split_whitespace().skip(1).collect();
    let Some(board) = Board::of(dir, &words) else { return };
    let asked = tilewright(dir, &["doctor", "--device", &board.port, "--hw", "1x4x4"]);
    assert!(asked.code == 0 && asked.stdout.contains("memory on the host"), "{}{}", asked.stdout, asked.stderr);
}

#[test]
fn a_board_can_be_added_as_the_page_says() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let page = page_of_a_board(dir);
    let mut run = 0;
    // The virtual board serves until it is stopped.
    for Example { command, printed } in examples(&page).into_iter().filter(|e| !e.command.contains("virtual-board")) {
        let outcome = tilewright(dir, &command.split_whitespace().skip(1).collect::<Vec<_>>());
        assert_eq!(outcome.code, 0, "{command}: {}", outcome.stderr);
        agrees(&printed, &outcome.stdout).unwrap_or_else(|e| panic!("{command}: {e}\n{}", outcome.stdout));
        run += 1;
    }
    assert_eq!(run, 1);
    let written = |name: &str| std::fs::read_to_string(dir.join("out").join(name)).unwrap();
    let pins = written("pins.lpf");
    for (port, pin) in [("clk", "P6"), ("uart_rx", "L4"), ("uart_tx", "M1"), ("led[0]", "T6"), ("led[1]", "R5")] {
        assert!(pins.contains(&format!("LOCATE COMP \"{port}\" SITE \"{pin}\";")), "{port}:\n{pins}");
    }
    assert!(written("tw_clock.v").contains("EHXPLLL"));
    assert!(written("tw_top.v").contains("assign led = ~lamps;"));
    assert!(written("synth.ys").contains("synth_ecp5"));
    assert!(written("tw_cfg_pkg.sv").contains("BlockOut = 4;"));
}
