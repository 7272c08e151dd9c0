//! Code that shapes share.

use tilewright_compiler::backend::Backend;
use tilewright_compiler::graph::op::{Clip, Conv2d, GlobalAvgPool, Layout, MaxPool2d};
use tilewright_compiler::graph::{DType, Graph, GraphBuilder, TensorType, eval};
use tilewright_compiler::suite::{Numbers, difference, problems};

use super::{equals_evaluation, run};
use crate::{LlvmBackend, shared};

fn backend(folder: &std::path::Path) -> LlvmBackend {
    LlvmBackend::new().unwrap().with_cache(folder).for_any_shape()
}

/// Extents, strides, bounds and factors of every operator can be arguments, all at once.
#[test]
fn every_number_of_every_operator_can_be_an_argument() {
    for p in problems(300, 3).unwrap() {
        let folder = tempfile::tempdir().unwrap();
        let backend = backend(folder.path());
        let nodes: Vec<_> = p.graph.nodes().map(|(id, _)| id).collect();
        let planned = backend.plan(&p.graph, &nodes).unwrap();
        for (_, function) in &planned.functions {
            shared::open_all(folder.path(), backend.processor(), function);
        }
        let code = backend.compile(&p.graph, &nodes).unwrap();
        assert!(!code.constants.is_empty(), "{}: nothing is an argument", p.name);
        equals_evaluation(&backend, &p.name, &p.graph, &p.inputs);
    }
}

/// A network of images of any size.
fn images(batch: usize, height: usize, width: usize) -> Graph {
    let mut n = Numbers::new(5);
    let mut b = GraphBuilder::new("images");
    let x = b.input("x", TensorType::new(DType::F32, &[batch, 6, height, width]));
    let mut constant = |b: &mut GraphBuilder, name: &str, shape: &[usize]| {
        let data = n.tensor(&TensorType::new(DType::F32, shape));
        b.constant(name, data)
    };
    let conv = |strides| Conv2d {
        layout: Layout::Nchw,
        strides: [strides; 2],
        pads: [1; 4],
        dilations: [1; 2],
        groups: 1,
        data_zero_point: 0,
        weight_zero_point: 0,
    };
    let (w1, b1) = (constant(&mut b, "w1", &[40, 3, 3, 6]), constant(&mut b, "b1", &[40]));
    let first = b.node("first", conv(1), &[x, w1, b1]).unwrap();
    let first = b.node("relu", Clip { lo: 0.0, hi: f32::INFINITY }, &[first]).unwrap();
    let pooled = MaxPool2d { layout: Layout::Nchw, kernel: [3; 2], strides: [2; 2], pads: [1; 4], dilations: [1; 2] };
    let pooled = b.node("pooled", pooled, &[first]).unwrap();
    let (w2, b2) = (constant(&mut b, "w2", &[7, 3, 3, 40]), constant(&mut b, "b2", &[7]));
    let second = b.node("second", conv(2), &[pooled, w2, b2]).unwrap();
    let mean = b.node("mean", GlobalAvgPool { layout: Layout::Nchw, lo: -128, hi: 127 }, &[second]).unwrap();
    b.output("y", mean);
    b.output("z", second);
    b.finish().unwrap()
}

#[test]
fn images_of_further_sizes_run_without_new_code() {
    let folder = tempfile::tempdir().unwrap();
    let sizes =
        [[1, 20, 24], [1, 28, 36], [2, 33, 41], [1, 50, 22], [3, 29, 31], [1, 64, 64], [2, 21, 57], [1, 31, 31]];
    let mut made = Vec::new();
    for (number, [batch, height, width]) in sizes.into_iter().chain(sizes).enumerate() {
        let graph = images(batch, height, width);
        let x = Numbers::new(number as u64).tensor(&TensorType::new(DType::F32, &[batch, 6, height, width]));
        let wanted = eval(&graph, std::slice::from_ref(&x)).unwrap();
        let before = shared::made_in(folder.path());
        let found = run(&backend(folder.path()), &graph, &[x]);
        made.push(shared::made_in(folder.path()) - before);
        for (found, wanted) in found.iter().zip(&wanted) {
            let far = difference(found, wanted);
            assert!(far <= 1e-5, "{batch}x{height}x{width}: {far}");
        }
    }
    println!("functions made: {made:?}");
    assert!(made[0] > 0 && made[1] > 0);
    // The last two sizes are like those before, and no size of the second pass is new.
    assert_eq!(made[sizes.len() - 2..], [0; 10], "functions made for each size: {made:?}");
}

/// A file of the cache that another program wrote, or half a file, is made anew.
#[test]
fn damaged_files_are_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (graph, x) = (images(1, 8, 8), Numbers::new(1).tensor(&TensorType::new(DType::F32, &[1, 6, 8, 8])));
    let wanted = eval(&graph, std::slice::from_ref(&x)).unwrap();
    for keep in [0, 7, 40, 1000] {
        run(&backend(folder.path()), &graph, std::slice::from_ref(&x));
        for file in std::fs::read_dir(folder.path()).unwrap().flatten().filter(|file| file.path().is_file()) {
            let bytes = std::fs::read(file.path()).unwrap();
            std::fs::write(file.path(), &bytes[..keep.min(bytes.len() - 1)]).unwrap();
        }
        let found = run(&backend(folder.path()), &graph, std::slice::from_ref(&x));
        assert!(found.iter().zip(&wanted).all(|(found, wanted)| difference(found, wanted) <= 1e-5));
    }
}
