//! The commands of README.md print what stands there, and those of docs/add-a-board.md.

use std::path::Path;

use crate::board::Board;
use crate::tilewright;

/// What the commands that are left out need: the Verilated design, files that a reader has and the repository has not, or the
/// machine's speed.
const LEFT_OUT: &[&str] = &["--device rtl", "my_classifier.onnx", "--b dir:good", "mine.toml", "tilewright bench"];

/// A command and the lines behind it.
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

/// A line without what differs from machine to machine: seconds.
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

#[test]
fn commands_of_the_readme_print_what_stands_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root.join("tests"), dir.path().join("tests")).unwrap();
    std::fs::write(dir.path().join("in.bin"), [7; 32]).unwrap();
    let mut run = 0;
    for Example { command, printed } in examples(&std::fs::read_to_string(root.join("README.md")).unwrap()) {
        if LEFT_OUT.iter().any(|part| command.contains(part)) {
            continue;
        }
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            // The reader's own file, as it is shown.
            ["cat", file] => std::fs::write(dir.path().join(file), printed.join("\n")).unwrap(),
            ["tilewright", arguments @ ..] => {
                let outcome = tilewright(dir.path(), arguments);
                assert_eq!(outcome.code, 0, "{command}: {}", outcome.stderr);
                let all = outcome.stdout + &outcome.stderr;
                agrees(&printed, &all).unwrap_or_else(|e| panic!("{command}: {e}\n{all}"));
                run += 1;
            }
            _ => panic!("{command} is no command of the program"),
        }
    }
    assert_eq!(run, 8);
}

/// docs/add-a-board.md, with the board that it adds in a folder.
fn page_of_a_board(dir: &Path) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/add-a-board.md")).unwrap();
    let file =
        page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the page shows a board.toml");
    std::fs::create_dir(dir.join("my-board")).unwrap();
    std::fs::write(dir.join("my-board/board.toml"), file).unwrap();
    page
}

/// The page's command that serves until it is ended answers who asks.
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
    // The virtual board serves until it is ended.
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
