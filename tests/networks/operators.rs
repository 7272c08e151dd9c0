//! Int8 networks of one operator, and of one residual block, against the reference kernels.

use tilewright::device::DeviceKind;
use tilewright_runtime::artifact::Place;

use crate::resnet::PRESETS;
use crate::{carried, compiled, difference};

/// Networks whose output can differ by one step, because their tables use another exponential function.
const ONE_STEP: &[&str] = &["logistic", "softmax"];

/// Networks with nodes on the CPU if the accelerator has a 16x16 array.
const ON_CPU: &[&str] =
    &["argmax", "fully_connected", "reshape", "resize_bilinear", "softmax", "squared_diff", "transpose"];

/// Names of the networks in the folder.
fn operators() -> Vec<String> {
    let files = std::fs::read_dir(carried("tflite-ops")).unwrap();
    let name = |f: std::io::Result<std::fs::DirEntry>| f.unwrap().file_name().to_string_lossy().to_string();
    let mut found: Vec<String> = files.filter_map(|f| name(f).strip_suffix(".tflite").map(str::to_string)).collect();
    found.sort();
    assert_eq!(found.len(), 41);
    found
}

#[track_caller]
fn check(hw: &str, device: DeviceKind) {
    let operators = operators();
    let wrong: Vec<String> = operators
        .iter()
        .filter_map(|name| {
            let allowed = if ONE_STEP.contains(&name.as_str()) { 1.0 } else { 0.0 };
            let found = difference(&carried(&format!("tflite-ops/{name}.tflite")), hw, device);
            (found > allowed).then(|| format!("{name}: {found} steps, {allowed} allowed"))
        })
        .collect();
    assert!(wrong.is_empty(), "{hw} on {device}:\n{}", wrong.join("\n"));
}

#[test]
fn operators_equal_the_reference_on_the_cpu() {
    check("1x16x16", DeviceKind::CPU);
}

#[test]
fn operators_equal_the_reference_on_fsim() {
    for hw in PRESETS {
        check(hw, DeviceKind::FSIM);
    }
}

#[test]
fn operators_equal_the_reference_on_the_rtl() {
    check("1x16x16", DeviceKind::RTL);
}

#[test]
#[ignore = "long; make test-full runs it"]
fn operators_equal_the_reference_on_the_rtl_of_every_preset() {
    for hw in PRESETS {
        check(hw, DeviceKind::RTL);
    }
}

#[test]
fn operators_run_where_the_list_says() {
    let mut on_cpu = Vec::new();
    for name in operators() {
        let (artifact, _) = compiled(&carried(&format!("tflite-ops/{name}.tflite")), "1x16x16", DeviceKind::FSIM);
        if artifact.manifest.nodes.iter().any(|n| n.place == Place::Cpu) {
            on_cpu.push(name);
        }
    }
    assert_eq!(on_cpu, ON_CPU);
}
