//! `--offload`, `--measure` and their output in `--explain`.

use crate::models::{digits, json, lenet};
use crate::{fine, tilewright};

#[test]
fn placement_by_cost_is_explained_with_figures() {
    let dir = tempfile::tempdir().unwrap();
    let run = |options: &[&str]| {
        let base = ["run", &lenet(), "--hw", "1x4x4", "--input", &digits(), "--json", "--output-dir", "out"];
        let report = json(&fine(dir.path(), &[&base[..], options].concat()));
        (report, std::fs::read(dir.path().join("out/logits.npy")).unwrap())
    };
    let (auto, outputs) = run(&["--offload", "auto"]);
    let (none, expected) = run(&["--offload", "none"]);
    assert_eq!(outputs, expected);
    let nodes = auto["nodes"].as_array().unwrap();
    assert!(nodes.iter().any(|n| n["where"] == "accel") && nodes.iter().any(|n| n["where"] == "cpu"));
    assert!(nodes.iter().any(|n| n["why"].as_str().unwrap().starts_with("by cost: ")));
    for node in nodes {
        let cost = &node["cost"];
        assert!(cost["cpu_us"].as_f64().unwrap() > 0.0 && cost["cpu_from"] == "modeled", "{node}");
        if node["where"] == "accel" {
            assert!(cost["accel_us"].is_number() && cost["moving_us"].is_number(), "{node}");
        }
    }
    // Nodes have the same figures wherever they run.
    for (a, b) in nodes.iter().zip(none["nodes"].as_array().unwrap()) {
        assert_eq!(a["name"], b["name"]);
        assert!(a["cost"]["layer"] != b["cost"]["layer"] || a["cost"]["cpu_us"] == b["cost"]["cpu_us"]);
    }
    let (measured, outputs) = run(&["--offload", "auto", "--measure"]);
    assert_eq!(outputs, expected);
    assert!(measured["nodes"].as_array().unwrap().iter().all(|n| n["cost"]["cpu_from"] == "measured"));
}

#[test]
fn the_table_says_that_the_cpu_is_modeled() {
    let dir = tempfile::tempdir().unwrap();
    let output = tilewright(
        dir.path(),
        &["compile", &lenet(), "--hw", "1x4x4", "-o", "l.twa", "--offload", "auto", "--explain"],
    );
    let text = output.stdout;
    for part in [
        "CPU modeled",
        "accelerator: by the cycle model for layers that run there, else estimated; ",
        "to move",
        "by cost: ",
        "(modeled)",
        "model of the configuration's host",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // An artifact contains its figures.
    let again = tilewright(dir.path(), &["run", "l.twa", "--explain"]);
    assert!(again.stdout.contains("CPU modeled"));
}

#[test]
fn auto_without_an_accelerator_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let told = |device: &str, offload: &str| {
        let arguments = ["run", &lenet(), "--input", &digits(), "--device", device, "--offload", offload];
        let outcome = tilewright(dir.path(), &arguments);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        outcome.stderr.contains("note: --offload auto has no effect on device cpu")
    };
    assert!(told("cpu", "auto"));
    assert!(!told("cpu", "none") && !told("fsim", "auto"));
}

#[test]
fn wrong_figures_of_the_host_are_all_reported() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("h.toml"), "[host]\ncores = 0\nops_per_cycle = -1\n").unwrap();
    let output = tilewright(dir.path(), &["configs", "check", "h.toml"]);
    let text = output.stdout;
    assert!(
        text.contains("host.cores") && text.contains("host.ops_per_cycle") && text.contains("2 violation(s)"),
        "{text}"
    );
}
