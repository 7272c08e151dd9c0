//! `synth` as far as it needs no tool: boards, and what is refused before any work.

use super::{fine, tilewright};
use std::path::Path;

#[test]
fn boards_are_listed() {
    let text = fine(Path::new("."), &["synth"]);
    for board in ["hx8k-evn", "icebreaker", "upduino", "ulx3s-85f", "orangecrab", "pynq-z1", "zcu104"] {
        assert!(text.lines().any(|line| line.starts_with(board)), "{board}:\n{text}");
    }
}

#[test]
fn what_no_board_can_have_is_refused_by_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let refused = |arguments: &[&str], words: &[&str]| {
        let outcome = tilewright(dir, arguments);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
        assert!(words.iter().all(|word| outcome.stderr.contains(word)), "{}", outcome.stderr);
    };
    refused(&["synth", "--board", "hx9k"], &["no board is named hx9k", "hx8k-evn"]);
    refused(&["synth", "--board", "./nowhere"], &["nowhere/board.toml"]);
    refused(&["synth", "--board", "hx8k-evn", "--hw", "2x2"], &["2x2", "1x4x4"]);
    std::fs::create_dir(dir.join("own")).expect("a folder");
    std::fs::write(dir.join("own/board.toml"), "title = 1\n").expect("a file");
    refused(&["synth", "--board", "./own"], &["own/board.toml", "title"]);
    assert!(!dir.join("build").exists());
}
