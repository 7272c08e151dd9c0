//! Random ONNX files with QuantizeLinear and DequantizeLinear, from file to device: the functional simulator together
//! with the CPU is compared bit for bit with the CPU alone.
//!
//! Ten times `TILEWRIGHT_FUZZ_NETWORKS` networks run (36 if it is not set). `TILEWRIGHT_SEED` sets the first seed (1).

use tilewright::device::DeviceKind;
use tilewright::model::{self, Offload, Options, Sizes};
use tilewright_compiler::frontend::onnx;
use tilewright_compiler::graph::op::{
    Add, AvgPool2d, Binary, BinaryKind, Clip, Concat, Conv2d, Dense, Dequantize, Gather, GlobalAvgPool, Layout, MatMul,
    MaxPool2d, Pad, QuantRounding, Quantize, Relu, Reshape, Slice, Transpose, Unary, UnaryKind,
};
use tilewright_compiler::graph::{self, DType, GraphBuilder, TensorType, ValueId};
use tilewright_compiler::suite::Numbers;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::tensor::Tensor;

use crate::random::asked;
use crate::resnet::PRESETS;
use crate::run;

const LAYOUT: Layout = Layout::Nchw;

/// Maximum number of elements of an image, so that a network runs quickly.
const MOST: usize = 20_000;

/// A quantized image in the network: its real value, its sizes `[C, H, W]`, and its quantization parameters.
#[derive(Clone)]
struct Image {
    real: ValueId,
    sizes: [usize; 3],
    scale: f32,
    zero_point: i32,
}

struct Net {
    n: Numbers,
    b: GraphBuilder,
    /// Type of the integers of activations.
    dtype: DType,
}

impl Net {
    /// Quantizes real values.
    fn quantized(&mut self, real: ValueId, scale: f32, zero_point: i32) -> Option<Image> {
        let (scales, zero_points, dtype) = (vec![scale], vec![zero_point], self.dtype);
        let shape = self.b.ty(real).shape()?;
        let &[_, c, h, w] = shape.as_slice() else { return None };
        let (axis, rounding) = (0, QuantRounding::HalfEven);
        let op = Quantize { scale: scales.clone(), zero_point: zero_points.clone(), axis, rounding, dtype };
        let q = self.b.node("quantize", op, &[real]).ok()?;
        let op = Dequantize { scale: scales, zero_point: zero_points, axis };
        let real = self.b.node("dequantize", op, &[q]).ok()?;
        Some(Image { real, sizes: [c, h, w], scale, zero_point })
    }

    /// Quantizes real values with a random scale and zero point.
    fn requantized(&mut self, real: ValueId) -> Option<Image> {
        let scale = 0.02 + 0.1 * self.n.float().abs();
        let zero_point = self.n.int(-30, 30) as i32 + if self.dtype == DType::U8 { 128 } else { 0 };
        self.quantized(real, scale, zero_point)
    }

    /// Dequantized integer weights, with one scale or a scale per output channel.
    fn weights(&mut self, shape: &[usize], terms: usize) -> Option<(ValueId, Vec<f32>)> {
        let channels = if self.n.int(0, 1) == 0 { 1 } else { shape[0] };
        let unit = 0.03 / (terms as f32).sqrt();
        let scale: Vec<f32> = (0..channels).map(|_| unit * (0.3 + self.n.float().abs())).collect();
        let integers = self.n.tensor(&TensorType::new(DType::I8, shape));
        let integers = self.b.constant("weight", integers);
        let op = Dequantize { scale: scale.clone(), zero_point: vec![0; channels], axis: 0 };
        Some((self.b.node("weight", op, &[integers]).ok()?, scale))
    }

    /// A bias, quantized with the scale of the product's sums.
    fn bias(&mut self, channels: usize, data: f32, weights: &[f32]) -> Option<ValueId> {
        let integers = graph::Tensor::from_fn(&[channels], |_| self.n.int(-3000, 3000) as i32);
        let integers = self.b.constant("bias", integers);
        let scale: Vec<f32> = weights.iter().map(|w| w * data).collect();
        let zero_point = vec![0; scale.len()];
        self.b.node("bias", Dequantize { scale, zero_point, axis: 0 }, &[integers]).ok()
    }

