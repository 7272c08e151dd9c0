//! Tests quantized operators between reshapes, from the form in model files to the accelerator.

use super::problems::int8;
use super::{check, on_cpu};
use crate::graph::op::{Add, Conv2d, Dense, Dequantize, Layout, QuantRounding, Quantize, Reshape};
use crate::graph::{DType, Graph, GraphBuilder, Tensor, TensorType};
use crate::passes;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tilewright_hw::HwConfig;

/// Quantized operators as in model files, with reshapes around a matrix product or a one-dimensional convolution.
fn reshaped(lead: &[usize], bias: bool) -> Graph {
    let mut b = GraphBuilder::new("reshaped");
    let rng = &mut StdRng::seed_from_u64(7);
    let scaled = |scale: f32| Dequantize { scale: vec![scale], zero_point: vec![0], axis: 0 };
    let line = lead.is_empty();
    let (k, n, length) = (32, 48, 20);
    let shape: Vec<usize> = if line { vec![1, k, length] } else { lead.iter().copied().chain([k]).collect() };
    let x = b.input("x", TensorType::new(DType::I8, &shape));
    let x = b.node("x/dq", scaled(0.05), &[x]).unwrap();
    let w = b.constant("w", int8(rng, if line { &[48, 1, 3, 32] } else { &[48, 32] }));
    let w = b.node("w/dq", scaled(0.004), &[w]).unwrap();
    let v = if line {
        let image = b.node("image", Reshape { shape: vec![1, k as i64, 1, length as i64] }, &[x]).unwrap();
        let op = Conv2d {
            strides: [1, 1],
            pads: [0, 1, 0, 1],
            dilations: [1, 1],
            groups: 1,
            layout: Layout::Nchw,
            data_zero_point: 0,
            weight_zero_point: 0,
        };
        let v = b.node("conv", op, &[image, w]).unwrap();
        b.node("line", Reshape { shape: vec![1, n as i64, length as i64] }, &[v]).unwrap()
    } else {
        let rows = b.node("rows", Reshape { shape: vec![-1, k as i64] }, &[x]).unwrap();
        let v = b.node("dense", Dense { data_zero_point: 0, weight_zero_point: 0 }, &[rows, w]).unwrap();
        let shape = lead.iter().map(|&n| n as i64).chain([n as i64]).collect();
        b.node("shape", Reshape { shape }, &[v]).unwrap()
    };
    let v = if bias {
        let c = b.constant("b", int8(rng, if line { &[48, 1] } else { &[48] }));
        let c = b.node("b/dq", scaled(0.02), &[c]).unwrap();
        b.node("sum", Add {}, &[v, c]).unwrap()
    } else {
        v
    };
    let (scale, zero_point) = (vec![0.4], vec![-2]);
    let q = Quantize { scale, zero_point, axis: 0, rounding: QuantRounding::HalfEven, dtype: DType::I8 };
    let y = b.node("q", q, &[v]).unwrap();
    b.output("y", y);
    b.finish().unwrap()
}

#[test]
fn quantized_products_between_reshapes_are_offloaded() {
    let config = HwConfig::load("1x16x16").unwrap();
    for lead in [&[2, 9][..], &[1, 3, 7], &[]] {
        for bias in [false, true] {
            let graph = reshaped(lead, bias);
            let (graph, _) = passes::optimize(graph, passes::OptLevel::O2, passes::Options::default()).unwrap();
            let mut rng = StdRng::seed_from_u64(3);
            let inputs: Vec<Tensor> =
                graph.inputs().map(|(_, v)| int8(&mut rng, &graph.ty(v).shape().unwrap())).collect();
            let cpu = on_cpu(&check(&graph, &config, &inputs));
            assert!(graph.nodes().any(|(_, n)| n.op.name() == "requantize"), "{graph}");
            assert!(!cpu.iter().any(|why| !why.starts_with("reshape")), "{lead:?}: {cpu:#?}\n{graph}");
        }
    }
}
