//! Corner cases of single ONNX operators that the format's node tests leave out.

use super::*;
use crate::frontend::onnx::testing::{Made, Operand, Value, in_domain, network, single, with_floats, with_word};
use crate::graph::DType;

const FLOAT: i32 = 1;
const UINT8: i32 = 2;

fn take(file: &[u8]) -> Result<Graph, String> {
    onnx::import(file, "net.onnx", None, Sizes::default()).map_err(|e| e.to_string())
}

#[track_caller]
fn refused(file: &[u8], want: &str) {
    let e = take(file).unwrap_err();
    assert!(e.contains(want), "{e}");
}

fn result(file: &[u8], x: Tensor) -> Tensor {
    eval(&take(file).unwrap(), &[x]).unwrap().remove(0)
}

pub(super) fn floats(t: &Tensor) -> &[f32] {
    t.as_slice::<f32>().unwrap()
}

#[test]
fn whole_numbers_of_64_bits_keep_their_digits() {
    let number = |v: i64| Operand::Constant(Tensor::scalar(v));
    let range = |start: i64, limit: i64, delta: i64| {
        let found = of_one("Range", &[], &[number(start), number(limit), number(delta)], 13);
        found.as_slice::<i64>().unwrap().to_vec()
    };
    let far = 1 << 60;
    assert_eq!(range(far + 1, far + 6, 2), [far + 1, far + 3, far + 5]);
    assert_eq!(range(far, far - 3, -2), [far, far - 2]);
    assert_eq!(range(i64::MAX - 1, i64::MAX, 1), [i64::MAX - 1]);
    assert!(range(5, 5, 1).is_empty() && range(5, 4, 1).is_empty() && range(4, 5, -1).is_empty());
    let x = Operand::Given(Tensor::vector(vec![7i64]));
    let pads = Operand::Constant(Tensor::vector(vec![1i64, 0]));
    let padded = of_one("Pad", &[], &[x.clone(), pads.clone(), number(-5)], 13);
    assert_eq!(padded.as_slice::<i64>().unwrap(), [-5, 7]);
    let file = crate::frontend::onnx::testing::single("Pad", &[], &[x, pads, number(far + 1)], 1, 13);
    let e = onnx::import(&file, "net.onnx", None, Sizes::default()).unwrap_err().to_string();
    assert!(e.contains("a padding value of 1152921504606846977 is not supported; use one of up to 24 bits"), "{e}");
}

#[test]
fn the_best_are_taken_once_each_whatever_they_are() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let file = |k: i64, size: i64, element: i32, largest: i64, outputs: &[&str]| {
        let attributes: &[(&str, &[i64])] = &[("axis", &[-1]), ("largest", &[largest])];
        network(&[("TopK", &["x", "k"], outputs, attributes)], &[size], element, &[("k", &[k])], 17)
    };
    let index = |k, x: Tensor, largest| {
        let element = if x.dtype() == DType::U8 { UINT8 } else { FLOAT };
        let file = file(k, x.len() as i64, element, largest, &["v", "y"]);
        result(&file, x).as_slice::<i64>().unwrap().to_vec()
    };
    let vector = |v: &[f32]| Tensor::vector(v.to_vec());
    assert_eq!(index(2, vector(&[1.0, -inf, -inf]), 1), [0, 1]);
    assert_eq!(index(3, vector(&[-inf, 1.0, -inf]), 1), [1, 0, 2]);
    assert_eq!(index(3, vector(&[inf, inf, 1.0]), 0), [2, 0, 1]);
    assert_eq!(index(4, vector(&[2.0, 3.0, 3.0, 2.0]), 1), [1, 2, 0, 3]);
    assert_eq!(index(3, Tensor::vector(vec![0u8, 7, 0]), 1), [1, 0, 2]);
    assert_eq!(index(3, Tensor::vector(vec![255u8, 7, 255]), 0), [1, 0, 2]);
    let mut all = index(3, vector(&[nan, nan, 1.0]), 1);
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2]);
    let values = result(&file(2, 3, FLOAT, 1, &["y", "i"]), vector(&[1.0, -inf, -inf]));
    assert_eq!(floats(&values), [1.0, -inf]);
}