    fn conv(&mut self, x: &Image) -> Option<Image> {
        let [c, h, w] = x.sizes;
        let depthwise = self.n.int(0, 4) == 0;
        let kernel = [self.n.size(1, 3), self.n.size(1, 3)];
        let pads = [0, 1, 2, 3].map(|side: usize| self.n.size(0, kernel[side % 2] - 1));
        let strides = [self.n.size(1, 2), self.n.size(1, 2)];
        if h + pads[0] + pads[2] < kernel[0] || w + pads[1] + pads[3] < kernel[1] {
            return None;
        }
        let (groups, depth) = if depthwise { (c, 1) } else { (1, c) };
        let outputs = if depthwise { c } else { self.few(40) };
        let terms = kernel[0] * kernel[1] * depth;
        let (weights, scale) = self.weights(&[outputs, kernel[0], kernel[1], depth], terms)?;
        let mut operands = vec![x.real, weights];
        if self.n.int(0, 3) > 0 {
            operands.push(self.bias(outputs, x.scale, &scale)?);
        }
        let dilations = [1, 1];
        let op = Conv2d { strides, pads, dilations, groups, layout: LAYOUT, data_zero_point: 0, weight_zero_point: 0 };
        let y = self.b.node("conv", op, &operands).ok()?;
        let y = match self.n.int(0, 3) {
            0 => self.b.node("relu", Relu {}, &[y]).ok()?,
            1 => self.b.node("clip", Clip { lo: 0.0, hi: 6.0 }, &[y]).ok()?,
            2 => self.behind(y)?,
            _ => y,
        };
        self.requantized(y)
    }

    /// Up to three operators between an image of a product and its quantization.
    fn behind(&mut self, mut y: ValueId) -> Option<ValueId> {
        for _ in 0..self.n.size(1, 3) {
            let channels = if self.n.int(0, 1) == 0 { 1 } else { self.b.ty(y).shape()?[1] };
            let values = graph::Tensor::from_fn(&[channels, 1, 1], |_| 0.1 + self.n.float());
            let values = self.b.constant("values", values);
            let kind = [BinaryKind::Mul, BinaryKind::Sub, BinaryKind::Max, BinaryKind::Min][self.n.size(0, 3)];
            y = match self.n.int(0, 6) {
                0 => self.b.node("add", Add {}, &[values, y]),
                1 => self.b.node("from", Binary { kind: BinaryKind::Sub }, &[values, y]),
                2 | 3 => self.b.node("binary", Binary { kind }, &[y, values]),
                4 => {
                    let kind = if self.n.int(0, 1) == 0 { UnaryKind::Abs } else { UnaryKind::LeakyRelu };
                    self.b.node("function", Unary { kind, alpha: self.n.float(), beta: 0.0 }, &[y])
                }
                5 => {
                    let op =
                        MaxPool2d { kernel: [2, 2], strides: [1, 1], pads: [1; 4], dilations: [1, 1], layout: LAYOUT };
                    self.b.node("max", op, &[y])
                }
                _ => self.b.node("turn", Transpose { perm: vec![0, 1, 3, 2] }, &[y]),
            }
            .ok()?;
        }
        Some(y)
    }

    /// Returns 1 or a random size up to `most`.
    fn few(&mut self, most: usize) -> usize {
        if self.n.int(0, 4) == 0 { 1 } else { self.n.size(1, most) }
    }

    fn pool(&mut self, x: &Image) -> Option<Image> {
        let [_, h, w] = x.sizes;
        let kernel = [self.n.size(1, 3.min(h)), self.n.size(1, 3.min(w))];
        let strides = [self.n.size(1, 2), self.n.size(1, 2)];
        let pads = [0, 1, 2, 3].map(|side: usize| self.n.size(0, kernel[side % 2] - 1));
        match self.n.int(0, 3) {
            0 => {
                let y = self.b.node("mean", GlobalAvgPool { layout: LAYOUT, lo: -128, hi: 127 }, &[x.real]).ok()?;
                self.requantized(y)
            }
            1 => {
                let count_include_pad = self.n.int(0, 1) == 0;
                let (lo, hi, unsigned) = (-128, 127, false);
                let op = AvgPool2d { kernel, strides, pads, count_include_pad, layout: LAYOUT, lo, hi, unsigned };
                let y = self.b.node("average", op, &[x.real]).ok()?;
                self.requantized(y)
            }
            _ => {
                let op = MaxPool2d { kernel, strides, pads, dilations: [1, 1], layout: LAYOUT };
                let y = self.b.node("max", op, &[x.real]).ok()?;
                self.quantized(y, x.scale, x.zero_point)
            }
        }
    }

