//! Depthwise convolutions, split between the array and the vector unit: equal results and bounded cycles.

use tilewright::device::DeviceKind;
use tilewright::model::{self, Options};
use tilewright_compiler::graph::op::{Conv2d, Layout, Requantize};
use tilewright_compiler::graph::{self, DType, Graph, GraphBuilder, TensorType, eval};
use tilewright_compiler::suite::Numbers;
use tilewright_hw::config::HwConfig;
use tilewright_hw::num::{Rounding, quantize_multiplier};
use tilewright_runtime::tensor::{DType as Stored, Tensor};

use crate::run;

/// A depthwise layer with bias and requantization.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Channels, rows and columns of the data.
    data: [usize; 3],
    kernel: usize,
    stride: usize,
    dilation: usize,
    weight_zero_point: i32,
}

/// How a layer ran.
struct Ran {
    /// `None` if the device has no timing.
    cycles: Option<u64>,
    /// Whether the array and the vector unit shared the layer.
    shared: bool,
}

impl Shape {
    const fn square(channels: usize, size: usize) -> Shape {
        Shape { data: [channels, size, size], kernel: 3, stride: 1, dilation: 1, weight_zero_point: 0 }
    }

    /// Output rows of one block of channels, in entries of the accumulators, times taps.
    fn work(&self, config: &HwConfig) -> u64 {
        let [c, h, w] = self.data;
        let pixels = h.div_ceil(self.stride) * w.div_ceil(self.stride);
        (c.div_ceil(config.block_out as usize) * pixels * self.kernel * self.kernel) as u64
    }

    /// A network with only this layer and random weights, and its input.
    fn network(&self) -> (Graph, graph::Tensor) {
        let mut n = Numbers::new(self.data.iter().sum::<usize>() as u64);
        let mut b = GraphBuilder::new("depthwise");
        let [c, h, w] = self.data;
        let ty = TensorType::new(DType::I8, &[1, h, w, c]);
        let x = b.input("x", ty.clone());
        let weights = n.tensor(&TensorType::new(DType::I8, &[c, self.kernel, self.kernel, 1]));
        let weights = b.constant("weights", weights);
        let reach = (self.kernel - 1) * self.dilation + 1;
        // Padding that keeps the size (divided by the stride).
        let pads = |size: usize| {
            let all = ((size.div_ceil(self.stride) - 1) * self.stride + reach).saturating_sub(size);
            (all / 2, all - all / 2)
        };
        let ((top, bottom), (left, right)) = (pads(h), pads(w));
        let op = Conv2d {
            strides: [self.stride; 2],
            pads: [top, left, bottom, right],
            dilations: [self.dilation; 2],
            groups: c,
            layout: Layout::Nhwc,
            data_zero_point: -7,
            weight_zero_point: self.weight_zero_point,
        };
        let acc = b.node("conv", op, &[x, weights]).expect("the layer is sound");
        let (multiplier, shift) = quantize_multiplier(1.0 / (70.0 * self.kernel as f64));
        let bias = graph::Tensor::vector((0..c).map(|_| n.int(-3000, 3000) as i32).collect());
        let multiplier = graph::Tensor::vector(vec![multiplier; c]);
        let shift = graph::Tensor::vector(vec![i32::from(shift); c]);
        let [bias, multiplier, shift] = [bias, multiplier, shift].map(|v| b.constant("", v));
        let op = Requantize { axis: 3, zero_point: 3, lo: -128, hi: 127, mode: Rounding::Double };
        let y = b.node("requantize", op, &[acc, bias, multiplier, shift]).expect("the layer is sound");
        b.output("y", y);
        (b.finish().expect("the network is sound"), n.tensor(&ty))
    }

