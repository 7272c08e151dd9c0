//! Random networks of convolutions, additions and poolings, from graph to device, against the graph's evaluation.
//!
//! `TILEWRIGHT_FUZZ_NETWORKS` sets how many networks a configuration runs (3); with it, the RTL of every preset runs
//! them.

use tilewright::device::DeviceKind;
use tilewright::model::{self, Offload, Options};
use tilewright_compiler::graph::op::{Conv2d, Layout, MaxPool2d, QAdd, Requantize};
use tilewright_compiler::graph::{self, DType, Graph, GraphBuilder, TensorType, ValueId, eval};
use tilewright_compiler::suite::Numbers;
use tilewright_hw::config::HwConfig;
use tilewright_hw::num::{Qadd, QaddOperand, Rounding, quantize_multiplier};
use tilewright_runtime::tensor::{DType as Stored, Tensor};

use crate::resnet::PRESETS;
use crate::run;
use crate::small::small_parts;

const LAYOUT: Layout = Layout::Nhwc;

/// An image in the network: value, height, width and channels.
type Image = (ValueId, [usize; 3]);

/// A random convolution with its requantization; `None` if the window is larger than the image.
fn conv(n: &mut Numbers, b: &mut GraphBuilder, (x, [h, w, c]): Image) -> Option<Image> {
    let depthwise = n.int(0, 6) == 0;
    let kernel = [n.size(1, 4.min(h)), n.size(1, 4.min(w))];
    let strides = [n.size(1, 2), n.size(1, 2)];
    let pads = [0, 1, 2, 3].map(|side: usize| n.size(0, kernel[side % 2] - 1));
    let (groups, depth) = if depthwise { (c, 1) } else { (1, c) };
    let outputs = if depthwise { c } else { n.size(1, 48) };
    let weights = n.tensor(&TensorType::new(DType::I8, &[outputs, kernel[0], kernel[1], depth]));
    let weights = b.constant("", weights);
    let data_zero_point = n.int(-128, 127) as i32;
    let op = Conv2d { strides, pads, dilations: [1, 1], groups, layout: LAYOUT, data_zero_point, weight_zero_point: 0 };
    let acc = b.node("conv", op, &[x, weights]).ok()?;
    let terms = (kernel[0] * kernel[1] * depth) as f64;
    let mode = if n.int(0, 1) == 0 { Rounding::Double } else { Rounding::Single };
    let (mut bias, mut multiplier, mut shift) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..outputs {
        let (m, s) = quantize_multiplier((0.3 + f64::from(n.float()).abs()) / (70.0 * terms.sqrt()));
        bias.push(n.int(-3000, 3000) as i32);
        multiplier.push(m);
        // *Single* counts the right shift beyond 31 bits.
        shift.push(if mode == Rounding::Double { i32::from(s) } else { -i32::from(s).min(0) });
    }
    let [bias, multiplier, shift] = [bias, multiplier, shift].map(|v| b.constant("", graph::Tensor::vector(v)));
    let zero_point = n.int(-20, 20) as i32;
    let op = Requantize { axis: LAYOUT.channel_axis(), zero_point, lo: -128, hi: 127, mode };
    let y = b.node("requantize", op, &[acc, bias, multiplier, shift]).ok()?;
    Some((y, sizes(b, y)))
}

fn sizes(b: &GraphBuilder, value: ValueId) -> [usize; 3] {
    let shape = b.ty(value).shape().expect("sizes are known");
    [shape[1], shape[2], shape[3]]
}

/// The sum of two images of the same size, each with its own scale.
fn add(n: &mut Numbers, b: &mut GraphBuilder, x: Image, z: Image) -> Option<Image> {
    let mut operand = |real: f64| {
        let (multiplier, shift) = quantize_multiplier(real);
        QaddOperand { zero_point: n.int(-128, 127) as i32, multiplier, shift }
    };
    let (first, second, out) = (operand(0.5), operand(0.37), operand(0.9 / 1024.0 / 512.0));
    let params = Qadd { a: first, b: second, out, left_shift: 20, lo: -128, hi: 127 };
    let y = b.node("add", QAdd { params }, &[x.0, z.0]).ok()?;
    Some((y, x.1))
}

