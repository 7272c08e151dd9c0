//! Tests convolutions of few channels whose input the host writes, with the columns of a window loaded as channels.

use super::problems::{int8, layout, requantize, shape};
use super::{check, configs, fsim, on_cpu, rtl};
use crate::graph::op::{Conv2d, Layout};
use crate::graph::{DType, Graph, GraphBuilder, Tensor, TensorType};
use crate::partition::{Code, Options, Partition};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tilewright_hw::HwConfig;
use tilewright_runtime::artifact::Packing;

/// A convolution: channels, height and width of the image; kernel, strides and pads.
struct Stem {
    image: [usize; 3],
    kernel: [usize; 2],
    strides: [usize; 2],
    pads: [usize; 4],
    outputs: usize,
}

fn graph(rng: &mut StdRng, layout: Layout, images: usize, stem: &Stem) -> Graph {
    let Stem { image: [c, h, w], kernel, strides, pads, outputs } = *stem;
    let mut b = GraphBuilder::new(&format!("{c}x{h}x{w}, window {kernel:?}, strides {strides:?}, pads {pads:?}"));
    let x = b.input("x", TensorType::new(DType::I8, &shape(layout, images, c, h, w)));
    let weights = int8(rng, &[outputs, kernel[0], kernel[1], c]);
    let weights = b.constant("w", weights);
    let op = Conv2d {
        strides,
        pads,
        dilations: [1, 1],
        groups: 1,
        layout,
        data_zero_point: rng.random_range(-128..128),
        weight_zero_point: if rng.random() { rng.random_range(-128..128) } else { 0 },
    };
    let acc = b.node("conv", op, &[x, weights]).unwrap();
    let y = requantize(rng, &mut b, acc, layout.channel_axis(), kernel[0] * kernel[1] * c);
    b.output("y", y);
    b.finish().unwrap()
}

/// Random bytes for the graph's input.
fn picture(rng: &mut StdRng, graph: &Graph) -> Tensor {
    let (_, value) = graph.inputs().next().unwrap();
    int8(rng, &graph.ty(value).shape().unwrap())
}

/// Number of regions whose input is in device memory without blocks of channels.
fn unblocked(parts: &Partition, config: &HwConfig) -> usize {
    let dense = |packing: &Packing| match packing {
        Packing::Nhwc(i) | Packing::Nchw(i) => i.block != config.block() as usize,
        Packing::Dense => false,
    };
    let regions = parts.regions.iter().filter_map(|r| if let Code::Accel(a) = &r.code { Some(a) } else { None });
    regions.filter(|a| a.inputs.iter().any(|(_, packing)| dense(packing))).count()
}

#[test]
fn stems_of_many_shapes_are_exact() {
    let mut rng = StdRng::seed_from_u64(33);
    let base = [
        Stem { image: [3, 33, 35], kernel: [3, 3], strides: [2, 2], pads: [0, 0, 1, 1], outputs: 32 },
        Stem { image: [3, 32, 32], kernel: [3, 3], strides: [1, 1], pads: [1; 4], outputs: 16 },
        Stem { image: [1, 28, 28], kernel: [5, 5], strides: [1, 1], pads: [0; 4], outputs: 6 },
        Stem { image: [1, 49, 10], kernel: [10, 4], strides: [2, 2], pads: [4, 1, 5, 1], outputs: 20 },
        Stem { image: [4, 19, 23], kernel: [7, 7], strides: [2, 3], pads: [3, 3, 3, 3], outputs: 9 },
        Stem { image: [2, 17, 21], kernel: [1, 3], strides: [3, 1], pads: [0, 2, 0, 0], outputs: 18 },
    ];
    let mut found = 0;
    for config in configs() {
        for stem in &base {
            let images = rng.random_range(1..3);
            let layout = layout(&mut rng);
            let graph = graph(&mut rng, layout, images, stem);
            let x = picture(&mut rng, &graph);
            found += unblocked(&check(&graph, &config, &[x]), &config);
        }
    }
    assert!(found >= 12, "{found} stems are loaded window by window");
    for _ in 0..60 {
        let kernel: [usize; 2] = std::array::from_fn(|_| rng.random_range(1..7));
        let image = [rng.random_range(1..5), rng.random_range(7..40), rng.random_range(7..40)];
        let strides = std::array::from_fn(|_| rng.random_range(1..4));
        let pads = std::array::from_fn(|i| rng.random_range(0..kernel[i % 2]));
        let stem = Stem { image, kernel, strides, pads, outputs: rng.random_range(1..40) };
        let layout = layout(&mut rng);
        let graph = graph(&mut rng, layout, 1, &stem);
        let x = picture(&mut rng, &graph);
        let config = HwConfig::default();
        let parts = check(&graph, &config, &[x]);
        assert!(on_cpu(&parts).is_empty(), "{}: {:?}", graph.name(), on_cpu(&parts));
        found += unblocked(&parts, &config);
    }
    assert!(found >= 40, "{found} stems are loaded window by window");
}

#[test]
fn the_design_loads_a_stem_in_fewer_cycles_than_padded_channels_take() {
    let mut rng = StdRng::seed_from_u64(34);
    let stem = Stem { image: [3, 24, 26], kernel: [3, 3], strides: [1, 1], pads: [1; 4], outputs: 32 };
    let graph = graph(&mut rng, Layout::Nhwc, 1, &stem);
    let x = picture(&mut rng, &graph);
    let config = HwConfig::default();
    // Without a search for tiles, channels are padded to blocks.
    let cycles = |options: Options, windows: usize| {
        let parts = super::check_split(&graph, &config, std::slice::from_ref(&x), (options, &fsim));
        assert_eq!(unblocked(&parts, &config), windows);
        let Some(Code::Accel(accel)) = parts.regions.first().map(|r| &r.code) else { panic!("nothing is offloaded") };
        let (value, packing) = accel.inputs[0];
        assert_eq!(value, graph.inputs().next().unwrap().1);
        let packed = vec![super::to_device(packing, &super::bytes(&x))];
        let (_, report) = tilewright_driver::run_program(rtl(&config).as_mut(), &accel.program, &packed).unwrap();
        report.cycles.unwrap()
    };
    let by_window = cycles(Options::default(), 1);
    let by_block = cycles(Options { search_tiles: false, ..Options::default() }, 0);
    assert!(by_window * 4 < by_block * 3, "{by_window} and {by_block} cycles");
}
