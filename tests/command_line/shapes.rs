//! `zoo make`: networks of well-known shapes.

use tilewright::model::shapes::LAYERS;
use tilewright_runtime::npy;
use tilewright_runtime::tensor::Tensor;

use crate::models::json;
use crate::{fine, refused, tilewright};

#[test]
fn a_network_is_made_and_runs_alike_on_every_device() {
    let dir = tempfile::tempdir().unwrap();
    let layer = LAYERS.iter().find(|layer| layer.name == "resnet18-c10").unwrap();
    fine(dir.path(), &["zoo", "make", layer.name, "-o", "layer.onnx"]);
    let shape = vec![1, layer.channels, layer.size, layer.size];
    let values: Vec<f32> =
        (0..shape.iter().product::<usize>()).map(|i| (i * 7919 % 1000) as f32 / 250.0 - 2.0).collect();
    npy::write(&dir.path().join("x.npy"), &Tensor::from_f32(shape, &values).unwrap()).unwrap();
    let run = |device: &str, more: &[&str]| {
        let arguments = ["run", "layer.onnx", "--input", "x.npy", "--device", device, "--output-dir", device, "--json"];
        let report = json(&fine(dir.path(), &[&arguments[..], more].concat()));
        let outputs = report["outputs"].as_array().unwrap();
        assert_eq!(outputs.len(), 1);
        let file = dir.path().join(outputs[0]["file"].as_str().unwrap());
        (report, npy::read(&file).unwrap())
    };
    let (fsim, expected) = run("fsim", &[]);
    assert_eq!(expected.shape, [1, layer.out, layer.out_size(), layer.out_size()]);
    let distinct: std::collections::BTreeSet<u64> = expected.to_f64().iter().map(|v| v.to_bits()).collect();
    assert!(distinct.len() > 30, "{} values are told apart", distinct.len());
    assert_eq!((&fsim["macs"], &fsim["offloaded_macs_fraction"]), (&layer.macs().into(), &1.0.into()));
    let (csim, found) = run("csim", &["--strict"]);
    assert!(found == expected, "the cycle model computes other values");
    let least = layer.macs() / 256;
    assert!(csim["cycles"].as_u64().is_some_and(|cycles| (least..2 * least).contains(&cycles)), "{}", csim["cycles"]);
    assert!(run("cpu", &[]).1 == expected, "the processor computes other values");
    // The same name gives the same file.
    fine(dir.path(), &["zoo", "make", layer.name, "-o", "again.onnx"]);
    let file = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    assert!(file("again.onnx") == file("layer.onnx"));
}

#[test]
fn what_cannot_be_made_or_written_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let outcome = tilewright(dir.path(), &["zoo", "make", "alexnet", "-o", "a.onnx"]);
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.stderr.starts_with("error: there is no network shape named alexnet; use one of resnet18, resnet34, "),
        "{}",
        outcome.stderr
    );
    assert!(!dir.path().join("a.onnx").exists());
    let message = "cannot write nowhere/a.onnx: No such file or directory (os error 2)";
    refused(dir.path(), &["zoo", "make", "resnet18-c10", "-o", "nowhere/a.onnx"], message);
}