fn pool(n: &mut Numbers, b: &mut GraphBuilder, (x, [h, w, _]): Image) -> Option<Image> {
    let kernel = [n.size(1, 3.min(h)), n.size(1, 3.min(w))];
    let strides = [n.size(1, 2), n.size(1, 2)];
    let op = MaxPool2d { kernel, strides, pads: [0; 4], dilations: [1, 1], layout: LAYOUT };
    let y = b.node("max", op, &[x]).ok()?;
    Some((y, sizes(b, y)))
}

/// A network of four to nine operators in integer form, and its input.
pub fn network(seed: u64) -> (Graph, graph::Tensor) {
    let mut n = Numbers::new(seed);
    let mut b = GraphBuilder::new(&format!("random {seed}"));
    let size = [n.size(1, 40), n.size(1, 40), n.size(1, 40)];
    let ty = TensorType::new(DType::I8, &[1, size[0], size[1], size[2]]);
    let mut images: Vec<Image> = vec![(b.input("x", ty.clone()), size)];
    let operators = n.size(4, 9);
    while images.len() <= operators {
        let last = images[images.len() - 1];
        let alike: Vec<Image> = images[..images.len() - 1].iter().copied().filter(|image| image.1 == last.1).collect();
        let next = match n.int(0, 5) {
            0 => pool(&mut n, &mut b, last),
            1 | 2 if !alike.is_empty() => {
                let other = alike[n.size(0, alike.len() - 1)];
                add(&mut n, &mut b, last, other)
            }
            _ => conv(&mut n, &mut b, last),
        };
        images.extend(next);
    }
    b.output("y", images[images.len() - 1].0);
    (b.finish().expect("the network is sound"), n.tensor(&ty))
}

/// Runs networks on a device; at least half of the multiply-accumulates must be offloaded.
fn check(hw: &str, device: DeviceKind, seeds: std::ops::Range<u64>) {
    check_with(&HwConfig::load(hw).unwrap(), device, seeds);
}

fn check_with(config: &HwConfig, device: DeviceKind, seeds: std::ops::Range<u64>) {
    let hw = &config.name;
    let (mut offloaded, mut all) = (0, 0);
    for seed in seeds {
        let (graph, input) = network(seed);
        let expected = eval(&graph, std::slice::from_ref(&input)).unwrap();
        // Every second network uses fusion.
        let level = if seed % 2 == 0 { 3 } else { 2 };
        let options = Options { offload: Offload::all_if(device != DeviceKind::CPU), level, ..Options::new(config) };
        let artifact = model::build(graph, &options, &mut |_, _| {}).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        offloaded += artifact.manifest.offloaded_macs();
        all += artifact.manifest.macs();
        let input = Tensor::new(Stored::I8, input.shape().to_vec(), input.to_bytes()).unwrap();
        let found = run(artifact, config, device, &[input]).outputs;
        let found = graph::Tensor::try_from(&found[0]).unwrap();
        assert!(found == expected[0], "the network of seed {seed} differs on {device} with {hw}");
    }
    assert!(device == DeviceKind::CPU || 2 * offloaded >= all, "{offloaded} of {all} MACs offloaded on {hw}");
}

/// Number of networks from `TILEWRIGHT_FUZZ_NETWORKS`, if it is set.
pub fn asked() -> Option<u64> {
    tilewright_testing::asked("TILEWRIGHT_FUZZ_NETWORKS")
}

#[test]
fn random_networks_equal_the_evaluation_on_fsim() {
    for (hw, first) in PRESETS.iter().zip((0..).step_by(1000)) {
        check(hw, DeviceKind::FSIM, first..first + asked().unwrap_or(3));
    }
}

#[test]
fn random_networks_equal_the_evaluation_on_small_parts() {
    for (config, first) in small_parts().iter().zip((0..).step_by(1000)) {
        check_with(config, DeviceKind::FSIM, first..first + asked().unwrap_or(6));
    }
}

#[test]
fn random_networks_equal_the_evaluation_on_the_cpu() {
    check("1x16x16", DeviceKind::CPU, 0..asked().unwrap_or(3));
}

#[test]
fn random_networks_equal_the_evaluation_on_the_rtl() {
    let hws = if asked().is_some() { PRESETS } else { &["1x16x16"] };
    for (hw, first) in hws.iter().zip((0..).step_by(1000)) {
        check(hw, DeviceKind::RTL, first..first + asked().unwrap_or(3));
    }
}
