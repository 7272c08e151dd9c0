//! TFLite operators whose options decide what they mean; `make check-tflite` compares all of them with the kernels.

use super::tflite_fields::{File, floats};
use super::*;
use tilewright_testing::flat::Field;

const STRIDED_SLICE: i32 = 45;
const LESS: i32 = 58;
const ONE_HOT: i32 = 85;
const MIRROR_PAD: i32 = 100;
const SPACE_TO_BATCH_ND: i32 = 38;
const BATCH_TO_SPACE_ND: i32 = 37;

fn words(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// A file with one operator on floats and constants of INT32.
fn moved(
    code: i32,
    from: &[usize],
    constants: &[(&[usize], &[i32])],
    to: &[usize],
    options: Option<(i8, Vec<(usize, Field)>)>,
) -> File {
    let mut file = File::new();
    let mut inputs = vec![file.input("x", 0, from)];
    for (i, (shape, values)) in constants.iter().enumerate() {
        inputs.push(file.constant(&format!("c{i}"), 2, shape, words(values)));
    }
    let y = file.tensor("y", 0, to);
    file.operator(code, &inputs, y, options);
    file.output(y);
    file
}

/// What it makes of 0, 1, 2, ….
fn counted(file: &File, from: &[usize]) -> Vec<f32> {
    let x = Tensor::from_fn(from, |i| i as f32);
    file.run(&[x]).remove(0).as_slice::<f32>().unwrap().to_vec()
}

fn slice(begin: &[i32], end: &[i32], to: &[usize], masks: &[(usize, i32)]) -> File {
    let given = [begin.len()];
    let steps = vec![1; begin.len()];
    let options = masks.iter().map(|&(field, mask)| (field, Field::Word(mask))).collect();
    let constants: [(&[usize], &[i32]); 3] = [(&given, begin), (&given, end), (&given, &steps)];
    moved(STRIDED_SLICE, &[2, 3, 4], &constants, to, Some((32, options)))
}

#[test]
fn slices_have_ellipses_and_new_and_removed_dimensions() {
    // x[..., 1], x[1, new, 0:2], x[-1, ..., new]
    let last = slice(&[0, 1], &[0, 2], &[2, 3], &[(2, 1), (4, 2)]);
    assert_eq!(counted(&last, &[2, 3, 4]), [1., 5., 9., 13., 17., 21.]);
    let new = slice(&[1, 0, 0], &[2, 0, 2], &[1, 2, 4], &[(3, 2), (4, 1)]);
    assert_eq!(counted(&new, &[2, 3, 4]), [12., 13., 14., 15., 16., 17., 18., 19.]);
    let outer = slice(&[-1, 0, 0], &[0, 0, 0], &[3, 4, 1], &[(2, 2), (3, 4), (4, 1)]);
    assert_eq!(counted(&outer, &[2, 3, 4])[..3], [12., 13., 14.]);
    let e = slice(&[2, 0], &[3, 0], &[3, 4], &[(2, 2), (4, 1)]).refused();
    assert!(e.contains("its begin 2 is out of range for dimension 0, which has 2 elements"), "{e}");
    let e = slice(&[0, 0], &[1, 1], &[3, 4], &[(2, 3)]).refused();
    assert!(e.contains("ellipsis_mask names two places"), "{e}");
    let e = slice(&[0; 4], &[1; 4], &[1], &[]).refused();
    assert!(e.contains("it names 4 dimensions, but its data have 3"), "{e}");
}

#[test]
fn borders_repeat_the_edge_or_do_not() {
    let pads: (&[usize], &[i32]) = (&[1, 2], &[2, 1]);
    let mirror = |mode: i8| moved(MIRROR_PAD, &[3], &[pads], &[6], Some((77, vec![(0, Field::Byte(mode))])));
    assert_eq!(counted(&mirror(0), &[3]), [2., 1., 0., 1., 2., 1.]);
    assert_eq!(counted(&mirror(1), &[3]), [1., 0., 0., 1., 2., 2.]);
    assert!(mirror(2).refused().contains("supported are REFLECT, SYMMETRIC"));
    let wide = moved(MIRROR_PAD, &[3], &[(&[1, 2], &[3, 0])], &[6], None).refused();
    assert!(wide.contains("its pads must not be larger than its data"), "{wide}");
}

#[test]
fn blocks_go_to_the_batch_and_back() {
    let blocks: (&[usize], &[i32]) = (&[1], &[2]);
    let there = moved(SPACE_TO_BATCH_ND, &[1, 3], &[blocks, (&[1, 2], &[1, 0])], &[2, 2], None);
    assert_eq!(counted(&there, &[1, 3]), [0., 1., 0., 2.]);
    let back = moved(BATCH_TO_SPACE_ND, &[2, 2], &[blocks, (&[1, 2], &[1, 0])], &[1, 3], None);
    assert_eq!(counted(&back, &[2, 2]), [2., 1., 3.]);
    let odd = moved(BATCH_TO_SPACE_ND, &[3, 2], &[blocks, (&[1, 2], &[0, 0])], &[1, 4], None).refused();
    assert!(odd.contains("its blocks [2] must divide a batch of 3"), "{odd}");
    let cut = moved(BATCH_TO_SPACE_ND, &[2, 2], &[blocks, (&[1, 2], &[3, 3])], &[1, 3], None).refused();
    assert!(cut.contains("its crops 3 and 3 are more than 4 elements"), "{cut}");
}

/// With scales below 1/256, the kernels take different bytes for equal.
#[test]
fn bytes_are_compared_as_the_kernels_scale_them() {
    let compared = |scales: [f32; 2]| {
        let mut file = File::new();
        let both = ["a", "b"].map(|name| file.input(name, 9, &[3]));
        both.iter().zip(scales).for_each(|(&t, scale)| file.quantized(t, &[scale], &[0], 0));
        let y = file.tensor("y", 6, &[3]);
        file.operator(LESS, &both, y, None);
        file.output(y);
        file
    };
    let (a, b) = (Tensor::vector(vec![1i8, 1, -3]), Tensor::vector(vec![2i8, 4, -3]));
    let less = |scales| compared(scales).run(&[a.clone(), b.clone()]).remove(0).as_slice::<bool>().unwrap().to_vec();
    assert_eq!(less([0.5, 0.5]), [true, true, false]);
    assert_eq!(less([1.0 / 2048.0; 2]), [false, true, false]);
    assert_eq!(less([0.5, 0.125]), [false, false, true]);
    let e = compared([2.0, 0.5]).refused();
    assert!(e.contains("its operand 0 has scale 2, which must be below 1"), "{e}");
}

/// Unlike in ONNX, an index below 0 is nowhere.
#[test]
fn indices_below_zero_are_nowhere() {
    let mut file = File::new();
    let x = file.input("x", 2, &[2]);
    let depth = file.constant("depth", 2, &[], words(&[3]));
    let on = file.constant("on", 2, &[], words(&[7]));
    let off = file.constant("off", 2, &[], words(&[1]));
    let y = file.tensor("y", 2, &[2, 3]);
    file.operator(ONE_HOT, &[x, depth, on, off], y, Some((61, vec![(0, Field::Word(-1))])));
    file.output(y);
    let y = file.run(&[Tensor::vector(vec![-1, 2])]).remove(0);
    assert_eq!(y.as_slice::<i32>().unwrap(), [1, 1, 1, 1, 1, 7]);
}

const ADD: i32 = 0;
const MUL: i32 = 18;
const IF: i32 = 118;
const WHILE: i32 = 119;

/// A graph of two floats, `state` and `factor`, that applies an operator to both; it returns the result and the factor.
fn step(file: &mut File, code: i32) -> i32 {
    file.graph(|file| {
        let (state, factor) = (file.input("state", 0, &[2]), file.input("factor", 0, &[2]));
        let next = file.tensor("next", 0, &[2]);
        let kind = if code == ADD { 11 } else { 21 };
        file.operator(code, &[state, factor], next, Some((kind, Vec::new())));
        file.output(next);
        file.output(factor);
    })
}

/// A graph of the same values that asks whether the largest state is below a limit.
fn below(file: &mut File, limit: f32) -> i32 {
    file.graph(|file| {
        let (state, _) = (file.input("state", 0, &[2]), file.input("factor", 0, &[2]));
        let axes = file.constant("axes", 2, &[1], words(&[0]));
        let largest = file.tensor("largest", 0, &[]);
        file.operator(82, &[state, axes], largest, None);
        let limit = file.constant("limit", 0, &[], limit.to_le_bytes().to_vec());
        let is_below = file.tensor("is_below", 6, &[]);
        file.operator(LESS, &[largest, limit], is_below, None);
        file.output(is_below);
    })
}

#[test]
fn loops_and_branches_run_other_graphs() {
    let looped = |limit: f32| {
        let mut file = File::new();
        let (condition, body) = (below(&mut file, limit), step(&mut file, MUL));
        let (x, factor) = (file.input("x", 0, &[2]), file.constant("factor", 0, &[2], floats(&[2.0, 3.0])));
        let (y, z) = (file.tensor("y", 0, &[2]), file.tensor("z", 0, &[2]));
        let options = vec![(0, Field::Word(condition)), (1, Field::Word(body))];
        file.operator_with(WHILE, &[x, factor], &[y, z], Some((93, options)));
        [y, z].into_iter().for_each(|t| file.output(t));
        file
    };
    let run = |file: &File, x: [f32; 2]| -> Vec<Vec<f32>> {
        let made = file.run(&[Tensor::vector(x.to_vec())]);
        made.iter().map(|t| t.as_slice::<f32>().unwrap().to_vec()).collect()
    };
    assert_eq!(run(&looped(50.0), [1.0, 1.0]), [[16.0, 81.0], [2.0, 3.0]]);
    assert_eq!(run(&looped(50.0), [1.0, 51.0]), [[1.0, 51.0], [2.0, 3.0]]);
    // The factor stays the same, so that it is a constant of the body.
    let graph = tflite::import(&looped(50.0).bytes(), "net.tflite").unwrap();
    let body = graph.nodes().find_map(|(_, node)| node.op.regions().first().map(|region| (*region).clone()));
    assert_eq!(body.unwrap().inputs().map(|(name, _)| name.to_string()).collect::<Vec<_>>(), ["step", "carried"]);

    let chosen = |number: [i32; 2]| {
        let mut file = File::new();
        let (add, multiply) = (step(&mut file, ADD), step(&mut file, MUL));
        let graphs = [add, multiply, 9];
        let (x, factor) = (file.input("x", 0, &[2]), file.constant("factor", 0, &[2], floats(&[2.0, 3.0])));
        let axes = file.constant("axes", 2, &[1], words(&[0]));
        let (largest, limit) = (file.tensor("largest", 0, &[]), file.constant("limit", 0, &[], floats(&[4.0])));
        file.operator(82, &[x, axes], largest, None);
        let condition = file.tensor("condition", 6, &[]);
        file.operator(LESS, &[largest, limit], condition, None);
        let (y, z) = (file.tensor("y", 0, &[2]), file.tensor("z", 0, &[2]));
        let options = vec![(0, Field::Word(graphs[number[0] as usize])), (1, Field::Word(graphs[number[1] as usize]))];
        file.operator_with(IF, &[condition, x, factor], &[y, z], Some((92, options)));
        file.output(y);
        file
    };
    assert_eq!(run(&chosen([0, 1]), [1.0, 2.0]), [[3.0, 5.0]]);
    assert_eq!(run(&chosen([0, 1]), [1.0, 5.0]), [[2.0, 15.0]]);
    assert!(chosen([0, 2]).refused().contains("(IF): there is no subgraph 9"));

    // A graph that is within itself.
    let mut file = File::new();
    let own = file.graph(|file| {
        let (state, factor) = (file.input("state", 0, &[2]), file.input("factor", 0, &[2]));
        let yes = file.constant("yes", 6, &[], vec![1]);
        let (y, z) = (file.tensor("y", 0, &[2]), file.tensor("z", 0, &[2]));
        let options = vec![(0, Field::Word(1)), (1, Field::Word(1))];
        file.operator_with(IF, &[yes, state, factor], &[y, z], Some((92, options)));
        [y, z].into_iter().for_each(|t| file.output(t));
    });
    assert_eq!(own, 1);
    let (x, factor) = (file.input("x", 0, &[2]), file.input("factor", 0, &[2]));
    let yes = file.constant("yes", 6, &[], vec![1]);
    let (y, z) = (file.tensor("y", 0, &[2]), file.tensor("z", 0, &[2]));
    let options = vec![(0, Field::Word(own)), (1, Field::Word(own))];
    file.operator_with(IF, &[yes, x, factor], &[y, z], Some((92, options)));
    file.output(y);
    let e = file.refused();
    assert!(e.contains("more than 32 subgraphs within each other are not supported"), "{e}");
}
