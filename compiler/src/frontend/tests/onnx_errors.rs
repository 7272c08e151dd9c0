//! Errors in ONNX networks name the node, the attribute, and what is supported instead.

use super::*;
use crate::frontend::onnx::testing::{Made, network};

const FLOAT: i32 = 1;

fn take(nodes: &[Made], x: &[i64], constants: &[(&str, &[i64])], opset: i64) -> Result<Graph, String> {
    let file = network(nodes, x, FLOAT, constants, opset);
    onnx::import(&file, "net.onnx", None, Sizes::default()).map_err(|e| e.to_string())
}

#[track_caller]
fn refused(nodes: &[Made], x: &[i64], constants: &[(&str, &[i64])], want: &str) {
    let e = take(nodes, x, constants, 17).unwrap_err();
    assert!(e.contains(want), "{e}");
}

#[test]
fn cycles_and_names_that_nothing_defines_are_named() {
    let cycle: &[Made] =
        &[("Add", &["x", "b"], &["a"], &[]), ("Relu", &["a"], &["b"], &[]), ("Relu", &["b"], &["y"], &[])];
    refused(cycle, &[4], &[], "net.onnx is not a usable model: its nodes form a cycle: `");
    refused(&[("Add", &["x", "w"], &["y"], &[])], &[4], &[], "node `y` (Add): `w` is not defined: no input");
    let twice: &[Made] = &[("Relu", &["x"], &["y"], &[]), ("Abs", &["x"], &["y"], &[])];
    refused(twice, &[4], &[], "two nodes define `y`");
    let pool: Made = ("MaxPool", &["x"], &["d", "places"], &[("kernel_shape", &[1, 1, 1])]);
    let places: &[Made] = &[pool, ("Relu", &["places"], &["y"], &[])];
    refused(
        places,
        &[1, 1, 2, 2, 2],
        &[],
        "`places` is not supported: it is an additional output of node `d` (MaxPool)",
    );
}

#[test]
fn products_of_scalars_are_refused() {
    let scalar: Made = ("ReduceMax", &["x"], &["s"], &[("keepdims", &[0])]);
    let left: &[Made] = &[scalar, ("MatMul", &["s", "x"], &["y"], &[])];
    refused(left, &[4], &[], "node `y` (MatMul): its left operand is a scalar, f32[]; one dimension or more");
    let right: &[Made] = &[scalar, ("MatMul", &["x", "s"], &["y"], &[])];
    refused(right, &[2, 4], &[], "node `y` (MatMul): its right operand is a scalar, f32[]; one dimension or more");
}

#[test]
fn constant_indices_outside_their_dimension_are_refused() {
    let gather: &[Made] = &[("Gather", &["x", "i"], &["y"], &[("axis", &[1])])];
    let outside = "node `y` (Gather): index 3 is out of range for dimension 1 of the data, with 3 elements";
    refused(gather, &[2, 3], &[("i", &[0, 3])], outside);
    refused(gather, &[2, 3], &[("i", &[-4])], "index -4 is out of range for dimension 1 of the data");
    assert!(take(gather, &[2, 3], &[("i", &[-3, 2])], 17).is_ok());
    let elements: &[Made] =
        &[("Unsqueeze", &["i", "a"], &["j"], &[]), ("GatherElements", &["x", "j"], &["y"], &[("axis", &[1])])];
    refused(elements, &[1, 2], &[("i", &[2, 0]), ("a", &[0])], "(GatherElements): index 2 is out of range");
    let tuples: &[Made] = &[("GatherND", &["x", "i"], &["y"], &[])];
    refused(tuples, &[2, 3], &[("i", &[1, 5])], "(GatherND): index 5 is out of range for dimension 1 of the data");
    // By the format's rule, a part that begins or ends outside is cut off.
    let slice: &[Made] = &[("Slice", &["x", "f", "t"], &["y"], &[])];
    let g = take(slice, &[4], &[("f", &[-9]), ("t", &[9])], 17).unwrap();
    assert_eq!(g.ty(g.outputs()[0].1).shape().unwrap(), [4]);
}

#[test]
fn a_size_of_0_is_not_open() {
    let g = take(&[("Relu", &["x"], &["y"], &[])], &[1, 0, 4], &[], 17).unwrap();
    assert_eq!(g.ty(g.outputs()[0].1).shape().unwrap(), [1, 0, 4]);
}

