//! Int8 networks of one operator, and of one residual block, against the reference kernels.

use tilewright::devices::DeviceKind;

use crate::resnet::PRESETS;
use crate::{carried, difference};

/// Name, and by how many steps its output may differ.
const OPERATORS: &[(&str, f64)] = &[
    ("add", 0.0),
    ("add_relu", 0.0),
    ("avgpool2x2", 0.0),
    ("avgpool3x3_same", 0.0),
    ("conv1x1", 0.0),
    ("conv3x3_dil2", 0.0),
    ("conv3x3_s2_same_relu6", 0.0),
    ("conv3x3_s2_valid", 0.0),
    ("conv3x3_same_relu", 0.0),
    ("conv7x7_s2", 0.0),
    ("dwconv3x3", 0.0),
    ("dwconv3x3_s2_relu6", 0.0),
    ("dwconv5x5_mult2", 0.0),
    ("fully_connected", 0.0),
    ("global_mean", 0.0),
    ("inverted_residual", 0.0),
    ("maxpool3x3_s2", 0.0),
    ("pad", 0.0),
    ("reshape", 0.0),
    ("residual_block", 0.0),
    ("softmax", 1.0),
    ("transpose", 0.0),
];

#[track_caller]
fn check(hw: &str, device: DeviceKind) {
    let wrong: Vec<String> = OPERATORS
        .iter()
        .filter_map(|(name, allowed)| {
            let found = difference(&carried(&format!("tflite-ops/{name}.tflite")), hw, device);
            (found > *allowed).then(|| format!("{name}: {found} steps, {allowed} allowed"))
        })
        .collect();
    assert!(wrong.is_empty(), "{hw} on {device}:\n{}", wrong.join("\n"));
}

#[test]
fn the_list_is_the_folder() {
    let mut found: Vec<String> = std::fs::read_dir(carried("tflite-ops"))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_string_lossy().strip_suffix(".tflite").map(str::to_string))
        .collect();
    found.sort();
    assert_eq!(found, OPERATORS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
}

#[test]
fn operators_equal_the_reference_on_the_cpu() {
    check("1x16x16", DeviceKind::Cpu);
}

#[test]
fn operators_equal_the_reference_on_fsim() {
    for hw in PRESETS {
        check(hw, DeviceKind::Fsim);
    }
}

#[test]
fn operators_equal_the_reference_on_the_rtl() {
    check("1x16x16", DeviceKind::Rtl);
}

#[test]
#[ignore = "long; make test-full runs it"]
fn operators_equal_the_reference_on_the_rtl_of_every_preset() {
    for hw in PRESETS {
        check(hw, DeviceKind::Rtl);
    }
}
