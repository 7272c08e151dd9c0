//! The accelerator's memory: how much models use, and models that need too much.

use tilewright::device::DeviceKind;
use tilewright::model::{self, Options};
use tilewright_compiler::graph::op::{Layout, Requantize};
use tilewright_compiler::graph::{DType, Graph, GraphBuilder, Tensor, TensorType};
use tilewright_hw::config::HwConfig;
use tilewright_hw::num::Rounding;
use tilewright_runtime::artifact::{Artifact, Place, StepKind};

use crate::random::network;
use crate::{compiled, convolution};

/// Tensors that are needed at the same time do not overlap, and are inside their region.
#[track_caller]
fn check_apart(artifact: &Artifact) -> usize {
    let mut pairs = 0;
    for step in &artifact.manifest.steps {
        let StepKind::Accel(accel) = &step.kind else { continue };
        let region: u64 = accel.program.regions[1..].iter().map(|r| r.bytes).sum();
        for (i, a) in accel.tensors.iter().enumerate() {
            assert!(a.offset + a.buffer.bytes <= region, "{}", a.name);
            for b in &accel.tensors[i + 1..] {
                let apart = a.offset + a.buffer.bytes <= b.offset || b.offset + b.buffer.bytes <= a.offset;
                assert!(apart || !a.buffer.meets(&b.buffer), "{} and {} of {}", a.name, b.name, step.name);
                pairs += usize::from(!a.buffer.meets(&b.buffer));
            }
        }
    }
    pairs
}

fn built(graph: Graph, config: &HwConfig) -> Result<Artifact, model::ModelError> {
    model::build(graph, &Options::new(config), &mut |_, _| {})
}

#[test]
fn tensors_of_random_networks_that_are_needed_at_one_time_lie_apart() {
    let mut pairs = 0;
    for (seed, hw) in (5000..5040).zip(["1x16x16", "4x16x16", "1x4x4", "1x8x16"].iter().cycle()) {
        let config = HwConfig::load(hw).unwrap();
        pairs += check_apart(&built(network(seed).0, &config).unwrap());
    }
    assert!(pairs > 40, "{pairs} pairs of tensors that may share memory");
}

/// A convolution of one pixel with 2 MiB of weights.
fn large() -> Graph {
    let (inputs, outputs) = (1024, 2048);
    let mut b = GraphBuilder::new("large");
    let x = b.input("x", TensorType::new(DType::I8, &[1, 1, 1, inputs]));
    let weights = b.constant("", Tensor::new(&[outputs, 1, 1, inputs], vec![1i8; outputs * inputs]).unwrap());
    let acc = b.node("conv", convolution(Layout::Nhwc, 1, 0), &[x, weights]).unwrap();
    let mut vector = |v: i32| b.constant("", Tensor::vector(vec![v; outputs]));
    let [bias, multiplier, shift] = [vector(0), vector(1 << 30), vector(-8)];
    let op = Requantize { axis: 3, zero_point: 0, lo: -128, hi: 127, mode: Rounding::Double };
    let y = b.node("requantize", op, &[acc, bias, multiplier, shift]).unwrap();
    b.output("y", y);
    b.finish().unwrap()
}

#[test]
fn a_model_that_does_not_fit_is_refused_with_the_sizes() {
    let mut config = HwConfig::load("1x16x16").unwrap();
    config.host.memory_mib = 3;
    let need = built(large(), &config).unwrap().device_need().total();
    assert!((2 << 20..3 << 20).contains(&need), "{need}");
    config.host.memory_mib = 2;
    let text = built(large(), &config).unwrap_err().to_string();
    for part in [
        &format!("needs {need} bytes"),
        "but only 2097152 are available",
        "requantize",
        "weights 2097152",
        "host.memory_mib",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // If the offsets of instructions cannot reach the weights, the layer goes to the CPU.
    config.host.memory_mib = 512;
    config.offset_bits = 20;
    config.stride_bits = 20;
    let artifact = built(large(), &config).unwrap();
    let conv = artifact.manifest.nodes.iter().find(|node| node.name == "conv").unwrap();
    assert_eq!(conv.place, Place::Cpu);
    assert!(conv.why.contains("the configuration gives it 20 bits"), "{}", conv.why);
}

#[test]
fn dead_tensors_make_room() {
    for name in [
        "resnet8-cifar10/model_int8.tflite",
        "mobilenetv2-1.0-224/model_ptq_int8.tflite",
        "efficientnet-lite0/model_qdq_perchannel.onnx",
    ] {
        let Some(file) = tilewright_testing::model(name) else { return };
        let need = {
            let (artifact, _) = compiled(&file, "1x16x16", DeviceKind::FSIM);
            check_apart(&artifact);
            artifact.device_need()
        };
        println!("{name}: tensors take {} bytes, {} each alone", need.tensors, need.apart);
        assert!(2 * need.tensors < need.apart, "{name}: {need:?}");
    }
}
