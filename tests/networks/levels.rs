//! Optimization levels: no level is slower than the one below it, and all compute the same.

use std::path::Path;

use tilewright::device::{self, DeviceKind, Extras};
use tilewright::examine::levels::{Figures, figures};
use tilewright::model::{self, Offload, Options, Sizes};
use tilewright_hw::config::HwConfig;
use tilewright_testing as testing;

use crate::{arrays, carried, run};

fn all(file: &Path, config: &HwConfig, kind: DeviceKind) -> Vec<Figures> {
    let device = || device::open(kind, config, Extras::default(), &|_| {}).unwrap();
    (0..=3).map(|level| figures(file, config, level, device(), 1).unwrap()).collect()
}

fn check(file: &Path) -> Vec<Figures> {
    let config = HwConfig::load("1x16x16").unwrap();
    let found = all(file, &config, DeviceKind::RTL);
    for (level, pair) in found.windows(2).enumerate() {
        let (before, after) = (&pair[0], &pair[1]);
        assert!(after.cycles <= before.cycles, "{}: -O{level} {before:?}, then {after:?}", file.display());
        assert!(after.steps <= before.steps && after.nodes <= before.nodes, "{before:?}, then {after:?}");
    }
    // Joining layers saves the start and end of their programs.
    assert!(found[1].steps < found[0].steps && found[1].cycles < found[0].cycles, "{found:?}");
    found
}

#[test]
fn no_level_is_slower_than_the_one_before() {
    let found = check(&carried("lenet-mnist/model_qdq_perchannel.onnx"));
    assert!(
        found[3].cycles < found[2].cycles && found[3].dram_bytes < found[2].dram_bytes,
        "nothing is kept: {found:?}"
    );
    let Some(resnet) = testing::model("resnet8-cifar10/model_int8.tflite") else { return };
    let found = check(&resnet);
    assert!(found[2].cycles < found[1].cycles, "tiles by cost are no better than the first that fit: {found:?}");
}

#[test]
fn no_network_is_slower_at_a_higher_level() {
    let config = HwConfig::load("1x16x16").unwrap();
    for name in ["anomaly-autoencoder/model_int8.tflite", "kws-dscnn/model_int8.tflite"] {
        let Some(file) = testing::model(name) else { return };
        check_cycles(name, &all(&file, &config, DeviceKind::CSIM));
    }
}

#[test]
#[ignore = "takes minutes"]
fn no_large_network_is_slower_at_a_higher_level() {
    let config = HwConfig::load("1x16x16").unwrap();
    for name in [
        "vww-mobilenet-96/model_int8.tflite",
        "vit-tiny-mnist/model_qdq_perchannel.onnx",
        "mobilenetv2-1.0-224/model_ptq_int8.tflite",
        "efficientnet-lite0/model_qdq_perchannel.onnx",
    ] {
        let Some(file) = testing::model(name) else { return };
        check_cycles(name, &all(&file, &config, DeviceKind::CSIM));
    }
}

fn check_cycles(name: &str, found: &[Figures]) {
    let cycles: Vec<u64> = found.iter().map(|f| f.cycles.unwrap()).collect();
    println!("{name}: {cycles:?}");
    assert!(cycles.is_sorted_by(|before, after| after <= before), "{name}: {cycles:?}");
    assert!(cycles[3] < cycles[1], "{name}: tiles by cycles are no better than the first that fit: {cycles:?}");
}

#[test]
fn levels_compute_the_same() {
    let config = HwConfig::load("1x8x8").unwrap();
    for name in ["residual_block", "dwconv5x5_mult2", "transpose_conv", "concat"] {
        let file = carried(&format!("tflite-ops/{name}.tflite"));
        for device in [DeviceKind::FSIM, DeviceKind::CPU] {
            for level in 0..=3 {
                let graph = model::import(&file, Sizes::default()).unwrap();
                let options =
                    Options { level, offload: Offload::all_if(device != DeviceKind::CPU), ..Options::new(&config) };
                let artifact = model::build(graph, &options, &mut |_, _| {}).unwrap();
                let found = run(artifact, &config, device, &arrays(&file, "input")).outputs;
                assert_eq!(found, arrays(&file, "expected"), "{name} on {device} at -O{level}");
            }
        }
    }
}
