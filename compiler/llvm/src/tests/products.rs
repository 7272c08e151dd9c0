//! Compares products with constant, packed weights with the graph's evaluation.

use tilewright_compiler::graph::op::{Clip, Conv2d, Dense, Layout, MatMul};
use tilewright_compiler::graph::{DType, Graph, GraphBuilder, Op, Tensor, TensorType};
use tilewright_compiler::suite::{Numbers, problems};
use tilewright_compiler::tir::LoopKind;

use super::{equals_evaluation, run};
use crate::schedule::Tile;
use crate::{LlvmBackend, Processor};

/// Creates a graph of a product of data with constant weights and bias, optionally followed by a clip.
fn graph(n: &mut Numbers, op: Op, shapes: &[&[usize]], clipped: bool) -> Graph {
    let mut b = GraphBuilder::new(op.name());
    let ty = |shape: &[usize]| TensorType::new(DType::F32, shape);
    let mut inputs = vec![b.input("x", ty(shapes[0]))];
    for (i, shape) in shapes[1..].iter().enumerate() {
        let data = n.tensor(&ty(shape));
        inputs.push(b.constant(&format!("w{i}"), data));
    }
    let mut out = b.node("op", op, &inputs).unwrap();
    if clipped {
        out = b.node("clip", Clip { lo: -1.0, hi: 100.0 }, &[out]).unwrap();
    }
    b.output("y", out);
    b.finish().unwrap()
}

fn conv(kernel: usize, stride: usize, layout: Layout) -> Op {
    let pad = kernel / 2;
    Conv2d {
        layout,
        strides: [stride; 2],
        pads: [pad; 4],
        dilations: [1; 2],
        groups: 1,
        data_zero_point: 0,
        weight_zero_point: 0,
    }
    .into()
}

fn check(graph: &Graph, n: &mut Numbers) {
    let backend = LlvmBackend::new().unwrap();
    let (_, id) = graph.inputs().next().unwrap();
    equals_evaluation(&backend, graph.name(), graph, &[n.tensor(graph.ty(id))]);
}

#[test]
fn products_with_constant_weights_equal_the_graph_evaluation() {
    let mut n = Numbers::new(21);
    // Pixel counts that tiles divide and prime ones; channels in whole and partial blocks; one and many inputs.
    for (size, ci, co, kernel, stride) in [
        (14, 16, 64, 3, 1),
        (13, 5, 40, 3, 2),
        (8, 3, 7, 5, 1),
        (7, 64, 33, 1, 1),
        (16, 8, 1, 1, 2),
        (11, 1, 17, 3, 1),
        (1, 100, 24, 1, 1),
    ] {
        let op = conv(kernel, stride, Layout::Nhwc);
        let shapes: [&[usize]; 3] = [&[2, size, size, ci], &[co, kernel, kernel, ci], &[co]];
        for (with, clipped) in [(3, true), (2, false), (3, false)] {
            check(&graph(&mut n, op.clone(), &shapes[..with], clipped), &mut n);
        }
    }
    for (m, k, p) in [(1, 300, 1000), (7, 20, 10), (32, 65, 64), (1, 1, 1)] {
        check(
            &graph(&mut n, Dense { data_zero_point: 0, weight_zero_point: 0 }.into(), &[&[m, k], &[p, k], &[p]], true),
            &mut n,
        );
        check(&graph(&mut n, MatMul {}.into(), &[&[3, m, k], &[k, p]], false), &mut n);
    }
}

/// Returns this machine and the older processors whose code it can run. Each has other instructions for byte products.
fn processors() -> Vec<Processor> {
    let own = Processor::detect().unwrap();
    let older = [
        ("skylake-avx512", "+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+fma"),
        ("haswell", "+avx2,+fma"),
        ("x86-64", "+sse2"),
    ];
    let runs = |features: &str| features.split(',').all(|f| own.has(&f[1..]));
    let older = older.iter().filter(|(_, features)| runs(features));
    let older: Vec<Processor> = older
        .map(|(cpu, features)| Processor { cpu: (*cpu).into(), features: (*features).into(), ..own.clone() })
        .collect();
    [vec![own], older].concat()
}

#[test]
fn products_of_bytes_equal_the_graph_evaluation() {
    let mut n = Numbers::new(23);
    for processor in processors() {
        println!("for {}", processor.cpu);
        let backend = LlvmBackend::for_processor(processor);
        for (size, ci, co, kernel, stride, zero) in [
            (14, 16, 64, 3, 1, -128),
            (13, 5, 40, 3, 2, 127),
            (8, 3, 7, 5, 1, 0),
            (7, 64, 33, 1, 1, 3),
            (16, 8, 1, 1, 2, -5),
            (11, 1, 17, 3, 1, 10),
        ] {
            let Op::Conv2d(op) = conv(kernel, stride, Layout::Nhwc) else { unreachable!("it makes convolutions") };
            let op = Conv2d { data_zero_point: zero, ..op };
            let shapes: [&[usize]; 2] = [&[2, size, size, ci], &[co, kernel, kernel, ci]];
            bytes(&backend, &mut n, op.into(), &shapes);
        }
        for (m, k, p, zero) in [(1, 300, 1000, -128), (7, 20, 10, 5), (32, 65, 64, 0), (1, 1, 1, 127)] {
            let op = Dense { data_zero_point: zero, weight_zero_point: 0 };
            bytes(&backend, &mut n, op.into(), &[&[m, k], &[p, k]]);
        }
        for (size, channels, kernel, stride, zero) in [(14, 32, 3, 1, -128), (9, 21, 5, 2, 4)] {
            let Op::Conv2d(op) = conv(kernel, stride, Layout::Nhwc) else { unreachable!("it makes convolutions") };
            let op = Conv2d { groups: channels, data_zero_point: zero, weight_zero_point: 7, ..op };
            let shapes: [&[usize]; 2] = [&[1, size, size, channels], &[channels, kernel, kernel, 1]];
            bytes(&backend, &mut n, op.into(), &shapes);
        }
    }
}

