//! Placement by cost: the results do not depend on it, and the layers' cycles are those of the design.

use std::collections::BTreeMap;
use std::path::Path;

use tilewright::device::DeviceKind;
use tilewright::model::{self, Offload, Options, Sizes};
use tilewright_compiler::partition::{self, partition};
use tilewright_compiler::passes::{self, OptLevel, optimize};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{Artifact, Manifest, NodeCost, Place};

use crate::{arrays, compiled_at, run};

fn built(model: &Path, config: &HwConfig, offload: Offload, measure: bool) -> Artifact {
    let data = arrays(model, "input").into_iter().map(|t| (None, t.shape).into()).collect();
    let graph = model::import(model, &Sizes { data, ..Sizes::default() }).unwrap();
    model::build(graph, &Options { offload, measure, ..Options::new(config) }, &mut |_, _| {}).unwrap()
}

fn places(manifest: &Manifest) -> Vec<(String, Place)> {
    manifest.nodes.iter().map(|n| (n.name.clone(), n.place)).collect()
}

#[test]
fn placement_by_cost_computes_what_the_cpu_computes() {
    let mut mixed = 0;
    for name in
        ["lenet-mnist/model_qdq_perchannel.onnx", "kws-dscnn/model_int8.tflite", "resnet8-cifar10/model_int8.tflite"]
    {
        let Some(file) = tilewright_testing::model(name) else { return };
        let inputs = arrays(&file, "input");
        let config = HwConfig::load("1x16x16").unwrap();
        let expected = run(built(&file, &config, Offload::None, false), &config, DeviceKind::CPU, &inputs).outputs;
        for (hw, clock_mhz, measure) in [
            ("1x16x16", 650.0, false),
            ("1x16x16", 2000.0, false),
            ("1x16x16", 20000.0, false),
            ("1x4x4", 650.0, false),
            ("1x16x16", 650.0, true),
        ] {
            let mut config = HwConfig::load(hw).unwrap();
            config.host.cpu_clock_mhz = clock_mhz;
            let artifact = built(&file, &config, Offload::Auto, measure);
            if !measure {
                let again = built(&file, &config, Offload::Auto, false);
                assert_eq!(artifact.manifest.nodes, again.manifest.nodes, "{name}");
            }
            let weighed = artifact.manifest.nodes.iter().filter_map(|n| n.cost.as_ref());
            assert!(weighed.clone().count() > 0 && weighed.clone().all(|c| c.cpu_measured == measure));
            let macs = artifact.manifest.offloaded_macs() as f64 / artifact.manifest.macs() as f64;
            println!(
                "{name} on {hw}, host at {clock_mhz} MHz, measured {measure}: {:.1} % of the MACs offloaded",
                100.0 * macs
            );
            mixed += usize::from(macs > 0.0 && macs < 0.999);
            assert!(
                run(artifact, &config, DeviceKind::FSIM, &inputs).outputs == expected,
                "{name} on {hw} at {clock_mhz} MHz"
            );
        }
    }
    assert!(mixed > 0, "some partition has products on both sides");
}

#[test]
fn a_faster_host_gets_more() {
    let Some(file) = tilewright_testing::model("resnet8-cifar10/model_int8.tflite") else { return };
    let mut config = HwConfig::load("1x16x16").unwrap();
    let all = places(&built(&file, &config, Offload::All, false).manifest);
    let mut with = |clock_mhz: f64, call_us: f64| {
        (config.host.cpu_clock_mhz, config.host.call_us) = (clock_mhz, call_us);
        places(&built(&file, &config, Offload::Auto, false).manifest)
    };
    assert_eq!(with(50.0, 10.0), all);
    assert!(with(100000.0, 0.0).iter().all(|(_, place)| *place == Place::Cpu));
}

/// Sum of the cycles of all accelerator layers. Each node of a layer has the figures of the whole layer.
fn told(manifest: &Manifest) -> u64 {
    let on_accel = manifest.nodes.iter().filter(|n| n.place == Place::Accel).filter_map(|n| n.cost.as_ref());
    let layers: BTreeMap<&str, u64> = on_accel.map(|c| (c.layer.as_str(), c.accel_cycles.unwrap_or(0))).collect();
    layers.values().sum()
}

/// The layers' cycles add up to those of the whole run.
#[track_caller]
fn check_cycles(name: &str) {
    let Some(file) = tilewright_testing::model(name) else { return };
    let (artifact, config) = compiled_at(2, &file, "1x16x16", DeviceKind::RTL);
    let told = told(&artifact.manifest);
    let cycles = run(artifact, &config, DeviceKind::RTL, &arrays(&file, "input")[..1]).cycles().unwrap();
    assert_eq!(told, cycles, "{name}");
}

#[test]
fn cycles_of_layers_are_those_of_the_design() {
    check_cycles("resnet8-cifar10/model_int8.tflite");
    check_cycles("kws-dscnn/model_int8.tflite");
    check_cycles("efficientnet-lite0/model_qdq_perchannel.onnx");
}

/// The estimate of each layer and the cycles of its own program, by kind of operator.
#[test]
#[ignore = "prints a table"]
fn estimates_by_operator() {
    for name in [
        "resnet8-cifar10/model_int8.tflite",
        "kws-dscnn/model_int8.tflite",
        "lenet-mnist/model_qdq_perchannel.onnx",
        "vit-tiny-mnist/model_qdq_perchannel.onnx",
    ] {
        let Some(file) = tilewright_testing::model(name) else { continue };
        let (artifact, config) = compiled_at(0, &file, "1x16x16", DeviceKind::CSIM);
        let graph = model::import(&file, Sizes::default()).unwrap();
        let (graph, _) = optimize(graph, OptLevel::O0, passes::Options::default()).unwrap();
        let estimates = partition(&graph, &config, partition::Options::of_level(OptLevel::O0));
        for (estimate, node) in estimates.explanations.iter().zip(&artifact.manifest.nodes) {
            assert_eq!(estimate.name, node.name);
            let cycles = |cost: &Option<NodeCost>| cost.as_ref().and_then(|c| c.accel_cycles);
            let (Some(estimated), Some(cycles)) = (cycles(&estimate.cost), cycles(&node.cost)) else { continue };
            let ratio = estimated as f64 / cycles as f64;
            println!("{name} {} {}: {estimated} estimated, {cycles}, ratio {ratio:.2}", node.op, node.name);
        }
    }
}
