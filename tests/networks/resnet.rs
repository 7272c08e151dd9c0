//! The int8 networks of MLPerf Tiny: bit-exact on every device, and how much of the array they and a larger network
//! use.

use std::path::Path;

use tilewright::device::DeviceKind;

use crate::{arrays, compiled, compiled_at, difference, largest, run};

/// The presets.
pub const PRESETS: &[&str] = &["1x4x4", "1x8x8", "1x16x16", "1x32x32", "1x8x16", "4x16x16"];

/// resnet8 ends with a softmax, which can differ by one step.
#[track_caller]
fn check(model: &Path, steps: f64, hw: &str, device: DeviceKind) {
    let found = difference(model, hw, device);
    assert!(found <= steps, "{} for {hw} on {device}: {found} steps, {steps} allowed", model.display());
}

#[test]
fn resnet8_equals_the_reference_on_fsim_with_every_preset() {
    let Some(model) = tilewright_testing::model("resnet8-cifar10/model_int8.tflite") else { return };
    for hw in PRESETS {
        check(&model, 1.0, hw, DeviceKind::FSIM);
    }
}

#[test]
fn resnet8_equals_the_reference_on_the_rtl() {
    let Some(model) = tilewright_testing::model("resnet8-cifar10/model_int8.tflite") else { return };
    for hw in ["1x4x4", "1x8x16", "1x16x16", "4x16x16"] {
        check(&model, 1.0, hw, DeviceKind::RTL);
    }
}

#[test]
fn keywords_are_spotted_on_the_rtl_of_several_shapes() {
    let Some(model) = tilewright_testing::model("kws-dscnn/model_int8.tflite") else { return };
    for hw in ["1x8x16", "4x16x16"] {
        check(&model, 0.0, hw, DeviceKind::RTL);
    }
}

/// Slow: 1x32x32 alone takes minutes to build.
#[test]
#[ignore = "long; make test-full runs it"]
fn every_network_equals_the_reference_on_the_rtl_of_every_preset() {
    let Some(resnet) = tilewright_testing::model("resnet8-cifar10/model_int8.tflite") else { return };
    let Some(autoencoder) = tilewright_testing::model("anomaly-autoencoder/model_int8.tflite") else { return };
    for hw in PRESETS {
        check(&resnet, 1.0, hw, DeviceKind::RTL);
        check(&autoencoder, 0.0, hw, DeviceKind::RTL);
    }
}

#[test]
fn resnet8_equals_the_reference_on_the_cpu() {
    let Some(model) = tilewright_testing::model("resnet8-cifar10/model_int8.tflite") else { return };
    check(&model, 1.0, "1x16x16", DeviceKind::CPU);
}

#[test]
fn the_autoencoder_equals_the_reference_everywhere() {
    let Some(model) = tilewright_testing::model("anomaly-autoencoder/model_int8.tflite") else { return };
    for hw in PRESETS {
        check(&model, 0.0, hw, DeviceKind::FSIM);
    }
    check(&model, 0.0, "1x16x16", DeviceKind::RTL);
    check(&model, 0.0, "1x16x16", DeviceKind::CPU);
}

#[test]
fn nearly_all_of_resnet8_is_offloaded() {
    let Some(model) = tilewright_testing::model("resnet8-cifar10/model_int8.tflite") else { return };
    for hw in PRESETS {
        let (artifact, _) = compiled(&model, hw, DeviceKind::FSIM);
        let (offloaded, all) = (artifact.manifest.offloaded_macs(), artifact.manifest.macs());
        assert!(offloaded as f64 >= 0.99 * all as f64, "{hw}: {offloaded} of {all} MACs");
    }
}

#[test]
fn resnet8_keeps_the_array_busy() {
    let Some(model) = tilewright_testing::model("resnet8-cifar10/model_int8.tflite") else { return };
    let (artifact, config) = compiled(&model, "1x16x16", DeviceKind::RTL);
    let results = run(artifact.clone(), &config, DeviceKind::RTL, &arrays(&model, "input"));
    let utilization = results.utilization(&artifact, config.macs_per_cycle()).unwrap();
    println!("resnet8 on 1x16x16: {} cycles, {:.1} %", results.cycles().unwrap(), 100.0 * utilization);
    assert!(utilization >= 0.68, "{utilization}");
}

/// The preset on the cycle model, whose cycles are those of the design.
#[test]
fn efficientnet_keeps_the_array_busy() {
    let Some(model) = tilewright_testing::model("efficientnet-lite0/model_qdq_perchannel.onnx") else { return };
    let (artifact, config) = compiled_at(2, &model, "1x16x16", DeviceKind::CSIM);
    let results = run(artifact.clone(), &config, DeviceKind::CSIM, &arrays(&model, "input")[..1]);
    let utilization = results.utilization(&artifact, config.macs_per_cycle()).unwrap();
    println!("efficientnet-lite0 on 1x16x16: {} cycles, {:.1} %", results.cycles().unwrap(), 100.0 * utilization);
    assert!(utilization >= 0.35, "{utilization}");
}

/// Additions fused into the tiles of the convolutions before them give the same results in less time.
#[test]
fn the_highest_level_saves_time() {
    let Some(model) = tilewright_testing::model("resnet8-cifar10/model_int8.tflite") else { return };
    for hw in ["1x16x16", "1x8x16", "4x16x16"] {
        let [two, three] = [2, 3].map(|level| {
            let (artifact, config) = compiled_at(level, &model, hw, DeviceKind::RTL);
            run(artifact, &config, DeviceKind::RTL, &arrays(&model, "input"))
        });
        assert!(largest(&three.outputs, &two.outputs) == 0.0);
        let [two, three] = [two, three].map(|r| r.cycles().unwrap());
        println!("resnet8 on {hw}: {two} cycles at -O2, {three} at -O3");
        assert!(three < two, "{hw}: {two} and {three}");
    }
}

/// Checks for every preset the maximum difference, in steps, between a network on fsim at the highest level and its
/// reference.
fn highest_level(name: &str, allowed: f64) {
    let Some(model) = tilewright_testing::model(name) else { return };
    for hw in PRESETS {
        let (artifact, config) = compiled_at(3, &model, hw, DeviceKind::FSIM);
        let found = run(artifact, &config, DeviceKind::FSIM, &arrays(&model, "input")).outputs;
        let found = largest(&found, &arrays(&model, "expected"));
        assert!(found <= allowed, "{name} for {hw}: {found} steps, {allowed} allowed");
    }
}

#[test]
fn the_highest_level_keeps_every_answer() {
    highest_level("resnet8-cifar10/model_int8.tflite", 1.0);
    highest_level("kws-dscnn/model_int8.tflite", 0.0);
}

#[test]
#[ignore = "long; make test-full runs it"]
fn the_highest_level_keeps_every_answer_of_a_large_network() {
    highest_level("mobilenetv2-1.0-224/model_ptq_int8.tflite", 1.0);
}
