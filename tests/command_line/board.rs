//! Virtual boards behind a pseudo-terminal, used like boards behind a serial port; and ports that do not exist.

use super::{fine, refused, tilewright};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub const HW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/driver/tests/board/small.toml");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models/lenet-mnist/model_qdq_perchannel");

const SPI_BOARD: &str = r#"
title = "A board with two links"
family = "ecp5"
device = "LFE5U-25F"
package = "CABGA381"
speed = "6"
hw = "HW"
core_mhz = 40.0
clock = { pin = "G2", mhz = 25.0 }
host = { kind = "uart", rx = "M1", tx = "L4", baud = 1_000_000, reach = { kind = "usb", bridge = "a chip", port = 1, ports = 1 } }
hosts = [{ kind = "spi", cs = "B11", sck = "A10", mosi = "A9", miso = "B9", reach = { kind = "pins", connector = "J1" } }]
memory = { kind = "host" }
"#;

/// A virtual board that runs until it is dropped.
pub struct Board {
    child: Child,
    /// Its port, for `--device`.
    pub port: String,
}

impl Board {
    pub fn new() -> Option<Board> {
        Board::with(&["--hw", HW])
    }

    /// A board with an SPI link: the terminal's bytes go through an SPI master to its pins.
    fn over_spi(dir: &Path) -> Option<Board> {
        let folder = dir.join("spi-board");
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(folder.join("board.toml"), SPI_BOARD.replace("HW", HW)).expect("a file");
        Board::with(&["--board", &folder.display().to_string(), "--host", "spi"])
    }

    fn with(arguments: &[&str]) -> Option<Board> {
        Board::of(Path::new("."), &[&["virtual-board"][..], arguments].concat())
    }

    /// A board that a given command starts in a folder.
    pub fn of(dir: &Path, arguments: &[&str]) -> Option<Board> {
        if !tilewright_testing::has_program("verilator") {
            return None;
        }
        let mut child = Command::new(env!("CARGO_BIN_EXE_tilewright"))
            .args(arguments)
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut port = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut port).expect("a line");
        Some(Board { child, port: format!("serial:{}", port.trim()) })
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.child.kill().expect("it runs still");
        self.child.wait().expect("it ends");
    }
}

/// Runs lenet on a board and on the functional simulator.
fn runs_bit_for_bit(board: &Board) {
    runs_on(board, HW);
}

/// The board's cycles.
fn runs_on(board: &Board, hw: &str) -> f64 {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let (model, input) = (format!("{MODEL}.onnx"), format!("{MODEL}.input_0.npy"));
    let run = |device: &str, to: &str| {
        let arguments =
            ["run", &model, "--hw", hw, "--device", device, "--input", &input, "--output-dir", to, "--json"];
        let report: serde_json::Value = serde_json::from_str(&fine(dir, &arguments)).expect("a report");
        (std::fs::read(dir.join(to).join("logits.npy")).expect("an output"), report["cycles"].as_f64())
    };
    let (on_board, on_fsim) = (run(&board.port, "board"), run("fsim", "fsim"));
    assert_eq!(on_board.0, on_fsim.0);
    on_board.1.expect("a board counts cycles")
}

/// Runs lenet on a board and with the DRAM model that the board's name selects. The cycles can differ by the given
/// share.
fn runs_and_takes(board: &Board, name: &str, off: f64) {
    let model = format!("{MODEL}.onnx");
    let modeled =
        fine(Path::new("."), &["run", &model, "--hw", name, "--device", "csim", "--input", "random", "--json"]);
    let modeled: serde_json::Value = serde_json::from_str(&modeled).expect("a report");
    let (modeled, found) = (modeled["cycles"].as_f64().expect("cycles"), runs_on(board, name));
    assert!((modeled / found - 1.0).abs() < off, "{name}: {modeled} cycles modeled, {found} found");
}

#[test]
fn a_network_runs_on_a_board_bit_for_bit() {
    let Some(board) = Board::new() else { return };
    runs_bit_for_bit(&board);
}

#[test]
#[ignore = "long; make test-full runs it"]
fn a_network_runs_on_the_design_that_the_smallest_board_has() {
    let Some(board) = Board::with(&["--board", "hx8k-evn"]) else { return };
    runs_and_takes(&board, "hx8k-evn", 0.05);
}

/// The complete design of a board with an SDRAM, including its pins, with a small core.
#[test]
#[ignore = "long; make test-full runs it"]
fn a_network_runs_on_a_board_with_sdram_bit_for_bit() {
    let dir = tempfile::tempdir().expect("a folder");
    let text = include_str!("../../hw/boards/ulx3s-25f/board.toml")
        .replace("\nhw = \"1x4x4-ecp5\"", &format!("\nhw = \"{HW}\""));
    std::fs::write(dir.path().join("board.toml"), text).expect("a file");
    let name = dir.path().display().to_string();
    let Some(board) = Board::with(&["--board", &name]) else { return };
    let found = tilewright(Path::new("."), &["doctor", "--device", &board.port, "--hw", HW]);
    assert!(
        found.code == 0 && found.stdout.contains("memory on the board (32768 KiB)"),
        "{}{}",
        found.stdout,
        found.stderr
    );
    runs_and_takes(&board, &name, 0.02);
}

