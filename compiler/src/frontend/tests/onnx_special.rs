//! NaN, infinities and zeros of both signs in ONNX operators: as in ONNX Runtime, where it has one answer.

use super::onnx_operators::{floats, of_one};
use super::*;
use crate::frontend::onnx::testing::{Operand, Value};

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

fn given(v: &[f32]) -> Operand {
    Operand::Given(Tensor::vector(v.to_vec()))
}

fn constant(v: &[f32]) -> Operand {
    Operand::Constant(Tensor::vector(v.to_vec()))
}

/// Checks a node's result. Numbers must match in sign too, including zeros.
#[track_caller]
fn check(op: &str, attributes: &[(&str, Value)], operands: &[Operand], want: &[f32]) {
    let y = of_one(op, attributes, operands, 17);
    let same = |(x, y): (&f32, &f32)| x.is_nan() && y.is_nan() || x.to_bits() == y.to_bits();
    assert!(floats(&y).len() == want.len() && floats(&y).iter().zip(want).all(same), "{op}: {y:?}, wanted {want:?}");
}

#[test]
fn a_nan_stays_one_in_extremes() {
    let (a, b) = (given(&[NAN, 1.0, NAN, -2.0, -INF]), given(&[7.0, NAN, NAN, 4.0, INF]));
    check("Max", &[], &[a.clone(), b.clone()], &[NAN, NAN, NAN, 4.0, INF]);
    check("Min", &[], &[a.clone(), b.clone()], &[NAN, NAN, NAN, -2.0, -INF]);
    check("Max", &[], &[a, b, constant(&[9.0])], &[NAN, NAN, NAN, 9.0, INF]);
    check("Sign", &[], &[given(&[NAN, -0.0, INF, -INF])], &[NAN, 0.0, 1.0, -1.0]);
    for at in 0..4 {
        let mut row = [3.0, -INF, INF, 2.0];
        row[at] = NAN;
        for op in ["ReduceMax", "ReduceMin"] {
            check(op, &[("axes", Value::Ints(&[0]))], &[given(&row)], &[NAN]);
        }
        let image = Operand::Given(Tensor::new(&[1, 1, 4], row.to_vec()).unwrap());
        let mut want = [3.0, 3.0, INF, INF, 2.0];
        (want[at], want[at + 1]) = (NAN, NAN);
        let window: &[(&str, Value)] = &[("kernel_shape", Value::Ints(&[2])), ("pads", Value::Ints(&[1, 1]))];
        let without = |v: f32, i: usize| if row[i].is_nan() { v } else { v.max(row[i]) };
        for (o, w) in want.iter_mut().enumerate().filter(|(_, w)| !w.is_nan()) {
            *w = (o.saturating_sub(1)..=o.min(3)).fold(-INF, without);
        }
        check("MaxPool", window, &[image], &want);
        for (op, last) in [("ArgMax", 0), ("ArgMin", 0), ("ArgMax", 1), ("ArgMin", 1)] {
            let place = of_one(op, &[("select_last_index", Value::Int(last))], &[given(&row)], 13);
            assert_eq!(place.as_slice::<i64>().unwrap(), [at as i64], "{op} of {row:?}");
        }
    }
}

#[test]
fn a_nan_is_greater_than_every_number_for_topk() {
    let x = [1.0, NAN, INF, -INF, NAN, INF];
    for (largest, want) in [(1, [1, 4, 2, 5, 0, 3]), (0, [3, 0, 2, 5, 1, 4])] {
        for k in 1..=6 {
            let file = crate::frontend::onnx::testing::single(
                "TopK",
                &[("largest", Value::Int(largest))],
                &[given(&x), Operand::Constant(Tensor::vector(vec![k as i64]))],
                2,
                17,
            );
            let g = onnx::import(&file, "net.onnx", None, Sizes::default()).unwrap();
            let found = eval(&g, &[Tensor::vector(x.to_vec())]).unwrap();
            assert_eq!(found[1].as_slice::<i64>().unwrap(), &want[..k], "{k} of the {largest}");
        }
    }
}

