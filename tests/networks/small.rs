//! Configurations for small FPGAs: loads that cannot pad or pack, two loops, few base registers and lanes, and no
//! optional operations.

use std::path::Path;

use tilewright::device::DeviceKind;
use tilewright::model::{self, Offload, Options, Sizes};
use tilewright_hw::config::HwConfig;
use tilewright_hw::flow::board::Board;
use tilewright_runtime::artifact::{Artifact, Place};

use crate::{arrays, carried, compiled, largest, run};

/// Three small configurations: with quantized additions, without any optional operation, and with tiny memories in
/// addition.
pub fn small_parts() -> [HwConfig; 3] {
    let adds = HwConfig {
        name: "1x4x2 with additions".into(),
        block_in: 4,
        block_out: 2,
        bus_bits: 32,
        dma_pad: false,
        dma_pack: false,
        loops: 2,
        bases: 4,
        offset_bits: 20,
        stride_bits: 20,
        vector_lanes: 1,
        requant_lanes: 1,
        vector_mac: false,
        vector_lut: false,
        vector_mul: false,
        wgt_zp: false,
        ..HwConfig::default()
    };
    let plain = HwConfig { name: "1x4x2".into(), vector_qadd: false, vector_shift: false, ..adds.clone() };
    let tiny = HwConfig {
        name: "tiny 1x4x2".into(),
        inp_depth: 512,
        wgt_depth: 512,
        acc_depth: 512,
        out_depth: 512,
        param_depth: 64,
        gemm_uop_depth: 256,
        vector_uop_depth: 128,
        inp_banks: 1,
        acc_banks: 2,
        out_banks: 1,
        ..plain.clone()
    };
    [adds, plain, tiny]
}

fn built(model: &Path, config: &HwConfig, level: u8, offloads: bool) -> Artifact {
    let data = arrays(model, "input").into_iter().map(|t| (None, t.shape).into()).collect();
    let graph = model::import(model, &Sizes { data, ..Sizes::default() }).unwrap();
    let options = Options { level, offload: Offload::all_if(offloads), ..Options::new(config) };
    model::build(graph, &options, &mut |_, _| {}).unwrap()
}

/// Runs a model on a configuration, compares it with the CPU, and returns what the CPU computes in addition to
/// `borders`.
fn on_cpu(model: &Path, config: &HwConfig, borders: &[&str]) -> Vec<String> {
    let inputs = arrays(model, "input");
    let expected = run(built(model, config, 2, false), config, DeviceKind::CPU, &inputs).outputs;
    let mut left = Vec::new();
    for level in [0, 2, 3] {
        let artifact = built(model, config, level, true);
        left = artifact.manifest.nodes.iter().filter(|n| n.place == Place::Cpu).map(|n| n.op.clone()).collect();
        left.retain(|op| !borders.contains(&op.as_str()));
        let found = run(artifact, config, DeviceKind::FSIM, &inputs).outputs;
        assert!(largest(&found, &expected) == 0.0, "{} on {}", model.display(), config.name);
    }
    left
}

#[test]
fn lenet_runs_wholly_on_small_parts() {
    let model = carried("lenet-mnist/model_qdq_perchannel.onnx");
    for config in small_parts() {
        let left = on_cpu(&model, &config, &["quantize", "dequantize"]);
        assert!(left.is_empty(), "{}: {left:?}", config.name);
    }
}

#[test]
fn resnet8_runs_on_small_parts_but_for_additions_that_are_not_built() {
    let Some(model) = tilewright_testing::model("resnet8-cifar10/model_int8.tflite") else { return };
    for config in small_parts() {
        let left = on_cpu(&model, &config, &["softmax"]);
        let additions = if config.vector_qadd { 0 } else { 3 };
        assert_eq!(left, vec!["qadd"; additions], "{}", config.name);
    }
}

/// The default configurations of boards.
fn of_boards() -> Vec<String> {
    let mut names: Vec<String> = Board::names().iter().map(|name| Board::load(name).unwrap().hw).collect();
    names.sort();
    names.dedup();
    names
}

fn lenet_runs_on_boards_configurations(device: DeviceKind) {
    let model = carried("lenet-mnist/model_qdq_perchannel.onnx");
    let inputs = arrays(&model, "input");
    for hw in of_boards() {
        let (artifact, config) = compiled(&model, &hw, DeviceKind::CPU);
        let expected = run(artifact, &config, DeviceKind::CPU, &inputs).outputs;
        let (artifact, config) = compiled(&model, &hw, device);
        let mut products = artifact.manifest.nodes.iter().filter(|n| n.macs > 0);
        assert!(products.all(|n| n.place == Place::Accel), "{hw}");
        let found = run(artifact, &config, device, &inputs).outputs;
        assert!(largest(&found, &expected) == 0.0, "{hw}");
    }
}

#[test]
fn lenet_runs_on_the_configurations_of_boards() {
    lenet_runs_on_boards_configurations(DeviceKind::FSIM);
}

#[test]
#[ignore = "builds a simulator for each; make test-full runs it"]
fn lenet_runs_on_the_rtl_of_the_configurations_of_boards() {
    if tilewright_testing::has_program("verilator") {
        lenet_runs_on_boards_configurations(DeviceKind::RTL);
    }
}
