//! ScatterND and ScatterElements, compared with plain loops, and their errors.

use super::*;
use crate::frontend::onnx::testing::{Operand, Value, single};
use crate::graph::DType;
use rand::{Rng, SeedableRng, rngs::SmallRng};

const REDUCTIONS: [&str; 5] = ["none", "add", "mul", "max", "min"];

fn combined(reduction: &str, a: f32, b: f32) -> f32 {
    match reduction {
        "add" => a + b,
        "mul" => a * b,
        "max" => a.max(b),
        "min" => a.min(b),
        _ => b,
    }
}

fn import_one(file: &[u8]) -> Result<Graph, String> {
    onnx::import(file, "net.onnx", None, Sizes::default()).map_err(|e| e.to_string())
}

fn random(rng: &mut SmallRng, shape: &[usize], byte: bool) -> Tensor {
    // Small integers, so that sums and products are exact in any order and fit bytes.
    let mut x = || rng.random_range(0..4);
    if byte { Tensor::from_fn(shape, |_| x() as u8) } else { Tensor::from_fn(shape, |_| x() as f32) }
}

fn floats(t: &Tensor) -> Vec<f32> {
    match t.data() {
        TensorData::U8(v) => v.iter().map(|&x| f32::from(x)).collect(),
        _ => t.as_slice::<f32>().unwrap().to_vec(),
    }
}

/// Imports, runs and compares a node whose updates move, in order, as `moves` lists them.
fn check(rng: &mut SmallRng, op: &str, axis: Option<i64>, operands: [Tensor; 3], moves: &[(usize, usize)], byte: bool) {
    let reduction = REDUCTIONS[rng.random_range(0..5)];
    let (mut expected, updates) = (floats(&operands[0]), floats(&operands[2]));
    moves.iter().for_each(|&(from, to)| expected[to] = combined(reduction, expected[to], updates[from]));
    if byte {
        expected.iter_mut().for_each(|x| *x = *x as i64 as u8 as f32);
    }
    let mut attributes = vec![("reduction", Value::Word(reduction))];
    attributes.extend(axis.map(|a| ("axis", Value::Int(a))));
    let known: bool = rng.random();
    let operand = |(i, t): (usize, &Tensor)| match i {
        1 if known => Operand::Constant(t.clone()),
        _ => Operand::Given(t.clone()),
    };
    let all: Vec<Operand> = operands.iter().enumerate().map(operand).collect();
    let given: Vec<Tensor> =
        operands.iter().enumerate().filter(|(i, _)| *i != 1 || !known).map(|(_, t)| t.clone()).collect();
    let g = import_one(&single(op, &attributes, &all, 1, 18)).unwrap();
    let found = eval(&g, &given).unwrap().remove(0);
    assert_eq!(found.ty(), operands[0].ty());
    assert_eq!(floats(&found), expected, "{op} {reduction} known {known} {operands:?}");
}

fn steps(shape: &[usize]) -> Vec<usize> {
    (0..shape.len()).map(|i| shape[i + 1..].iter().product()).collect()
}

#[test]
fn updates_go_where_plain_loops_put_them() {
    let mut rng = SmallRng::seed_from_u64(5);
    for _ in 0..200 {
        let rank = rng.random_range(1..4);
        let shape: Vec<usize> = (0..rank).map(|_| rng.random_range(1..5)).collect();
        let width = rng.random_range(1..=rank);
        let outer: Vec<usize> = (0..rng.random_range(1..3)).map(|_| rng.random_range(1..4)).collect();
        let count: usize = outer.iter().product();
        let tuples: Vec<Vec<usize>> =
            (0..count).map(|_| shape[..width].iter().map(|&d| rng.random_range(0..d)).collect()).collect();
        let from_end: bool = rng.random();
        let value = |i: usize| {
            let (at, size) = (tuples[i / width][i % width] as i64, shape[i % width] as i64);
            if from_end { at - size } else { at }
        };
        let byte = rng.random_bool(0.3);
        let indices = Tensor::from_fn(&[outer.as_slice(), &[width]].concat(), value);
        let updates = random(&mut rng, &[outer.as_slice(), &shape[width..]].concat(), byte);
        let data = random(&mut rng, &shape, byte);
        let (row, strides) = (shape[width..].iter().product::<usize>(), steps(&shape));
        let base = |u: usize| tuples[u].iter().zip(&strides).map(|(i, s)| i * s).sum::<usize>();
        let moves: Vec<_> = (0..count * row).map(|i| (i, base(i / row) + i % row)).collect();
        check(&mut rng, "ScatterND", None, [data, indices, updates], &moves, byte);
    }
    for _ in 0..200 {
        let rank = rng.random_range(1..4);
        let shape: Vec<usize> = (0..rank).map(|_| rng.random_range(1..5)).collect();
        let axis = rng.random_range(0..rank);
        let chosen: Vec<usize> = (0..rank)
            .map(|a| if a == axis { rng.random_range(1..6) } else { rng.random_range(1..=shape[a]) })
            .collect();
        let size = shape[axis] as i64;
        let indices = Tensor::from_fn(&chosen, |_| rng.random_range(-size..size));
        let byte = rng.random_bool(0.3);
        let (data, updates) = (random(&mut rng, &shape, byte), random(&mut rng, &chosen, byte));
        let (to, from) = (steps(&shape), steps(&chosen));
        let list = indices.as_slice::<i64>().unwrap().to_vec();
        let place = |i: usize| {
            let along = list[i].rem_euclid(size) as usize;
            (0..rank).map(|a| if a == axis { along } else { i / from[a] % chosen[a] } * to[a]).sum::<usize>()
        };
        let moves: Vec<_> = (0..list.len()).map(|i| (i, place(i))).collect();
        check(&mut rng, "ScatterElements", Some(axis as i64 - rank as i64), [data, indices, updates], &moves, byte);
    }
}