#[test]
fn nodes_may_stand_in_any_order() {
    let g = take(&[("Relu", &["a"], &["y"], &[]), ("Neg", &["x"], &["a"], &[])], &[2], &[], 17).unwrap();
    let y = eval(&g, &[Tensor::vector(vec![1f32, -2.0])]).unwrap();
    assert_eq!(y[0].as_slice::<f32>().unwrap(), [0.0, 2.0]);
}

#[test]
fn nodes_that_need_the_number_of_rows_are_named() {
    let late = "known only when the model has run";
    let sum: &[Made] = &[("NonZero", &["x"], &["p"], &[]), ("ReduceMax", &["p"], &["y"], &[])];
    refused(sum, &[2, 3], &[], "node y (reduce) computes an element from several rows");
    refused(sum, &[2, 3], &[], late);
    let sizes: &[Made] = &[("NonZero", &["x"], &["p"], &[]), ("Shape", &["p"], &["y"], &[])];
    refused(sizes, &[2, 3], &[], "node `y` reads the sizes of a value whose number of rows is");
    let both: &[Made] = &[
        ("NonZero", &["x"], &["p"], &[]),
        ("Neg", &["x"], &["z"], &[]),
        ("NonZero", &["z"], &["q"], &[]),
        ("Add", &["p", "q"], &["y"], &[]),
    ];
    refused(both, &[2, 3], &[], "node y (add) computes an element from several rows");
    // The results of one node have the same rows.
    let same: &[Made] = &[("Unique", &["x"], &["u", "p", "", "k"], &[]), ("Add", &["p", "k"], &["y"], &[])];
    let g = take(same, &[6], &[], 17).unwrap();
    let y = eval(&g, &[Tensor::vector(vec![3f32, 1.0, 3.0, 3.0, 1.0, 2.0])]).unwrap();
    assert_eq!(y[0].as_slice::<i64>().unwrap(), [1 + 2, 5 + 1, 3, 0, 0, 0]);
    assert_eq!(y[1].as_slice::<i64>().unwrap(), [3]);
}

#[test]
fn attributes_types_and_sets_that_are_not_supported_are_named() {
    let relu: &[Made] = &[("Relu", &["x"], &["y"], &[("slope", &[1])])];
    refused(relu, &[4], &[], "node `y` (Relu): its attribute `slope` is not supported; Relu has none");
    let flat: &[Made] = &[("Flatten", &["x"], &["y"], &[("asix", &[1])])];
    refused(flat, &[4], &[], "node `y` (Flatten): its attribute `asix` is not supported; Flatten has axis");
    let norm: &[Made] = &[("BatchNormalization", &["x", "x", "x", "x", "x"], &["y"], &[("training_mode", &[1])])];
    refused(norm, &[4], &[], "its attribute `training_mode` of 1 is not supported; it must be 0");
    let e = take(&[("Relu", &["x"], &["y"], &[])], &[4], &[], 99).unwrap_err();
    assert!(e.contains("its operator set is 99; sets 1 to 27 are supported"), "{e}");
    let cast: &[Made] = &[("Cast", &["x"], &["y"], &[("to", &[14])])];
    refused(
        cast,
        &[4],
        &[],
        "its attribute `to`: element type COMPLEX64 (number 14) is not supported; use integers, floats or BOOL",
    );
    let file = network(&[("Relu", &["x"], &["y"], &[])], &[4], 8, &[], 17);
    let e = onnx::import(&file, "net.onnx", None, Sizes::default()).unwrap_err().to_string();
    assert!(e.contains("input `x`: element type STRING (number 8) is not supported"), "{e}");
    let relu6: &[Made] = &[("Relu6", &["x"], &["y"], &[])];
    refused(relu6, &[4], &[], "net.onnx: unsupported operators: Relu6 (node `y`; similar to Relu); docs/onnx.md");
    let names: Vec<String> = (0..6).map(|i| format!("t{i}")).collect();
    let pairs: Vec<([&str; 1], [&str; 1])> = names.windows(2).map(|w| ([w[0].as_str()], [w[1].as_str()])).collect();
    let mut nodes: Vec<Made> = vec![("Relu", &["x"], &["t0"], &[])];
    nodes.extend(pairs.iter().map(|(i, o)| ("Bernoulli", &i[..], &o[..], &[][..])));
    nodes.push(("Det", &["t5"], &["y"], &[]));
    refused(
        &nodes,
        &[4],
        &[],
        "Bernoulli (nodes `t1`, `t2`, `t3` and 2 more), Det (node `y`; similar to DFT); docs/onnx.md lists the 2",
    );
}

