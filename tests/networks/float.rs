//! Float networks on the CPU. The lists must name every network of the folder.

use std::path::{Path, PathBuf};

use tilewright::device::DeviceKind;

use crate::{arrays, carried, difference};

/// Float ONNX networks: folder and file. Outputs must be within 1e-4 of their largest magnitude.
const ONNX: &[&str] = &[
    "bert-tiny-random/model.onnx",
    "efficientnet-lite0/model.onnx",
    "kws-dscnn/model.onnx",
    "lenet-mnist/model.onnx",
    "mnist-cntk/model.onnx",
    "ppocr-cls/model.onnx",
    "resnet8-cifar10/model.onnx",
    "ultraface-rfb-320/model.onnx",
    "vit-tiny-mnist/model.onnx",
];

/// Quantized ONNX networks, which other tests run.
const QUANTIZED: &[&str] = &[
    "efficientnet-lite0/model_qdq_perchannel.onnx",
    "lenet-mnist/model_qdq_perchannel.onnx",
    "lenet-mnist/model_qdq_pertensor.onnx",
    "vit-tiny-mnist/model_qdq_perchannel.onnx",
];

/// The largest difference must be below 1e-4 of the output's largest magnitude.
fn check(model: &Path) -> Result<(), String> {
    let expected = arrays(model, "expected");
    let magnitude = expected.iter().flat_map(|t| t.to_f64()).fold(0.0, |most: f64, v| most.max(v.abs()));
    let found = difference(model, "1x16x16", DeviceKind::CPU) / magnitude;
    println!("{}: {found:.1e} of the greatest magnitude", model.display());
    if found <= 1e-4 { Ok(()) } else { Err(format!("{}: {found}", model.display())) }
}

#[test]
fn lenet_in_float() {
    check(&carried("lenet-mnist/model.onnx")).unwrap();
}

#[test]
fn every_float_onnx_network_is_close() {
    let Some(folder) = tilewright_testing::model("") else { return };
    let wrong: Vec<String> = ONNX.iter().filter_map(|name| check(&folder.join(name)).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_onnx_network_of_the_folder_is_in_a_list() {
    let Some(folder) = tilewright_testing::model("") else { return };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let inner = entry.unwrap().path();
        // Another test covers networks without trained weights.
        if !inner.is_dir() || inner.ends_with("onnx-light") {
            continue;
        }
        let files = std::fs::read_dir(&inner).unwrap().map(|e| e.unwrap().path());
        found.extend(files.filter(|f| f.extension().is_some_and(|e| e == "onnx")));
    }
    let listed = |f: &PathBuf| ONNX.iter().chain(QUANTIZED).any(|name| f.ends_with(name));
    let missing: Vec<&PathBuf> = found.iter().filter(|f| !listed(f)).collect();
    assert!(missing.is_empty(), "not in a list: {missing:?}");
    assert_eq!(found.len(), ONNX.len() + QUANTIZED.len());
}