#[test]
fn what_cannot_be_scattered_is_named() {
    let zeros = |shape: &[usize]| Operand::Given(Tensor::from_fn(shape, |_| 0f32));
    let refused = |op: &str, reduction: &str, operands: [Operand; 3], want: &str| {
        let e = import_one(&single(op, &[("reduction", Value::Word(reduction))], &operands, 1, 18)).unwrap_err();
        assert!(e.contains(&format!("node `node` ({op}): {want}")), "{e}");
    };
    let known = |shape: &[usize], i: i64| Operand::Constant(Tensor::from_fn(shape, |_| i));
    let given = |shape: &[usize]| Operand::Given(Tensor::from_fn(shape, |_| 0i64));
    refused(
        "ScatterND",
        "mean",
        [zeros(&[4]), known(&[1, 1], 0), zeros(&[1])],
        "unknown reduction `mean`; use none, add, mul, max or min",
    );
    refused(
        "ScatterND",
        "none",
        [zeros(&[4, 3]), known(&[2, 1], 0), zeros(&[2])],
        "its updates f32[2] do not match data [4, 3] with indices [2, 1]; their shape must be",
    );
    refused(
        "ScatterND",
        "none",
        [zeros(&[4, 3]), known(&[1, 2], 3), zeros(&[1])],
        "index 3 is out of range for dimension 1 of the data, with 3 elements",
    );
    refused(
        "ScatterElements",
        "none",
        [zeros(&[4]), known(&[1], -5), zeros(&[1])],
        "index -5 is out of range for dimension 0 of the data, with 4 elements",
    );
    refused(
        "ScatterElements",
        "none",
        [zeros(&[4, 2]), known(&[1, 3], 0), zeros(&[1, 3])],
        "its updates f32[1,3] and indices [1, 3] do not match data [4, 2] along 0",
    );
    let bytes = Operand::Given(Tensor::vector(vec![0i32]));
    refused("ScatterElements", "none", [zeros(&[4]), known(&[1], 0), bytes], "its updates must have the data's type");
    refused(
        "ScatterElements",
        "add",
        [zeros(&[4]), known(&[65], 1), zeros(&[65])],
        "65 updates of one element are not supported; the maximum is 64",
    );
    refused(
        "ScatterElements",
        "add",
        [zeros(&[4]), given(&[65]), zeros(&[65])],
        "combining 65 updates at indices computed at run time is not supported; the maximum is 64, but indices that follow",
    );
    refused(
        "ScatterND",
        "none",
        [zeros(&[1 << 13]), given(&[1 << 12, 1]), zeros(&[1 << 12])],
        "4096 updates of 8192 elements at indices computed at run time are not supported",
    );
}

#[test]
fn places_outside_that_the_run_computes_are_left_out() {
    let operands = [
        Operand::Given(Tensor::from_fn(&[2, 3], |i| i as f32)),
        Operand::Given(Tensor::from_fn(&[3, 2], |i| [0, 5, 1, 1, -9, 0][i] as i64)),
        Operand::Given(Tensor::vector(vec![10f32, 20.0, 30.0])),
    ];
    let given: Vec<Tensor> =
        operands.iter().map(|o| if let Operand::Given(t) = o { t.clone() } else { unreachable!() }).collect();
    for (reduction, want) in [("none", 20.0), ("add", 24.0)] {
        let g = import_one(&single("ScatterND", &[("reduction", Value::Word(reduction))], &operands, 1, 18)).unwrap();
        let found = eval(&g, &given).unwrap().remove(0);
        assert_eq!(found.ty().dtype, DType::F32);
        assert_eq!(floats(&found), [0.0, 1.0, 2.0, 3.0, want, 5.0]);
    }
}