#[test]
fn more_than_32_dimensions_are_refused_wherever_they_come_from() {
    let many = |n: usize| vec![1i64; n];
    let relu: &[Made] = &[("Relu", &["x"], &["y"], &[])];
    let g = take(relu, &many(32), &[], 17).unwrap();
    assert_eq!(g.ty(g.outputs()[0].1).rank(), 32);
    refused(relu, &many(33), &[], "input `x`: 33 dimensions are not supported; the maximum is 32");
    refused(relu, &many(100_000), &[], "input `x`: 100000 dimensions are not supported; the maximum is 32");
    for (op, constant) in [("Reshape", many(33)), ("Expand", many(33)), ("Unsqueeze", (0..32).collect())] {
        let nodes: &[Made] = &[(op, &["x", "c"], &["y"], &[])];
        let want = format!("node `y` ({op}): ");
        let e = take(nodes, &[1], &[("c", &constant)], 17).unwrap_err();
        assert!(e.contains(&want) && e.ends_with("33 dimensions are not supported; the maximum is 32"), "{e}");
    }
    let filled: &[Made] = &[("ConstantOfShape", &["c"], &["k"], &[]), ("Add", &["x", "k"], &["y"], &[])];
    refused(filled, &[1], &[("c", &many(33))], "node `k` (ConstantOfShape): expand: 33 dimensions are not supported");
    // An empty result needs no memory, but has dimensions.
    let none = [many(33), vec![0]].concat();
    refused(filled, &[1], &[("c", &none)], "node `k` (ConstantOfShape): 34 dimensions are not supported");
    let axes: Vec<i64> = (0..100_000).collect();
    let apart: &[Made] = &[("Unsqueeze", &["x", "c"], &["y"], &[])];
    refused(apart, &[1], &[("c", &axes)], "(Unsqueeze): 100001 dimensions are not supported; the maximum is 32");
    // Dimensions that are not repeated need no extra dimension.
    let tile: &[Made] = &[("Tile", &["x", "c"], &["y"], &[])];
    let twice = [many(31), vec![2]].concat();
    let g = take(tile, &many(31), &[("c", &twice[1..])], 17).unwrap();
    assert_eq!(g.ty(g.outputs()[0].1).shape().unwrap()[30], 2);
}

#[test]
fn absurd_sizes_are_refused_without_memory_for_them() {
    refused(&[("Relu", &["x"], &["y"], &[])], &[1 << 40, 1 << 40], &[], "its input `x` is f32[");
    let huge: &[Made] = &[("ConstantOfShape", &["s"], &["c"], &[]), ("Add", &["x", "c"], &["y"], &[])];
    refused(huge, &[4], &[("s", &[1 << 40, 1 << 30])], "node `c` (ConstantOfShape): its result is f32[");
    refused(&[("Expand", &["x", "s"], &["y"], &[])], &[1], &[("s", &[1 << 62, 1 << 62])], "more than 2^31 elements");
    refused(&[("Tile", &["x", "s"], &["y"], &[])], &[4], &[("s", &[1 << 62])], "is too large");
    let corner: &[Made] = &[("Trilu", &["x"], &["y"], &[])];
    refused(
        corner,
        &[1 << 15, 1 << 15],
        &[],
        "needs a table of bool[32768,32768], which is too much for a file of this size",
    );
    // CumSum doubles its reach with each step and needs no table.
    let sums: &[Made] = &[("CumSum", &["x", "s"], &["y"], &[])];
    take(sums, &[1 << 20], &[("s", &[0])], 17).unwrap();
    let pad: &[Made] = &[("Pad", &["x", "s"], &["y"], &[])];
    refused(pad, &[4], &[("s", &[1 << 50, 0])], "its pad of 1125899906842624 is too large");
    let range: &[Made] = &[("Range", &["a", "b", "c"], &["r"], &[]), ("Gather", &["x", "r"], &["y"], &[])];
    let numbers: &[(&str, &[i64])] = &[("a", &[0]), ("b", &[1 << 60]), ("c", &[1])];
    refused(range, &[4], numbers, "a range from 0 to 1152921504606846976 in steps of 1 is not supported");
    // A chain in which each tensor is sixteen times as large as the one before is not folded.
    let names: Vec<String> = (0..8).map(|i| format!("t{i}")).collect();
    let mut nodes: Vec<(&str, Vec<&str>, Vec<&str>)> = vec![("ConstantOfShape", vec!["s"], vec!["t0"])];
    nodes.extend((1..5).map(|i| ("Tile", vec![names[i - 1].as_str(), "r"], vec![names[i].as_str()])));
    nodes.push(("ReduceSum", vec!["t4"], vec!["sum"]));
    nodes.push(("Add", vec!["x", "sum"], vec!["y"]));
    let made: Vec<Made> = nodes.iter().map(|(op, i, o)| (*op, i.as_slice(), o.as_slice(), &[][..])).collect();
    let g = take(&made, &[1], &[("s", &[1 << 12]), ("r", &[16])], 17).unwrap();
    let constants: usize = g.nodes().filter_map(|(_, n)| g.constant(n.output())).map(|c| c.size_bytes()).sum();
    assert!(constants < 65 << 20, "{constants} bytes");
}

