//! Random operators that move elements, and operators of two tensors.

use super::{layout, problems, shape};
use crate::graph::op::{Concat, Gather, Layout, Slice};
use crate::graph::{DType, Graph, GraphBuilder, Tensor, TensorType, ValueId};
use rand::Rng;
use rand::rngs::StdRng;

fn image(b: &mut GraphBuilder, name: &str, layout: Layout, [n, c, h, w]: [usize; 4]) -> ValueId {
    b.input(name, TensorType::new(DType::I8, &shape(layout, n, c, h, w)))
}

fn concat(rng: &mut StdRng) -> Option<Graph> {
    let layout = layout(rng);
    let mut b = GraphBuilder::new("concat");
    let mut sizes = [1, rng.random_range(1..40), rng.random_range(1..9), rng.random_range(1..9)];
    let along = rng.random_range(1..4);
    let aligned = rng.random_bool(0.3);
    let mut parts = Vec::new();
    for i in 0..rng.random_range(1..4) {
        sizes[along] = rng.random_range(1..40);
        if along == 1 && aligned {
            sizes[along] = 32 * rng.random_range(1..3);
        }
        parts.push(image(&mut b, &format!("x{i}"), layout, sizes));
    }
    let [rows, columns] = layout.spatial_axes();
    let axis = [0, layout.channel_axis(), rows, columns][along];
    let y = b.node("concat", Concat { axis }, &parts).ok()?;
    b.output("y", y);
    Some(b.finish().unwrap())
}

fn slice(rng: &mut StdRng) -> Option<Graph> {
    let rank = if rng.random_bool(0.3) { rng.random_range(2..4) } else { 4 };
    let mut dims: Vec<usize> = (0..rank).map(|_| rng.random_range(1..33)).collect();
    if rank > 2 {
        dims[0] = 1;
    }
    let mut b = GraphBuilder::new("slice");
    let x = b.input("x", TensorType::new(DType::I8, &dims));
    let (mut starts, mut sizes, mut steps) = (vec![0; rank], dims.clone(), vec![1; rank]);
    for _ in 0..rng.random_range(1..3) {
        let d = rng.random_range(usize::from(rank > 2)..rank);
        steps[d] = if rng.random_bool(0.4) { rng.random_range(1..4) } else { 1 };
        starts[d] = rng.random_range(0..dims[d]);
        sizes[d] = rng.random_range(1..=(dims[d] - starts[d]).div_ceil(steps[d] as usize));
        if rng.random_bool(0.1) {
            (starts[d], steps[d]) = (starts[d] + (sizes[d] - 1) * steps[d] as usize, -steps[d]);
        }
    }
    let y = b.node("slice", Slice { starts, sizes, steps }, &[x]).ok()?;
    b.output("y", y);
    Some(b.finish().unwrap())
}

/// Nearest resizing, by whole factors and others.
fn resize(rng: &mut StdRng) -> Option<Graph> {
    let layout = layout(rng);
    let sizes = [rng.random_range(1..3), rng.random_range(1..40), rng.random_range(1..9), rng.random_range(1..9)];
    let mut b = GraphBuilder::new("resize");
    let mut y = image(&mut b, "x", layout, sizes);
    for (i, axis) in layout.spatial_axes().into_iter().enumerate() {
        let from = sizes[2 + i];
        let to = if rng.random() { from * rng.random_range(1..4) } else { rng.random_range(1..20) };
        let places = Tensor::from_fn(&[to], |o| (o * from / to) as i32);
        let places = b.constant("places", places);
        y = b.node(["rows", "columns"][i], Gather { axis }, &[y, places]).ok()?;
    }
    b.output("y", y);
    Some(b.finish().unwrap())
}

#[test]
fn concatenations() {
    problems(concat, 40, 80);
}

#[test]
fn slices() {
    problems(slice, 60, 70);
}

#[test]
fn nearest_resizing() {
    problems(resize, 40, 90);
}
