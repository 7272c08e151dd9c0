//! Models with regions: the accelerator computes layers of a loop's body and of a branch.

use std::sync::Arc;

use tilewright::device::DeviceKind;
use tilewright::model::{self, Offload, Options};
use tilewright_compiler::graph::op::{
    Binary, BinaryKind, Conv2d, Dequantize, If, Layout, Loop, Op, QuantRounding, Quantize, Reduce, ReduceKind,
};
use tilewright_compiler::graph::{DType, Graph, GraphBuilder, Tensor, TensorType, ValueId, eval};
use tilewright_compiler::passes::{OptLevel, optimize};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{Artifact, Manifest, StepKind};
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::Session;
use tilewright_runtime::tensor;

use crate::{open, run};

const SHAPE: [usize; 4] = [1, 8, 6, 5];

fn quantized(b: &mut GraphBuilder, v: ValueId) -> ValueId {
    let (rounding, dtype) = (QuantRounding::HalfEven, DType::I8);
    let op = Quantize { scale: vec![0.05], zero_point: vec![0], axis: 0, rounding, dtype };
    let v = b.node("quantize", op, &[v]).unwrap();
    b.node("dequantize", Dequantize { scale: vec![0.05], zero_point: vec![0], axis: 0 }, &[v]).unwrap()
}

/// A quantized convolution from 8 to 8 channels.
fn convolution(b: &mut GraphBuilder, v: ValueId, seed: i64) -> ValueId {
    let v = quantized(b, v);
    let weight = Dequantize { scale: vec![0.004], zero_point: vec![0], axis: 0 };
    let constant = b.constant("w", Tensor::from_fn(&[8, 3, 3, 8], |i| ((i as i64 * 37 + seed * 11) % 61 - 30) as i8));
    let weight = b.node("weight/dequantize", weight, &[constant]).unwrap();
    let conv = Conv2d {
        strides: [1, 1],
        pads: [1; 4],
        dilations: [1, 1],
        groups: 1,
        layout: Layout::Nchw,
        data_zero_point: 0,
        weight_zero_point: 0,
    };
    let v = b.node("conv", conv, &[v, weight]).unwrap();
    quantized(b, v)
}

/// Convolves until the largest element is below a limit, at most as often as the second input says; then takes one of two
/// further convolutions.
fn network() -> Graph {
    let image = TensorType::new(DType::F32, &SHAPE);
    let mut body = GraphBuilder::new("body");
    body.input("step", TensorType::new(DType::I64, &[]));
    let (state, limit) = (body.input("state", image.clone()), body.input("limit", TensorType::new(DType::F32, &[])));
    let next = convolution(&mut body, state, 1);
    let largest = |b: &mut GraphBuilder, v: ValueId| {
        let op = Reduce { kind: ReduceKind::Max, axes: vec![0, 1, 2, 3], keep_dims: false };
        b.node("largest", op, &[v]).unwrap()
    };
    let most = largest(&mut body, next);
    let goes_on = body.node("goes_on", Binary { kind: BinaryKind::Less }, &[limit, most]).unwrap();
    body.output("goes_on", goes_on);
    body.output("state", next);
    let branch = |name: &str, seed: i64| {
        let mut b = GraphBuilder::new(name);
        let v = b.input("state", image.clone());
        let made = convolution(&mut b, v, seed);
        b.output("made", made);
        Arc::new(b.finish().unwrap())
    };
    let mut b = GraphBuilder::new("flow");
    let (x, steps) = (b.input("x", image.clone()), b.input("steps", TensorType::new(DType::I64, &[])));
    let limit = b.input("limit", TensorType::new(DType::F32, &[]));
    let first = convolution(&mut b, x, 2);
    let starts = b.constant("starts", Tensor::scalar(true));
    let op = Loop { body: Arc::new(body.finish().unwrap()), carried: 1, collects: 0 };
    let last = b.node_outputs("loop", Op::Loop(op), &[steps, starts, first, limit]).unwrap()[0];
    let most = largest(&mut b, last);
    let is_low = b.node("is_low", Binary { kind: BinaryKind::Less }, &[most, limit]).unwrap();
    let op = If { then: branch("low", 3), otherwise: branch("high", 4) };
    let y = b.node_outputs("if", Op::If(op), &[is_low, last]).unwrap()[0];
    b.output("y", y);
    b.output("last", last);
    b.finish().unwrap()
}

fn has_program(manifest: &Manifest) -> bool {
    manifest.steps.iter().any(|step| matches!(step.kind, StepKind::Accel(_)))
}

#[test]
fn regions_run_on_the_accelerator_as_often_as_the_run_decides() {
    let config = HwConfig::default();
    let image = |scale: f32| Tensor::from_fn(&SHAPE, |i| ((i * 29) % 101) as f32 * scale - 1.0);
    let inputs = |scale: f32, steps: i64, limit: f32| [image(scale), Tensor::scalar(steps), Tensor::scalar(limit)];
    let runs = [inputs(0.03, 0, 0.0), inputs(0.03, 5, 9.0), inputs(0.03, 3, 0.01), inputs(0.05, 40, 0.5)];
    let graph = optimize(network(), OptLevel::O2, Default::default()).unwrap().0;
    for level in [0, 2, 3] {
        let built = |offload| -> Artifact {
            let options = Options { offload, level, ..Options::new(&config) };
            model::build(network(), &options, &mut |_, _| {}).unwrap()
        };
        let artifact = built(Offload::All);
        let flows: Vec<_> = artifact.manifest.steps.iter().filter(|step| !step.kind.regions().is_empty()).collect();
        assert_eq!(flows.len(), 2, "-O{level}");
        assert!(flows.iter().flat_map(|step| step.kind.regions()).all(has_program), "-O{level}");
        let read = Artifact::decode("flow.twa", &artifact.encode()).unwrap();
        let without_places = |artifact: &Artifact| Manifest { blobs: Vec::new(), ..artifact.manifest.clone() };
        assert_eq!(without_places(&read), without_places(&artifact));
        for (number, given) in runs.iter().enumerate() {
            let expected: Vec<tensor::Tensor> = eval(&graph, given).unwrap().iter().map(Into::into).collect();
            let given: Vec<tensor::Tensor> = given.iter().map(Into::into).collect();
            for device in [DeviceKind::FSIM, DeviceKind::CSIM] {
                let found = run(read.clone(), &config, device, &given).outputs;
                assert_eq!(found, expected, "-O{level} on {device}, run {number}");
            }
            let on_cpu = run(built(Offload::None), &config, DeviceKind::CPU, &given).outputs;
            assert_eq!(on_cpu, expected, "-O{level} on the CPU, run {number}");
        }
    }
    // One session runs all of them, and its device is free again afterwards.
    let artifact = model::build(network(), &Options::new(&config), &mut |_, _| {}).unwrap();
    let mut session = Session::new(artifact, Registry::global(), open(DeviceKind::FSIM, &config).unwrap()).unwrap();
    for given in runs.iter().chain(&runs) {
        let expected: Vec<tensor::Tensor> = eval(&graph, given).unwrap().iter().map(Into::into).collect();
        let given: Vec<tensor::Tensor> = given.iter().map(Into::into).collect();
        assert_eq!(session.run(&given).unwrap().0, expected);
    }
}