#[test]
fn open_sizes_are_given_or_named() {
    let nodes: &[Made] =
        &[("Shape", &["x"], &["s"], &[]), ("ConstantOfShape", &["s"], &["c"], &[]), ("Add", &["x", "c"], &["y"], &[])];
    let file = network(nodes, &[-1, -1], FLOAT, &[], 17);
    let take = |sizes: &Sizes| onnx::import(&file, "net.onnx", None, sizes).map_err(|e| e.to_string());
    let e = take(&Sizes::default()).unwrap_err();
    assert!(
        e.contains("node `s` (Shape): needs the size `s1`, which the model leaves open; give it with --bind s1=SIZE"),
        "{e}"
    );
    let shape = |g: &Graph| g.ty(g.outputs()[0].1).shape().unwrap();
    let by = |symbols: &[(&str, usize)]| Sizes {
        symbols: symbols.iter().map(|&(s, n)| (s.to_string(), n)).collect(),
        ..Sizes::default()
    };
    assert_eq!(shape(&take(&by(&[("s1", 5)])).unwrap()), [1, 5]);
    assert_eq!(shape(&take(&by(&[("s0", 3), ("s1", 5)])).unwrap()), [3, 5]);
    assert_eq!(take(&by(&[("s2", 3)])).unwrap_err(), "net.onnx has no open dimension s2; it has s0, s1");
    let input = Sizes { inputs: [("x".to_string(), vec![2, 7])].into(), ..Sizes::default() };
    assert_eq!(shape(&take(&input).unwrap()), [2, 7]);
    let wrong = Sizes { inputs: [("x".to_string(), vec![2])].into(), ..Sizes::default() };
    assert_eq!(take(&wrong).unwrap_err(), "net.onnx has an input x of f32[s0,s1], which the shape [2] does not suit");
    // Data can hold several runs, so the outermost size is left alone.
    let data = Sizes { data: vec![(None, vec![10, 6]).into()], ..Sizes::default() };
    assert_eq!(shape(&take(&data).unwrap()), [1, 6]);
}

/// Many networks with random changes: none panics.
#[test]
fn damaged_networks_of_many_operators_give_errors() {
    use rand::{Rng, SeedableRng, rngs::SmallRng};
    let folders = ["vit-tiny-mnist", "ppocr-cls", "bert-tiny-random", "onnx-light"];
    let files = ["model.onnx", "model.onnx", "model.onnx", "light_shufflenet.onnx"];
    let seed = tilewright_testing::asked("TILEWRIGHT_SEED").unwrap_or(7);
    println!("seed {seed}; set TILEWRIGHT_SEED for another");
    let mut rng = SmallRng::seed_from_u64(seed);
    for (folder, file) in folders.iter().zip(files) {
        let Some(path) = tilewright_testing::model(folder) else { continue };
        let whole = std::fs::read(path.join(file)).unwrap();
        for _ in 0..40 {
            let mut b = whole.clone();
            for _ in 0..rng.random_range(1..12) {
                let at = rng.random_range(0..b.len());
                b[at] = if rng.random() { rng.random() } else { b[at].wrapping_add(1) };
            }
            let _ = onnx::import(&b, file, None, Sizes::default());
        }
    }
}