/// Tests a product of bytes over their whole range, including the extremes, with constant weights.
fn bytes(backend: &LlvmBackend, n: &mut Numbers, op: Op, shapes: &[&[usize]; 2]) {
    let mut b = GraphBuilder::new(op.name());
    let ty = |shape: &[usize]| TensorType::new(DType::I8, shape);
    let mut whole = |shape: &[usize]| {
        let extremes = [-128i8, 127];
        Tensor::from_fn(shape, |_| match n.int(0, 3) {
            0 => extremes[n.int(0, 1) as usize],
            _ => n.int(-128, 127) as i8,
        })
    };
    let (x, w) = (whole(shapes[0]), whole(shapes[1]));
    let inputs = [b.input("x", ty(shapes[0])), b.constant("w", w)];
    let out = b.node("op", op, &inputs).unwrap();
    b.output("y", out);
    equals_evaluation(backend, "bytes", &b.finish().unwrap(), &[x]);
}

#[test]
fn depthwise_products_equal_the_graph_evaluation() {
    let mut n = Numbers::new(22);
    for (size, channels, kernel, stride) in
        [(14, 32, 3, 1), (13, 40, 3, 2), (8, 7, 5, 1), (7, 64, 3, 2), (9, 96, 1, 1), (21, 17, 3, 1)]
    {
        let Op::Conv2d(op) = conv(kernel, stride, Layout::Nhwc) else { unreachable!("it makes convolutions") };
        let op: Op = Conv2d { groups: channels, ..op }.into();
        let shapes: [&[usize]; 3] = [&[2, size, size, channels], &[channels, kernel, kernel, 1], &[channels]];
        for (with, clipped) in [(3, true), (2, false)] {
            check(&graph(&mut n, op.clone(), &shapes[..with], clipped), &mut n);
        }
    }
}

/// Runs every problem of the suite with all operands constant except the first.
#[test]
fn operators_of_constants_equal_the_graph_evaluation() {
    let backend = LlvmBackend::new().unwrap();
    for p in problems(300, 2).unwrap() {
        let (_, node) = p.graph.nodes().last().unwrap();
        let mut b = GraphBuilder::new("constants");
        let inputs: Vec<_> = p
            .inputs
            .iter()
            .enumerate()
            .map(|(i, t)| if i == 0 { b.input("x", t.ty()) } else { b.constant(&format!("c{i}"), t.clone()) })
            .collect();
        let out = b.node("op", node.op.clone(), &inputs).unwrap();
        b.output("y", out);
        let graph = b.finish().unwrap();
        equals_evaluation(&backend, &p.name, &graph, &p.inputs[..1]);
    }
}

/// Checks that large products are an unrolled tile of vectors in registers.
#[test]
fn convolutions_stay_in_registers() {
    let mut n = Numbers::new(22);
    let backend = LlvmBackend::new().unwrap();
    for (size, channels, kernel) in [(56, 64, 3), (28, 128, 1), (7, 512, 3)] {
        let shapes: [&[usize]; 3] = [&[1, size, size, channels], &[channels, kernel, kernel, channels], &[channels]];
        let g = graph(&mut n, conv(kernel, 1, Layout::Nhwc), &shapes, true);
        let product = g.nodes().find(|(_, n)| matches!(n.op, Op::Conv2d(_))).unwrap().0;
        let (tile, _) = Tile::of(&g, product, backend.processor()).expect("it has a tile");
        let functions = backend.plan(&g, &g.nodes().map(|(id, _)| id).collect::<Vec<_>>()).unwrap().functions;
        let (_, f) = functions.last().unwrap();
        let mut kinds = Vec::new();
        f.body.visit_blocks(&mut |loops, b| {
            if !b.reduce.is_empty() {
                kinds = loops.iter().rev().take(2).map(|l| (l.kind, l.extent)).collect();
            }
        });
        assert_eq!(kinds[0], (LoopKind::Vectorized, tile.lanes), "{f}");
        assert_eq!(kinds[1], (LoopKind::Unrolled, tile.vectors), "{f}");
    }
}

/// Measures large products: `cargo test --release -p tilewright-llvm speed -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn speed_of_products() {
    let mut n = Numbers::new(23);
    let backend = LlvmBackend::new().unwrap();
    for (size, ci, co, kernel, stride) in [
        (56, 64, 64, 3, 1),
        (28, 128, 128, 3, 1),
        (14, 256, 256, 3, 1),
        (7, 512, 512, 3, 1),
        (224, 3, 64, 7, 2),
        (56, 64, 256, 1, 1),
    ] {
        let shapes: [&[usize]; 3] = [&[1, size, size, ci], &[co, kernel, kernel, ci], &[co]];
        let g = graph(&mut n, conv(kernel, stride, Layout::Nhwc), &shapes, true);
        let macs = (size / stride).pow(2) * co * ci * kernel * kernel;
        println!("{size}x{size} {ci} to {co}, {kernel}x{kernel}: {:.1} MMAC", macs as f64 / 1e6);
        let inputs = [n.tensor(g.ty(g.inputs().next().unwrap().1))];
        run(&backend, &g, &inputs);
    }
}
