//! Float networks on the CPU.

use std::path::Path;

use tilewright::devices::DeviceKind;

use crate::{arrays, carried, difference};

/// The largest difference must stay under a share of the output's largest magnitude.
#[track_caller]
fn check(model: &Path, share: f64) {
    let expected = arrays(model, "expected");
    let magnitude = expected.iter().flat_map(|t| t.to_f64()).fold(0.0, |most: f64, v| most.max(v.abs()));
    let found = difference(model, "1x16x16", DeviceKind::Cpu);
    assert!(found <= share * magnitude, "{}: {found} of {magnitude}", model.display());
}

#[test]
fn lenet_in_float() {
    check(&carried("lenet-mnist/model.onnx"), 1e-4);
}

#[test]
fn resnet8_in_float() {
    for name in ["model_float.tflite", "model.onnx"] {
        if let Some(model) = tilewright_testing::model(&format!("resnet8-cifar10/{name}")) {
            check(&model, 1e-4);
        }
    }
}

#[test]
fn the_autoencoder_in_float() {
    if let Some(model) = tilewright_testing::model("anomaly-autoencoder/model_float.tflite") {
        check(&model, 1e-4);
    }
}
