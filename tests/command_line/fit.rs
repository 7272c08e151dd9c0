//! `compile --board` and `inspect --targets`.

use tilewright::model::wasm::WasmLinker;

use crate::models::{json, lenet};
use crate::{fine, tilewright};

#[test]
fn a_model_that_fits_a_board_is_told_with_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let compile = ["compile", &lenet(), "--board", "ulx3s-85f"];
    let found = json(&fine(dir, &[&compile[..], &["--json", "-o", "lenet.twa"]].concat()));
    let memory = &found["memory"];
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or_else(|| panic!("{value} in {found}"));
    assert_eq!(number(&memory["available"]), 32 << 20);
    let parts = ["parameters", "activations", "programs"].map(|part| number(&memory[part]));
    assert_eq!(parts.iter().sum::<u64>(), number(&memory["needed"]));
    assert!(found["fits"] == true && found["remedy"].is_null());
    // The cycles are those of a run on the cycle model, at the board's clock.
    let ran = json(&fine(dir, &["run", "lenet.twa", "--device", "csim", "--input", "random", "--json"]));
    assert_eq!(found["cycles"], ran["cycles"]);
    let mhz = found["clock_mhz"].as_f64().unwrap();
    let ms = found["time_ms"]["accelerator"].as_f64().unwrap();
    assert!((ms - number(&found["cycles"]) as f64 / mhz / 1e3).abs() < 1e-6, "{ms}");
    let whole = ["accelerator", "host", "conversions", "transfers", "launches"];
    let whole: f64 = whole.iter().map(|part| found["time_ms"][part].as_f64().unwrap()).sum();
    assert!((whole - found["time_ms"]["all"].as_f64().unwrap()).abs() < 1e-9);
    let text = fine(dir, &compile);
    for part in ["on ulx3s-85f at 35.71 MHz", "33554432  in the board's SDRAM", "yes", "cycles by the cycle model"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("remedy"));
}

#[test]
fn a_model_that_is_too_large_for_a_board_is_refused_with_what_is_large() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/hw/boards/colorlight-i9/board.toml");
    let text = std::fs::read_to_string(file).unwrap();
    // The same board with 16 KiB of block RAM as its memory.
    let from = text.find("[memory]").unwrap();
    let rest = text[from..].find("[leds]").map_or("", |at| &text[from + at..]);
    std::fs::create_dir(dir.join("small")).unwrap();
    let text = format!("{}[memory]\nkind = \"block\"\nkib = 16\n\n{rest}", &text[..from]);
    std::fs::write(dir.join("small/board.toml"), text).unwrap();
    let outcome = tilewright(dir, &["compile", &lenet(), "--board", "./small", "-o", "lenet.twa"]);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    for part in
        ["16384  in block RAM", "fits                          NO", "  large", "a board with enough memory: ", "ulx3s"]
    {
        assert!(outcome.stdout.contains(part), "{part}: {}", outcome.stdout);
    }
    assert!(!dir.join("lenet.twa").exists());
    let outcome = tilewright(dir, &["compile", &lenet(), "--board", "./small", "--json"]);
    let found = json(&outcome.stdout);
    assert!(outcome.code == 1 && found["fits"] == false && found["memory"]["largest"][0]["bytes"].is_u64(), "{found}");
    // Without accelerator code, everything fits.
    assert_eq!(tilewright(dir, &["compile", &lenet(), "--board", "./small", "--offload", "none"]).code, 0);
}

#[test]
fn targets_are_those_of_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let text = fine(dir.path(), &["inspect", "--targets"]);
    let found = json(&fine(dir.path(), &["inspect", "--targets", "--json"]));
    let names = |key: &str| -> Vec<String> {
        let list = found[key].as_array().unwrap_or_else(|| panic!("{key}: {found}"));
        list.iter().map(|row| row["name"].as_str().unwrap().to_string()).collect()
    };
    for (key, one) in
        [("cpu", "riscv64-linux-gnu"), ("configurations", "1x16x16"), ("boards", "ulx3s-85f"), ("devices", "csim")]
    {
        assert!(names(key).iter().any(|name| name == one), "{key} lacks {one}: {found}");
        assert!(names(key).iter().all(|name| text.contains(name)), "{key}: {text}");
    }
    // Every listed CPU target can be compiled for.
    for target in names("cpu") {
        let lenet = lenet();
        let mut command = vec!["compile", &lenet, "--offload", "none", "--cpu-target", &target, "-o", "lenet.twa"];
        if target == "wasm32" {
            if let Err(error) = WasmLinker::find() {
                tilewright_testing::skip(&error.to_string());
                continue;
            }
            command.extend(["--emit", "wasm"]);
        }
        fine(dir.path(), &command);
    }
    let fsim = found["devices"].as_array().unwrap().iter().find(|row| row["name"] == "fsim").unwrap();
    assert!(fsim["needs"] == "nothing" && fsim["missing"].is_null());
}