    /// An operator that moves elements; the integers keep their scale.
    fn moved(&mut self, x: &Image) -> Option<Image> {
        let [c, h, w] = x.sizes;
        let y = match self.n.int(0, 5) {
            0 => {
                let [top, left, bottom, right] = [0; 4].map(|_| self.n.size(0, 2));
                let op = Pad { before: vec![0, 0, top, left], after: vec![0, 0, bottom, right], value: 0.0 };
                self.b.node("pad", op, &[x.real])
            }
            1 => {
                let (axis, from) = if self.n.int(0, 1) == 0 { (2, h) } else { (3, w) };
                let to = self.n.size(1, 2 * from);
                let places = graph::Tensor::from_fn(&[to], |o| (o * from / to) as i64);
                let places = self.b.constant("places", places);
                self.b.node("resize", Gather { axis }, &[x.real, places])
            }
            2 => self.b.node("transpose", Transpose { perm: vec![0, 1, 3, 2] }, &[x.real]),
            3 => {
                let perm = if self.n.int(0, 1) == 0 { vec![0, 2, 3, 1] } else { vec![0, 3, 1, 2] };
                self.b.node("turn", Transpose { perm }, &[x.real])
            }
            4 => {
                let shape = [1, h as i64, c as i64, w as i64];
                self.b.node("reshape", Reshape { shape: shape.to_vec() }, &[x.real])
            }
            _ => {
                let axis = self.n.size(1, 3);
                let (mut starts, mut sizes) = (vec![0; 4], vec![1, c, h, w]);
                starts[axis] = self.n.size(0, sizes[axis] - 1);
                sizes[axis] = self.n.size(1, sizes[axis] - starts[axis]);
                self.b.node("slice", Slice { starts, sizes, steps: vec![1; 4] }, &[x.real])
            }
        };
        self.quantized(y.ok()?, x.scale, x.zero_point)
    }

    /// A fully connected layer over the whole image. Its results are the channels of one pixel.
    fn dense(&mut self, x: &Image) -> Option<Image> {
        let depth = x.sizes.iter().product();
        if depth > 2000 {
            return None;
        }
        let flat = self.b.node("flat", Reshape { shape: vec![1, -1] }, &[x.real]).ok()?;
        let outputs = self.few(40);
        let (weights, scale) = self.weights(&[outputs, depth], depth)?;
        let bias = self.bias(outputs, x.scale, &scale)?;
        let y =
            self.b.node("dense", Dense { data_zero_point: 0, weight_zero_point: 0 }, &[flat, weights, bias]).ok()?;
        let y = self.b.node("pixel", Reshape { shape: vec![1, outputs as i64, 1, 1] }, &[y]).ok()?;
        self.requantized(y)
    }

    /// The product of an image's matrices and their transposes.
    fn product(&mut self, x: &Image) -> Option<Image> {
        let turned = self.b.node("turned", Transpose { perm: vec![0, 1, 3, 2] }, &[x.real]).ok()?;
        let turned = self.quantized(turned, x.scale, x.zero_point)?;
        let y = self.b.node("product", MatMul {}, &[x.real, turned.real]).ok()?;
        self.quantized(y, x.scale * 4.0, self.zero())
    }

    fn zero(&self) -> i32 {
        if self.dtype == DType::U8 { 128 } else { 0 }
    }

    fn joined(&mut self, x: &Image, z: &Image) -> Option<Image> {
        let y = match self.n.int(0, 1) {
            0 if x.sizes == z.sizes => self.b.node("add", Add {}, &[x.real, z.real]).ok()?,
            _ if x.sizes[1..] == z.sizes[1..] => self.b.node("concat", Concat { axis: 1 }, &[x.real, z.real]).ok()?,
            _ => return None,
        };
        self.requantized(y)
    }
}

/// The file of a network of three to six operators, and its input.
fn network(seed: u64) -> (Vec<u8>, Tensor) {
    let mut n = Numbers::new(seed);
    let dtype = if n.int(0, 2) == 0 { DType::U8 } else { DType::I8 };
    let mut net = Net { n, b: GraphBuilder::new(&format!("random {seed}")), dtype };
    let c = net.few(40);
    let [h, w] = if net.n.int(0, 3) == 0 { [1, 1] } else { [net.n.size(1, 12), net.n.size(1, 12)] };
    let ty = TensorType::new(DType::F32, &[1, c, h, w]);
    let x = net.b.input("x", ty.clone());
    let mut images = vec![net.requantized(x).expect("it is an image")];
    let operators = net.n.size(3, 6);
    // An operator that does not fit the image is skipped; most fit.
    for _ in 0..10 * operators {
        let last = images[images.len() - 1].clone();
        let other = images[net.n.size(0, images.len() - 1)].clone();
        let next = match net.n.int(0, 9) {
            0..=2 => net.conv(&last),
            3 => net.pool(&last),
            4..=6 => net.moved(&last),
            7 => net.dense(&last),
            8 => net.product(&last),
            _ => net.joined(&last, &other),
        };
        images.extend(next.filter(|image| image.sizes.iter().product::<usize>() <= MOST));
        if images.len() > operators {
            break;
        }
    }
    net.b.output("y", images[images.len() - 1].real);
    let graph = net.b.finish().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let file = onnx::write(&graph).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let mut data = net.n.tensor(&ty);
    if net.n.int(0, 2) == 0 {
        data = net.n.sprinkled(&data);
    }
    (file, Tensor::from(&data))
}