#[test]
fn a_bound_that_is_nan_bounds_nothing() {
    let x = [0.5, -3.0, 4.5, NAN, INF, -INF];
    for (lo, hi) in [(NAN, 3.0), (0.0, NAN), (NAN, NAN), (-1.0, 2.0), (2.0, 1.0)] {
        let bounded = |x: f32| {
            let above = if x < lo { lo } else { x };
            if above > hi { hi } else { above }
        };
        let want = x.map(bounded);
        let scalar = |v: f32| Tensor::scalar(v);
        check("Clip", &[], &[given(&x), Operand::Constant(scalar(lo)), Operand::Constant(scalar(hi))], &want);
        check("Clip", &[], &[given(&x), Operand::Given(scalar(lo)), Operand::Given(scalar(hi))], &want);
        check("Clip", &[], &[given(&x), Operand::Given(scalar(lo)), Operand::Constant(scalar(hi))], &want);
        let found = of_one("Clip", &[("min", Value::Float(lo)), ("max", Value::Float(hi))], &[given(&x)], 6);
        assert!(
            floats(&found).iter().zip(want).all(|(f, w)| *f == w || f.is_nan() && w.is_nan()),
            "{lo} {hi}: {found:?}"
        );
    }
}

#[test]
fn a_bound_left_out_is_the_end_of_the_finite_numbers() {
    let x = [-INF, INF, NAN, 1.0, -1.0];
    let (most, least) = (f32::MAX, f32::MIN);
    for bound in [Operand::Constant(Tensor::scalar(0f32)), Operand::Given(Tensor::scalar(0f32))] {
        check("Clip", &[], &[given(&x), bound.clone()], &[0.0, most, NAN, 1.0, 0.0]);
        check("Clip", &[], &[given(&x), Operand::Missing, bound], &[least, 0.0, NAN, 0.0, -1.0]);
    }
    assert_eq!(floats(&of_one("Clip", &[("min", Value::Float(0.0))], &[given(&x[..2])], 6)), [0.0, most]);
}

#[test]
fn slopes_count_below_zero_alone() {
    let x = [NAN, INF, -INF, -0.0, 0.0, 2.0, -2.0];
    for (slope, want) in [
        (0.0, [NAN, INF, NAN, -0.0, 0.0, 2.0, -0.0]),
        (NAN, [NAN, INF, NAN, -0.0, 0.0, 2.0, NAN]),
        (INF, [NAN, INF, -INF, -0.0, 0.0, 2.0, -INF]),
        (0.5, [NAN, INF, -INF, -0.0, 0.0, 2.0, -1.0]),
    ] {
        check("PRelu", &[], &[given(&x), given(&[slope])], &want);
        if slope != 0.0 {
            check("PRelu", &[], &[given(&x), constant(&[slope])], &want);
        }
    }
}

#[test]
fn infinities_stay_in_sums_of_exponentials_and_roots() {
    let axes: &[(&str, Value)] = &[("axes", Value::Ints(&[0]))];
    for (x, want) in
        [([1.0, INF], INF), ([-INF, -INF], -INF), ([INF, -INF], INF), ([NAN, INF], NAN), ([-INF, 0.0], 0.0)]
    {
        check("ReduceLogSumExp", axes, &[given(&x)], &[want]);
    }
    check("Pow", &[], &[given(&[-INF, -0.0, 4.0, -4.0, INF, NAN]), constant(&[0.5])], &[INF, 0.0, 2.0, NAN, INF, NAN]);
}

#[test]
fn what_a_factor_of_zero_or_an_empty_norm_leaves_out_is_no_nan() {
    let matrix = |rows: usize, v: &[f32]| Tensor::new(&[rows, v.len() / rows], v.to_vec()).unwrap();
    let (a, b) = (Operand::Given(matrix(2, &[1.0, 2.0])), Operand::Constant(matrix(1, &[3.0, -4.0])));
    for c in [given(&[NAN, INF]), constant(&[NAN, INF])] {
        check("Gemm", &[("beta", Value::Float(0.0))], &[a.clone(), b.clone(), c], &[3.0, -4.0, 6.0, -8.0]);
    }
    for p in [1, 2] {
        let attributes: &[(&str, Value)] = &[("axis", Value::Int(1)), ("p", Value::Int(p))];
        let x = matrix(4, &[0.0, -0.0, -3.0, 0.0, NAN, 0.0, -INF, 2.0]);
        check("LpNormalization", attributes, &[Operand::Given(x)], &[0.0, 0.0, -1.0, 0.0, NAN, NAN, NAN, 0.0]);
    }
}

#[test]
fn padding_times_an_infinite_weight_is_nan() {
    let x = Operand::Given(Tensor::new(&[1, 1, 3], vec![1f32, 2.0, 3.0]).unwrap());
    let w = Operand::Constant(Tensor::new(&[1, 1, 3], vec![INF, 1.0, 1.0]).unwrap());
    check("Conv", &[("pads", Value::Ints(&[1, 1]))], &[x, w], &[NAN, INF, INF]);
}