    /// Runs the layer and compares the result with the graph's evaluation.
    #[track_caller]
    fn check(&self, config: &HwConfig, device: DeviceKind) -> Ran {
        let (graph, input) = self.network();
        let expected = eval(&graph, std::slice::from_ref(&input)).unwrap();
        let options = Options::new(config);
        let artifact = model::build(graph, &options, &mut |_, _| {}).unwrap_or_else(|e| panic!("{self:?}: {e}"));
        assert_eq!(artifact.manifest.offloaded_macs(), artifact.manifest.macs(), "{self:?} is offloaded");
        let shared = artifact.manifest.nodes.iter().any(|o| o.why.contains("on the vector unit at the same time"));
        let input = Tensor::new(Stored::I8, input.shape().to_vec(), input.to_bytes()).unwrap();
        let results = run(artifact, config, device, &[input]);
        let found = graph::Tensor::try_from(&results.outputs[0]).unwrap();
        assert!(found == expected[0], "{self:?} differs on {device} with {}", config.name);
        Ran { cycles: results.cycles(), shared }
    }
}

#[test]
fn layers_are_equal_with_mac_and_without() {
    let base = HwConfig::load("1x16x16").unwrap();
    let named = |name: &str, c: HwConfig| HwConfig { name: name.to_string(), ..c };
    let configs = [
        named("all", base.clone()),
        named("no mac", HwConfig { vector_mac: false, ..base.clone() }),
        named("four banks", HwConfig { inp_banks: 4, ..base.clone() }),
        named("few lanes", HwConfig { vector_lanes: 4, requant_lanes: 4, ..base.clone() }),
        named("wide bus", HwConfig { bus_bits: 256, ..base.clone() }),
        named("two loops", HwConfig { loops: 2, ..base.clone() }),
        HwConfig::load("1x8x8").unwrap(),
        HwConfig::load("1x4x4").unwrap(),
    ];
    let tall = Shape { data: [40, 33, 9], ..Shape::square(1, 1) };
    let shapes = [
        Shape::square(96, 14),
        Shape::square(70, 7),
        // More parameters than fit param.
        Shape::square(1200, 6),
        tall,
        Shape { kernel: 5, ..tall },
        Shape { stride: 2, ..tall },
        Shape { dilation: 2, ..tall },
        Shape { kernel: 5, stride: 2, ..Shape::square(48, 28) },
        Shape { weight_zero_point: -9, ..tall },
    ];
    for config in &configs {
        let shared = shapes.iter().filter(|s| s.check(config, DeviceKind::FSIM).shared).count();
        // With a narrow bus, only the bus limits layers of stride 2.
        let least = match config.name.as_str() {
            "no mac" => 0,
            "wide bus" => shapes.len(),
            "few lanes" => 1,
            _ => 5,
        };
        assert!(
            shared >= least && (shared == 0) != config.vector_mac,
            "{shared} layers are shared with {}",
            config.name
        );
    }
}

/// Maximum cycles of the whole layer, from device memory to device memory, per output row of a block of channels and
/// tap, in thousandths.
const BOUNDS: &[(Shape, u64)] = &[
    (Shape::square(96, 14), 800),
    (Shape::square(240, 14), 720),
    (Shape::square(480, 14), 690),
    (Shape::square(96, 28), 690),
    (Shape::square(144, 56), 640),
    (Shape::square(96, 112), 630),
];

#[test]
fn a_row_and_tap_takes_at_most_its_cycles() {
    let config = HwConfig::load("1x16x16").unwrap();
    for (shape, bound) in BOUNDS {
        let cycles = shape.check(&config, DeviceKind::RTL).cycles.expect("the RTL knows time");
        let work = shape.work(&config);
        assert!(1000 * cycles <= bound * work, "{shape:?}: {cycles} cycles for {work} rows and taps");
    }
}

/// Prints cycles per output row and tap; `cargo test --test networks depthwise_table -- --ignored --nocapture`.
#[test]
#[ignore = "a table to look at"]
fn depthwise_table() {
    let config = HwConfig::load("1x16x16").unwrap();
    for size in [14, 28, 56, 112] {
        for channels in [96, 144, 240, 480] {
            let shape = Shape::square(channels, size);
            let cycles = shape.check(&config, DeviceKind::RTL).cycles.expect("the RTL knows time");
            println!(
                "{channels:4} x {size:3} x {size:3}: {cycles:8} cycles, {:.3}",
                cycles as f64 / shape.work(&config) as f64
            );
        }
    }
}