#[test]
fn random_files_give_the_same_on_fsim_and_the_cpu() {
    let first = tilewright_testing::asked("TILEWRIGHT_SEED").unwrap_or(1);
    let count = asked().map_or(36, |n| 10 * n);
    println!("seeds {first} to {}", first + count - 1);
    let folder = tempfile::tempdir().unwrap();
    let mut offloaded = 0;
    for seed in first..first + count {
        let (file, input) = network(seed);
        let path = folder.path().join("net.onnx");
        std::fs::write(&path, &file).unwrap();
        let mut choice = Numbers::new(seed ^ 0x5eed);
        let (hw, level) = (PRESETS[choice.size(0, PRESETS.len() - 1)], choice.int(0, 3) as u8);
        let config = HwConfig::load(hw).unwrap();
        let mut outputs = |device: DeviceKind| {
            let graph = model::import(&path, Sizes::default()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let offload = Offload::all_if(device != DeviceKind::CPU);
            let options = Options { offload, level, ..Options::new(&config) };
            let artifact = model::build(graph, &options, &mut |_, _| {}).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            offloaded += u64::from(artifact.manifest.offloaded_macs() > 0);
            run(artifact, &config, device, std::slice::from_ref(&input)).outputs
        };
        let (found, expected) = (outputs(DeviceKind::FSIM), outputs(DeviceKind::CPU));
        assert!(found == expected, "the network of seed {seed} differs at -O{level} with {hw}");
    }
    assert!(3 * offloaded >= count, "{offloaded} of {count} networks have products on the accelerator");
}

/// A normalization and a pooling after a depthwise convolution, at every optimization level: the file, and what the
/// accelerator gets of it.
#[test]
fn operators_behind_a_product_are_its_requantization_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.onnx");
    let config = HwConfig::load("1x4x4").unwrap();
    for bent in [false, true] {
        let mut net = Net { n: Numbers::new(7), b: GraphBuilder::new("behind"), dtype: DType::I8 };
        let ty = TensorType::new(DType::F32, &[1, 6, 8, 8]);
        let x = net.b.input("x", ty.clone());
        let x = net.quantized(x, 0.03, 5).unwrap();
        let (weights, _) = net.weights(&[6, 3, 3, 1], 9).unwrap();
        let (strides, pads, dilations, groups) = ([1, 1], [1; 4], [1, 1], 6);
        let op = Conv2d { strides, pads, dilations, groups, layout: LAYOUT, data_zero_point: 0, weight_zero_point: 0 };
        let mut y = net.b.node("conv", op, &[x.real, weights]).unwrap();
        let factors = graph::Tensor::from_fn(&[6, 1, 1], |i| 0.7 * i as f32 - 1.0);
        let factors = net.b.constant("factors", factors);
        y = net.b.node("factor", Binary { kind: BinaryKind::Mul }, &[y, factors]).unwrap();
        if bent {
            y = net.b.node("gate", Unary::new(UnaryKind::Sigmoid), &[y]).unwrap();
        }
        let terms = graph::Tensor::from_fn(&[6, 1, 1], |i| 0.3 - 0.2 * i as f32);
        let terms = net.b.constant("terms", terms);
        y = net.b.node("term", Add {}, &[y, terms]).unwrap();
        let op = MaxPool2d { kernel: [2, 2], strides: [2, 2], pads: [0; 4], dilations: [1, 1], layout: LAYOUT };
        y = net.b.node("max", op, &[y]).unwrap();
        let y = net.quantized(y, 0.02, -10).unwrap();
        net.b.output("y", y.real);
        let graph = net.b.finish().unwrap();
        std::fs::write(&path, onnx::write(&graph).unwrap()).unwrap();
        let input = net.n.tensor(&ty);
        let expected = graph::eval(&graph, std::slice::from_ref(&input)).unwrap();
        for level in 0..4 {
            let again = model::import(&path, Sizes::default()).unwrap();
            let artifact = model::build(again, &Options { level, ..Options::new(&config) }, &mut |_, _| {}).unwrap();
            let whole = artifact.manifest.offloaded_macs() == artifact.manifest.macs();
            assert_eq!(whole, !bent, "-O{level}");
            let named = "it stays float: `gate` (sigmoid) is not piecewise linear";
            assert_eq!(artifact.manifest.nodes.iter().any(|node| node.why.contains(named)), bent, "-O{level}");
            let found = run(artifact, &config, DeviceKind::FSIM, &[Tensor::from(&input)]).outputs;
            let found = graph::Tensor::try_from(&found[0]).unwrap();
            let (found, expected) = (found.as_slice::<f32>().unwrap(), expected[0].as_slice::<f32>().unwrap());
            let most = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(most <= 0.02 * 1.001, "{most} at -O{level}");
        }
    }
}
