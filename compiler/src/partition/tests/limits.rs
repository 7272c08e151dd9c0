//! Tests products at the limits of a configuration: those that fit are offloaded, the others give the reason.

use super::problems::{int8, requantize, shape};
use super::{check, configs, on_cpu};
use crate::graph::op::{Conv2d, Layout};
use crate::graph::{DType, Graph, GraphBuilder, TensorType};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tilewright_hw::HwConfig;

/// A convolution with channels before rows.
struct Window {
    image: [usize; 4],
    outputs: usize,
    kernel: [usize; 2],
    strides: [usize; 2],
    dilations: [usize; 2],
    pads: [usize; 4],
    groups: usize,
    weight_zero_point: i32,
}

impl Window {
    fn graph(&self) -> Graph {
        let rng = &mut StdRng::seed_from_u64(8);
        let [n, c, h, w] = self.image;
        let layout = Layout::Nchw;
        let mut b = GraphBuilder::new("window");
        let x = b.input("x", TensorType::new(DType::I8, &shape(layout, n, c, h, w)));
        let depth = c / self.groups;
        let weights = int8(rng, &[self.outputs, self.kernel[0], self.kernel[1], depth]);
        let weights = b.constant("w", weights);
        let Window { strides, dilations, pads, groups, weight_zero_point, .. } = *self;
        let op = Conv2d { strides, pads, dilations, groups, layout, data_zero_point: 3, weight_zero_point };
        let sums = b.node("conv", op, &[x, weights]).unwrap();
        let y = requantize(rng, &mut b, sums, layout.channel_axis(), self.kernel[0] * self.kernel[1] * depth);
        b.output("y", y);
        b.finish().unwrap()
    }

    /// Returns the nodes that a configuration leaves to the CPU, and checks the results.
    fn on_cpu(&self, config: &HwConfig) -> Vec<String> {
        let graph = self.graph();
        let image = int8(&mut StdRng::seed_from_u64(9), &self.image);
        on_cpu(&check(&graph, config, &[image]))
    }
}

/// Small memories, and far fewer input channels than output channels per tile.
fn narrow(block_in: u32, block_out: u32) -> HwConfig {
    HwConfig {
        block_in,
        block_out,
        vector_lanes: 2,
        requant_lanes: 2,
        inp_depth: 1024,
        wgt_depth: 256,
        acc_depth: 256,
        out_depth: 256,
        param_depth: 32,
        gemm_uop_depth: 64,
        vector_uop_depth: 64,
        ..HwConfig::default()
    }
}

#[test]
fn data_of_one_pixel_may_take_more_than_half_of_inp() {
    let wide = Window {
        image: [2, 12, 5, 15],
        outputs: 12,
        kernel: [3, 5],
        strides: [1, 2],
        dilations: [2, 3],
        pads: [2, 9, 3, 9],
        groups: 12,
        weight_zero_point: 0,
    };
    assert_eq!(wide.on_cpu(&narrow(2, 8)), [""; 0]);
    let less = HwConfig { inp_depth: 256, ..narrow(2, 8) };
    let reasons = wide.on_cpu(&less);
    assert!(reasons[0].contains("the smallest needs 260 entries of inp, but only 256 are available"), "{reasons:?}");
}

#[test]
fn weights_of_a_tile_may_take_more_than_half_of_wgt() {
    let far = Window {
        image: [2, 12, 13, 8],
        outputs: 24,
        kernel: [4, 4],
        strides: [2, 1],
        dilations: [1, 1],
        pads: [3, 1, 0, 3],
        groups: 4,
        weight_zero_point: 120,
    };
    assert_eq!(far.on_cpu(&HwConfig { wgt_zp: false, ..narrow(8, 2) }), [""; 0]);
}

#[test]
fn the_limit_that_is_passed_is_named() {
    let many = Window {
        image: [1, 28, 5, 8],
        outputs: 24,
        kernel: [4, 4],
        strides: [1, 1],
        dilations: [1, 1],
        pads: [2, 1, 1, 2],
        groups: 4,
        weight_zero_point: 0,
    };
    let reasons = many.on_cpu(&narrow(4, 16));
    assert!(
        reasons[0].contains(
            "fits for a 4x4 kernel over 28 channels: the smallest needs 112 entries of guop, but only 64 are available"
        ),
        "{reasons:?}"
    );
}

/// Aligned offsets cost memory but do not prevent offloading, because each pixel of a block is aligned.
#[test]
fn alignment_leaves_no_product_to_the_cpu() {
    let plain = Window {
        image: [1, 13, 7, 9],
        outputs: 16,
        kernel: [3, 3],
        strides: [1, 1],
        dilations: [1, 1],
        pads: [1; 4],
        groups: 1,
        weight_zero_point: 5,
    };
    let depthwise = Window { outputs: 13, groups: 13, ..plain };
    let base = HwConfig { vector_lanes: 2, requant_lanes: 2, ..HwConfig::default() };
    for (block_in, block_out) in [(4, 4), (4, 2), (2, 4), (8, 4), (4, 8)] {
        for dma_align in [2, 4, 8] {
            for dma_pad in [true, false] {
                let config = HwConfig { block_in, block_out, dma_align, dma_pad, ..base.clone() };
                assert_eq!(config.violations(), []);
                for window in [&plain, &depthwise] {
                    let cpu = window.on_cpu(&config);
                    assert!(cpu.is_empty(), "{block_in} x {block_out}, dma_align {dma_align}: {cpu:?}");
                }
            }
        }
    }
    let tiny = HwConfig { block_in: 2, block_out: 2, dma_align: 8, ..base.clone() };
    assert!(plain.on_cpu(&tiny)[0].contains("loads must address weight tiles of 4 bytes, but dma_align is 8"));
    let rows = HwConfig { batch: 2, block_in: 4, block_out: 4, dma_align: 8, ..base };
    assert!(plain.on_cpu(&rows)[0].contains("loads must address batch rows of 4 bytes, but dma_align is 8"));
    assert!(configs().iter().all(|config| config.block_is_row() == (config.block_in == config.block_out)));
}