#[test]
#[ignore = "long; make test-full runs it"]
fn a_network_runs_on_the_designs_that_boards_with_sdram_have() {
    for name in ["colorlight-i9", "ulx3s-25f", "ulx3s-85f"] {
        let Some(board) = Board::with(&["--board", name]) else { return };
        runs_and_takes(&board, name, 0.02);
    }
}

#[test]
#[ignore = "long; make test-full runs it"]
fn a_network_runs_on_a_board_over_spi_bit_for_bit() {
    let dir = tempfile::tempdir().expect("a folder");
    let Some(board) = Board::over_spi(dir.path()) else { return };
    let found = tilewright(dir.path(), &["doctor", "--device", &board.port, "--hw", HW]);
    assert!(found.code == 0 && found.stdout.contains("bytes there and back"), "{}{}", found.stdout, found.stderr);
    runs_bit_for_bit(&board);
}

#[test]
#[ignore = "long; make test-full runs it"]
fn a_larger_network_runs_on_a_board_bit_for_bit() {
    let Some(model) = tilewright_testing::model("kws-dscnn/model_int8.tflite") else { return };
    let Some(input) = tilewright_testing::model("kws-dscnn/model_int8-tflite.input_0.npy") else { return };
    let Some(board) = Board::new() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let (model, input) = (model.display().to_string(), input.display().to_string());
    let run = |device: &str, to: &str| -> Vec<Vec<u8>> {
        fine(dir, &["run", &model, "--hw", HW, "--device", device, "--input", &input, "--output-dir", to]);
        let files = std::fs::read_dir(dir.join(to)).expect("outputs");
        files.map(|file| std::fs::read(file.expect("an output").path()).expect("an output")).collect()
    };
    let (board, fsim) = (run(&board.port, "board"), run("fsim", "fsim"));
    assert!(!fsim.is_empty() && board == fsim, "{} and {} outputs", board.len(), fsim.len());
}

#[test]
fn doctor_looks_at_a_board() {
    let Some(board) = Board::new() else { return };
    let dir = Path::new(".");
    let doctor = |hw| tilewright(dir, &["doctor", "--device", &board.port, "--hw", hw]);
    // Hosts connect one after the other. The one in the middle has another configuration.
    for _ in 0..2 {
        let found = doctor(HW);
        assert_eq!(found.code, 0, "{}", found.stderr);
        let begins = [
            "ok       link  ",
            "ok       isa  ",
            "ok       config  ",
            "ok       memory     512 bytes there and back in",
        ];
        for (line, begin) in found.stdout.lines().zip(begins) {
            assert!(line.starts_with(begin), "{}", found.stdout);
        }
        assert_eq!(found.stdout.lines().count(), begins.len());
        let other = doctor("1x4x4");
        assert_eq!(other.code, 2);
        let said = other.stderr.contains("the board has configuration") && other.stderr.contains("but 1x4x4 is ");
        assert!(said, "{}", other.stderr);
    }
}

#[test]
fn a_board_that_goes_away_ends_the_run() {
    let Some(board) = Board::new() else { return };
    let model = format!("{MODEL}.onnx");
    let runs = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(["run", &model, "--hw", HW, "--device", &board.port, "--input", "random"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The run takes much longer than that.
    std::thread::sleep(Duration::from_secs(2));
    drop(board);
    let output = runs.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("the connection broke: ") && error.contains("check the cable and the power"), "{error}");
}

#[test]
fn what_is_no_board_is_refused() {
    let dir = Path::new(".");
    let none = tilewright(dir, &["doctor", "--device", "serial:/dev/no-such-port"]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.starts_with("error: /dev/no-such-port: there is no such device file; plug"), "{}", none.stderr);
    for (device, begin) in [
        ("spi:/dev/spidev99.0", "error: /dev/spidev99.0: there is no such device file; "),
        ("spi:/dev/null", "error: /dev/null: cannot be opened: it is not a spidev file"),
        ("uio:no-such-core", "error: uio:no-such-core: "),
    ] {
        let none = tilewright(dir, &["doctor", "--device", device]);
        assert_eq!((none.code, none.stdout.as_str()), (2, ""), "{}", none.stderr);
        assert!(none.stderr.starts_with(begin), "{}", none.stderr);
        let run = tilewright(dir, &["run", &format!("{MODEL}.onnx"), "--device", device, "--input", "random"]);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains(&begin["error: ".len()..]), "{}", run.stderr);
    }
    let garbled = tilewright(dir, &["doctor", "--device", "spi:/dev/spidev0.0@fast"]);
    assert!(
        garbled.code == 2 && garbled.stderr.contains("spi:/dev/spidev0.0@fast is not a valid port; give"),
        "{}",
        garbled.stderr
    );
    refused(
        dir,
        &["doctor", "--device", "fsim"],
        "fsim is not a board; give --device serial:PATH, spi:PATH or uio, or leave --device out to check the tools",
    );
    refused(dir, &["doctor", "--hw", "1x4x4"], "--hw is for a board; add --device serial:PATH, spi:PATH or uio");
}
