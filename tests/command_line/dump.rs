//! `run --dump-tensors`.

use std::path::Path;

use tilewright_runtime::npy;

use crate::models::{carried, digits, lenet};
use crate::{fine, refused, tilewright};

fn index(dir: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(dir.join("index.json")).unwrap()).unwrap()
}

/// Names and bytes of the arrays of a dump.
fn arrays(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let values = index(dir)["values"].as_array().unwrap().clone();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_string();
    values.iter().map(|v| (text(&v["name"]), std::fs::read(dir.join(text(&v["file"]))).unwrap())).collect()
}

#[test]
fn every_device_writes_the_same_values() {
    let dir = tempfile::tempdir().unwrap();
    for device in ["fsim", "csim", "rtl", "cpu"] {
        let arguments = ["run", &lenet(), "--device", device, "--input", &digits(), "--dump-tensors", device];
        let outcome = tilewright(dir.path(), &arguments);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert!(outcome.stderr.contains(&format!("{device}: ")) && outcome.stderr.contains("stay inside their steps"));
    }
    let fsim = arrays(&dir.path().join("fsim"));
    assert_eq!(fsim, arrays(&dir.path().join("csim")));
    assert_eq!(fsim, arrays(&dir.path().join("rtl")));
    // The CPU joins operators that the accelerator does not join, and vice versa.
    let cpu = arrays(&dir.path().join("cpu"));
    assert!(cpu.len() >= 9);
    for array in &cpu {
        assert!(fsim.contains(array), "{}", array.0);
    }
    let index = index(&dir.path().join("fsim"));
    assert_eq!((&index["device"], &index["runs"], &index["hw"]), (&"fsim".into(), &32.into(), &"1x16x16".into()));
    let relu = index["values"].as_array().unwrap().iter().find(|v| v["name"] == "/Relu_output_0_QuantizeLinear");
    let relu = relu.unwrap();
    assert_eq!(relu["tensor"], "/Relu_output_0_QuantizeLinear_Output");
    assert_eq!((&relu["dtype"], &relu["zero_point"]), (&"i8".into(), &(-128).into()));
    assert!((relu["scale"].as_f64().unwrap() - 0.011253786).abs() < 1e-8);
    assert_eq!((&relu["where"], &relu["device_layout"]["block"]), (&"accel".into(), &16.into()));
    let tensor = npy::read(&dir.path().join("fsim").join(relu["file"].as_str().unwrap())).unwrap();
    assert_eq!(tensor.shape, [32, 8, 28, 28]);
    let absent = index["absent"].as_array().unwrap();
    assert!(absent.iter().any(|node| node["op"] == "conv2d" && node["why"].as_str().unwrap().starts_with("fused: ")));
}

#[test]
fn what_a_file_says_of_integer_models_is_in_the_index() {
    let dir = tempfile::tempdir().unwrap();
    let model = carried("tflite-ops/residual_block.tflite");
    let input = carried("tflite-ops/residual_block.input_0.npy");
    fine(dir.path(), &["run", &model, "--input", &input, "--dump-tensors", "t"]);
    let index = index(&dir.path().join("t"));
    for value in index["values"].as_array().unwrap() {
        assert!(value["scale"].as_f64().unwrap() > 0.0 && value["tensor"].is_string(), "{value}");
    }
}

#[test]
fn an_artifact_shows_what_leaves_its_steps() {
    let dir = tempfile::tempdir().unwrap();
    let shown = |extra: &[&str]| {
        fine(dir.path(), &[&["compile", &lenet(), "-o", "l.twa"][..], extra].concat());
        fine(dir.path(), &["run", "l.twa", "--input", &digits(), "--dump-tensors", "t"]);
        arrays(&dir.path().join("t")).len()
    };
    let few = shown(&[]);
    let more = shown(&["--keep-values"]);
    assert!(few >= 3 && more > few, "{few} and {more}");
}

#[test]
fn only_an_earlier_dump_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let run = |target: &str| {
        tilewright(dir.path(), &["run", &lenet(), "--input", &digits(), "--device", "cpu", "--dump-tensors", target])
    };
    std::fs::write(dir.path().join("file"), "").unwrap();
    std::fs::create_dir(dir.path().join("full")).unwrap();
    std::fs::write(dir.path().join("full/mine.txt"), "mine").unwrap();
    let arguments = |target| ["run", "m.onnx", "--input", "d.npy", "--device", "cpu", "--dump-tensors", target];
    std::fs::copy(lenet(), dir.path().join("m.onnx")).unwrap();
    std::fs::copy(digits(), dir.path().join("d.npy")).unwrap();
    let message = "--dump-tensors: file is a file; name a folder, or one to create";
    refused(dir.path(), &arguments("file"), message);
    let message = "--dump-tensors: full is not empty and not a tensor dump; name another folder, or empty this one";
    refused(dir.path(), &arguments("full"), message);
    assert_eq!(std::fs::read_dir(dir.path().join("full")).unwrap().count(), 1);
    assert_eq!(run("new/folder").code, 0);
    std::fs::write(dir.path().join("new/folder/stale.npy"), "").unwrap();
    assert_eq!(run("new/folder").code, 0);
    assert!(!dir.path().join("new/folder/stale.npy").exists());
    // There are no other files next to it.
    assert_eq!(std::fs::read_dir(dir.path().join("new")).unwrap().count(), 1);
    refused(
        dir.path(),
        &["run", "p.tw", "--dump-tensors", "t"].map(|a| if a == "p.tw" { program(dir.path()) } else { a }),
        "--dump-tensors is for models, but p.tw is a program; use --data and --read",
    );
}

fn program(dir: &Path) -> &'static str {
    std::fs::write(dir.join("p.tw"), "load\n").unwrap();
    "p.tw"
}