/// As in ONNX Runtime.
#[test]
fn pads_below_0_cut_before_others_choose() {
    let y = |mode: &str, before: i64, after: i64| {
        let nodes: &[Made] = &[("Pad", &["x", "p"], &["y"], &[])];
        let file = with_word(&network(nodes, &[4], FLOAT, &[("p", &[before, after])], 19), "mode", mode);
        floats(&result(&file, Tensor::vector(vec![0f32, 1.0, 2.0, 3.0]))).to_vec()
    };
    assert_eq!(y("wrap", -1, 3), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    assert_eq!(y("wrap", 5, -2), [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
    assert_eq!(y("wrap", 2, -3), [0.0; 3]);
    assert_eq!(y("wrap", -1, -1), [1.0, 2.0]);
    assert_eq!(y("wrap", 1, 1), [3.0, 0.0, 1.0, 2.0, 3.0, 0.0]);
    assert_eq!(y("edge", -2, 2), [2.0, 3.0, 3.0, 3.0]);
    assert_eq!(y("reflect", -1, 1), [1.0, 2.0, 3.0, 2.0]);
}

#[test]
fn one_hot_has_no_place_for_what_lies_outside() {
    let nodes: &[Made] = &[("OneHot", &["x", "d", "v"], &["y"], &[])];
    let file = network(nodes, &[5], FLOAT, &[("d", &[3]), ("v", &[5, 9])], 17);
    let y = result(&file, Tensor::vector(vec![0f32, -1.0, 3.0, -4.0, 7.0]));
    assert_eq!(y.as_slice::<i64>().unwrap(), [9, 5, 5, 5, 5, 9, 5, 5, 5, 5, 5, 5, 5, 5, 5]);
}

/// The result of one node.
pub(super) fn of_one(op: &str, attributes: &[(&str, Value)], operands: &[Operand], opset: i64) -> Tensor {
    let given: Vec<Tensor> =
        operands.iter().filter_map(|o| if let Operand::Given(t) = o { Some(t.clone()) } else { None }).collect();
    eval(&take(&single(op, attributes, operands, 1, opset)).unwrap(), &given).unwrap().remove(0)
}

#[test]
fn sums_of_integers_are_exact() {
    let big = 1i64 << 24;
    for (exclusive, reverse) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for size in [1, 2, 3, 5, 8] {
            let x: Vec<i64> = (0..2 * size).map(|i| if i % 3 == 0 { big } else { i as i64 - 1 }).collect();
            let sum = |row: usize, at: usize| -> i64 {
                let inside = |k: usize| match (exclusive, reverse) {
                    (0, 0) => k <= at,
                    (1, 0) => k < at,
                    (0, _) => k >= at,
                    _ => k > at,
                };
                (0..size).filter(|k| inside(*k)).map(|k| x[row * size + k]).sum()
            };
            let attributes = [("exclusive", Value::Int(exclusive)), ("reverse", Value::Int(reverse))];
            let axis = || Operand::Constant(Tensor::scalar(1i64));
            let wide = Operand::Given(Tensor::new(&[2, size], x.clone()).unwrap());
            let found = of_one("CumSum", &attributes, &[wide, axis()], 14);
            assert_eq!(found, Tensor::from_fn(&[2, size], |i| sum(i / size, i % size)), "{exclusive} {reverse} {size}");
            let narrow = Operand::Given(Tensor::from_fn(&[2, size], |i| x[i] as i32));
            let found = of_one("CumSum", &attributes, &[narrow, axis()], 14);
            assert_eq!(found, Tensor::from_fn(&[2, size], |i| sum(i / size, i % size) as i32));
        }
    }
}

#[test]
fn sums_before_an_infinity_are_finite() {
    let x = Operand::Given(Tensor::vector(vec![1f32, 2.0, f32::INFINITY, 4.0]));
    let sums = of_one("CumSum", &[], &[x, Operand::Constant(Tensor::scalar(0i64))], 14);
    assert_eq!(sums, Tensor::vector(vec![1f32, 3.0, f32::INFINITY, f32::INFINITY]));
}

#[test]
fn padding_to_the_same_size_adds_nothing_between_small_kernels() {
    let image = |values: [f32; 3]| Operand::Given(Tensor::new(&[1, 1, 3], values.to_vec()).unwrap());
    let weight = Operand::Constant(Tensor::new(&[1, 1, 1], vec![2f32]).unwrap());
    let attributes = [("auto_pad", Value::Word("SAME_UPPER")), ("strides", Value::Ints(&[2]))];
    let found = of_one("ConvTranspose", &attributes, &[image([1.0, 2.0, 3.0]), weight], 17);
    assert_eq!(found, Tensor::new(&[1, 1, 5], vec![2f32, 0.0, 4.0, 0.0, 6.0]).unwrap());
}

#[test]
fn what_lies_outside_a_crop_of_bytes_is_the_value_given() {
    let x = Tensor::new(&[1, 1, 2, 2], vec![10u8, 200, 30, 40]).unwrap();
    let roi = Tensor::vector(vec![0f32, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0]);
    let mode = ("coordinate_transformation_mode", Value::Word("tf_crop_and_resize"));
    let attributes = [mode, ("mode", Value::Word("nearest")), ("extrapolation_value", Value::Float(7.0))];
    let sizes = Tensor::vector(vec![1i64, 1, 2, 3]);
    let operands = [Operand::Given(x), Operand::Constant(roi), Operand::Missing, Operand::Constant(sizes)];
    assert_eq!(of_one("Resize", &attributes, &operands, 13).as_slice::<u8>().unwrap(), [10, 200, 7, 30, 40, 7]);
}

#[test]
fn powers_of_integers_are_exact() {
    let pow =
        |x: Vec<i32>, e: Tensor| of_one("Pow", &[], &[Operand::Given(Tensor::vector(x)), Operand::Constant(e)], 15);
    let number = |e: i64| Tensor::scalar(e);
    assert_eq!(pow(vec![46_340, -5001, 0], number(2)), Tensor::vector(vec![46_340 * 46_340, 5001 * 5001, 0]));
    assert_eq!(
        pow(vec![1201, -1201, 1], number(3)),
        Tensor::vector(vec![1201 * 1201 * 1201, -(1201 * 1201 * 1201), 1])
    );
    assert_eq!(pow(vec![19, -19, 2], number(7)), Tensor::vector(vec![893_871_739, -893_871_739, 128]));
    assert_eq!(pow(vec![7, -7], number(1)), Tensor::vector(vec![7, -7]));
    assert_eq!(pow(vec![7, -7], number(0)), Tensor::vector(vec![1, 1]));
    // The fraction is cut off.
    assert_eq!(pow(vec![3, 8, 15], Tensor::scalar(0.5f32)), Tensor::vector(vec![1, 2, 3]));
    // One exponent per element.
    assert_eq!(pow(vec![3, 2, 5], Tensor::vector(vec![2i64, 10, 3])), Tensor::vector(vec![9, 1024, 125]));
    assert_eq!(pow(vec![3], Tensor::new(&[1, 1], vec![2i64]).unwrap()).shape(), [1, 1]);
}

#[test]
fn resizing_copies_where_all_sizes_stay_and_else_goes_by_the_scales() {
    let row = [10f32, 20.0, 30.0];
    let file = network(&[("Upsample", &["x"], &["y"], &[])], &[3], FLOAT, &[], 7);
    let file = with_floats(&file, &[("scales", &[1.2])], &[]);
    for mode in ["nearest", "linear"] {
        assert_eq!(floats(&result(&with_word(&file, "mode", mode), Tensor::vector(row.to_vec()))), row, "{mode}");
    }
    let file = network(&[("Upsample", &["x"], &["y"], &[])], &[1, 3], FLOAT, &[], 7);
    let file = with_floats(&file, &[("scales", &[2.0, 1.2])], &[]);
    let x = Tensor::new(&[1, 3], row.to_vec()).unwrap();
    assert_eq!(floats(&result(&file, x.clone())), [10.0, 10.0, 20.0, 10.0, 10.0, 20.0]);
    let y = result(&with_word(&file, "mode", "linear"), x);
    let want = [10.0, 10.0 + 10.0 / 1.2, 10.0 + 20.0 / 1.2];
    assert!(floats(&y).iter().zip(want.repeat(2)).all(|(a, b): (&f32, f32)| (a - b).abs() < 1e-4), "{y:?}");
}

#[test]
fn sizes_and_regions_that_cannot_be_are_refused() {
    let nodes: &[Made] = &[("Resize", &["x", "", "", "s"], &["y"], &[])];
    let file = network(nodes, &[1, 64], FLOAT, &[("s", &[1 << 20, 1])], 18);
    let file = with_word(&file, "keep_aspect_ratio_policy", "not_smaller");
    refused(&file, "node `y` (Resize): its size 67108864 is not supported; the maximum is 1048576");
    for mode in ["linear", "cubic", "nearest"] {
        let nodes: &[Made] = &[("Resize", &["x", "r", "", "s"], &["y"], &[("exclude_outside", &[1])])];
        let file = network(nodes, &[3], FLOAT, &[("s", &[4])], 13);
        let file = with_word(&with_word(&file, "mode", mode), "coordinate_transformation_mode", "tf_crop_and_resize");
        // Everything is outside, where the value is 0.
        for region in [[1e30, 2e30], [-1e30, -2e30], [f32::MAX, f32::MAX]] {
            let y = result(&with_floats(&file, &[], &[("r", &region)]), Tensor::vector(vec![1f32, 2.0, 3.0]));
            assert_eq!(floats(&y), [0.0; 4], "{mode}");
        }
        for region in [[0.0, f32::INFINITY], [f32::NAN, 1.0]] {
            refused(
                &with_floats(&file, &[], &[("r", &region)]),
                "(Resize): its scale or its roi is not supported: element ",
            );
        }
    }
}

#[test]
fn attributes_of_another_type_are_named() {
    let one = |op: &str, name: &str, value: &[i64]| {
        let attributes: &[(&str, &[i64])] = &[(name, value)];
        network(&[(op, &["x"], &["y"], attributes)], &[2, 2], FLOAT, &[], 17)
    };
    refused(
        &one("LeakyRelu", "alpha", &[1]),
        "node `y` (LeakyRelu): its attribute `alpha` is of type INT; it must be of type FLOAT",
    );
    refused(&one("Transpose", "perm", &[1]), "its attribute `perm` is of type INT; it must be of type INTS");
    refused(&one("Flatten", "axis", &[1, 0]), "its attribute `axis` is of type INTS; it must be of type INT");
    refused(&one("Gelu", "approximate", &[0]), "its attribute `approximate` is of type INT; it must be of type STRING");
    refused(&one("ConstantOfShape", "value", &[1]), "its attribute `value` is of type INT; it must be of type TENSOR");
    let up = network(&[("Upsample", &["x"], &["y"], &[("scales", &[1, 2])])], &[2, 2], FLOAT, &[], 7);
    refused(&up, "its attribute `scales` is of type INTS; it must be of type FLOATS");
}

#[test]
fn softmax_of_bytes_sums_as_its_set_says() {
    let made = |attributes: &[(&str, &[i64])]| {
        let nodes: &[Made] = &[("QLinearSoftmax", &["x", "s", "", "t"], &["y"], attributes)];
        let file = network(nodes, &[1, 2, 2], UINT8, &[], 17);
        with_floats(&in_domain(&file, "com.microsoft"), &[], &[("s", &[0.1]), ("t", &[1.0 / 256.0])])
    };
    let x = || Tensor::from_fn(&[1, 2, 2], |_| 3u8);
    let bytes = |t: &Tensor| t.as_slice::<u8>().unwrap().to_vec();
    assert_eq!(bytes(&result(&made(&[("axis", &[1]), ("opset", &[12])]), x())), [64; 4]);
    assert_eq!(bytes(&result(&made(&[("axis", &[1]), ("opset", &[13])]), x())), [128; 4]);
    assert_eq!(bytes(&result(&made(&[("axis", &[-1]), ("opset", &[12])]), x())), [128; 4]);
    refused(&made(&[("axis", &[1])]), "it has no `opset`");
}

#[test]
fn what_an_import_makes_is_bounded_by_the_file() {
    // 32 MB each, from a few bytes in the file.
    let names: Vec<String> = (0..40).map(|i| format!("r{i}")).collect();
    let outputs: Vec<[&str; 1]> = names.iter().map(|n| [n.as_str()]).collect();
    let mut nodes: Vec<Made> = outputs.iter().map(|o| ("Range", &["a", "b", "c"][..], &o[..], &[][..])).collect();
    nodes.push(("Relu", &["x"], &["y"], &[]));
    let numbers: &[(&str, &[i64])] = &[("a", &[0]), ("b", &[1 << 22]), ("c", &[1])];
    let file = network(&nodes, &[2], FLOAT, numbers, 17);
    refused(&file, "node `r2` (Range): needs a table of i64[4194304], which is too much for a file of this size");
    // Several names of one constant use its memory once.
    let names: Vec<String> = (0..200).map(|i| format!("c{i}")).collect();
    let pairs: Vec<([&str; 1], [&str; 1])> = names.windows(2).map(|w| ([w[0].as_str()], [w[1].as_str()])).collect();
    let mut nodes: Vec<Made> = pairs.iter().map(|(i, o)| ("Identity", &i[..], &o[..], &[][..])).collect();
    nodes.push(("Gather", &["x", "c199"], &["y"], &[]));
    let g = take(&network(&nodes, &[2], FLOAT, &[("c0", &[0; 1000])], 17)).unwrap();
    let constants: usize = g.nodes().filter_map(|(_, n)| g.constant(n.output())).map(|c| c.size_bytes()).sum();
    assert_eq!(constants, 8000);
    // A line that gets longer and shorter by turns needs an index per element each time.
    let names: Vec<String> = (0..20).map(|i| format!("t{i}")).collect();
    let sizes = ["s", "h"].into_iter().cycle();
    let pairs: Vec<([&str; 4], [&str; 1])> =
        names.windows(2).zip(sizes).map(|(w, s)| ([w[0].as_str(), "", "", s], [w[1].as_str()])).collect();
    let mut nodes: Vec<Made> = vec![("Relu", &["x"], &["t0"], &[])];
    nodes.extend(pairs.iter().map(|(i, o)| ("Resize", &i[..], &o[..], &[][..])));
    nodes.push(("Relu", &["t19"], &["y"], &[]));
    let file = network(&nodes, &[1 << 19], FLOAT, &[("s", &[1 << 20]), ("h", &[1 << 19])], 13);
    refused(&file, "(Resize): needs a table of i64[");
}

#[test]
fn two_constants_of_one_name_are_refused() {
    let file = network(&[("Gather", &["x", "c"], &["y"], &[])], &[4], FLOAT, &[("c", &[0]), ("c", &[1])], 17);
    refused(&file, "net.onnx is not a usable model: two constants have the name `c`");
}

#[test]
fn blocks_beyond_all_numbers_are_refused() {
    let numbers: &[(&str, &[i64])] = &[("from", &[0, 0]), ("to", &[0, 0]), ("axes", &[2, 3])];
    let slice: Made = ("Slice", &["x", "from", "to", "axes"], &["e"], &[]);
    let deep: Made = ("SpaceToDepth", &["e"], &["y"], &[("blocksize", &[1 << 40])]);
    refused(&network(&[slice, deep], &[1, 8, 2, 2], FLOAT, numbers, 17), "(SpaceToDepth): its block is too large");
    let numbers: &[(&str, &[i64])] = &[("from", &[0]), ("to", &[0]), ("axes", &[1])];
    let high: Made = ("DepthToSpace", &["e"], &["y"], &[("blocksize", &[1 << 31])]);
    let file = network(&[slice, high], &[1, 8, 1 << 10, 1 << 10], FLOAT, numbers, 17);
    refused(
        &file,
        "(DepthToSpace): its result is f32[1,2147483648,2147483648,0,1024,1024], which is more than 2^31 elements",
    );
    let nodes: &[Made] =
        &[("ConstantOfShape", &["s"], &["c"], &[]), ("Concat", &["x", "c"], &["y"], &[("axis", &[0])])];
    let file = network(nodes, &[4], FLOAT, &[("s", &[0, 1 << 40, 1 << 40])], 17);
    refused(&file, "(ConstantOfShape): its result is f32[0,1099511627776,1099511627776], which is more than");
}

#[test]
fn scales_of_quantized_products_can_be_inputs() {
    let (bytes, one) =
        (|v: &[i8], shape: &[usize]| Tensor::new(shape, v.to_vec()).unwrap(), |x: f32| Tensor::scalar(x));
    let operands = [
        bytes(&[1, 2], &[1, 2]),
        one(0.5),
        Tensor::scalar(1i8),
        bytes(&[3, 4], &[2, 1]),
        one(0.25),
        Tensor::scalar(0i8),
        one(0.125),
        Tensor::scalar(-2i8),
    ];
    // (0, 0.5) times (0.75, 1) is 0.5, which is 4 steps from the zero point.
    let y = of_one("QLinearMatMul", &[], &operands.map(Operand::Given), 21);
    assert_eq!(y, bytes(&[2], &[1, 1]));
}
