//! 8-bit operators whose results depend on how a factor is computed from scales and how products are rounded. The
//! expected values are from the reference kernels; `make check-tflite` compares all of them.

use super::*;
use tilewright_testing::flat::{self, Field, Table};

/// Scales and the zero point of a tensor.
type Scales<'a> = (&'a [f32], i64);

/// An operator on int8 tensors.
struct Case<'a> {
    code: i32,
    options: Table,
    data: (Tensor, Scales<'a>),
    /// Constant operands, as int8 or int32.
    constants: &'a [(Tensor, Scales<'a>)],
    shape: &'a [usize],
    result: Scales<'a>,
}

impl Case<'_> {
    fn import(&self) -> Result<Graph, ImportError> {
        let tensor = |name: &str, shape: &[usize], (scales, zero): Scales, buffer: usize, ty: i8| {
            let quantization = vec![
                (2, Field::Words(scales.iter().map(|s| s.to_bits() as i32).collect())),
                (3, Field::Longs(vec![zero; scales.len()])),
            ];
            vec![
                (0, Field::Words(shape.iter().map(|&d| d as i32).collect())),
                (1, Field::Byte(ty)),
                (2, Field::Word(buffer as i32)),
                (3, Field::text(name)),
                (4, Field::Table(quantization)),
            ]
        };
        let mut tensors = vec![tensor("x", self.data.0.shape(), self.data.1, 0, INT8)];
        let mut buffers = vec![Vec::new()];
        for (value, scales) in self.constants {
            let ty = if value.dtype() == crate::graph::DType::I32 { INT32 } else { INT8 };
            tensors.push(tensor("c", value.shape(), *scales, buffers.len(), ty));
            buffers.push(vec![(0, Field::Bytes(value.to_bytes()))]);
        }
        let last = tensors.len() as i32;
        tensors.push(tensor("y", self.shape, self.result, 0, INT8));
        let operator = vec![
            (1, Field::Words((0..last).collect())),
            (2, Field::Words(vec![last])),
            (4, Field::Table(self.options.clone())),
        ];
        let subgraph = vec![
            (0, Field::Tables(tensors)),
            (1, Field::Words(vec![0])),
            (2, Field::Words(vec![last])),
            (3, Field::Tables(vec![operator])),
        ];
        let model = vec![
            (1, Field::Tables(vec![vec![(3, Field::Word(self.code))]])),
            (2, Field::Tables(vec![subgraph])),
            (4, Field::Tables(buffers)),
        ];
        tflite::import(&flat::file(&model, b"TFL3"), "net.tflite")
    }

    fn run(&self) -> Vec<i32> {
        let found = eval(&self.import().unwrap(), std::slice::from_ref(&self.data.0)).unwrap();
        found[0].as_slice::<i8>().unwrap().iter().map(|&v| i32::from(v)).collect()
    }
}

const INT32: i8 = 2;
const INT8: i8 = 9;

const ADD: i32 = 0;
const CONV_2D: i32 = 3;
const FULLY_CONNECTED: i32 = 9;
const RELU: i32 = 19;
const LEAKY_RELU: i32 = 98;
const QUANTIZE: i32 = 114;
const HARD_SWISH: i32 = 117;
const GELU: i32 = 150;

fn all() -> Tensor {
    Tensor::from_fn(&[256], |i| (i as i32 - 128) as i8)
}

/// An element-wise function of all bytes, from one scale and zero point to another.
fn unary(code: i32, options: Table, from: (f32, i64), to: (f32, i64)) -> Vec<i32> {
    let (data, result) = ((all(), (&[from.0][..], from.1)), (&[to.0][..], to.1));
    Case { code, options, data, constants: &[], shape: &[256], result }.run()
}

fn want(f: impl Fn(i32) -> i32) -> Vec<i32> {
    (-128..128).map(|x| f(x).clamp(-128, 127)).collect()
}

fn alpha(slope: f32) -> Table {
    vec![(0, Field::Word(slope.to_bits() as i32))]
}

#[test]
fn quotients_of_scales_are_of_single_precision() {
    // 1.5 in single precision, but slightly less in double precision, so ties go the other way.
    let half_up = |x: i32| (3 * x + 1).div_euclid(2);
    assert_eq!(unary(RELU, vec![], (0.003, 0), (0.002, 0)), want(|x| half_up(x).max(0)));
    assert_eq!(unary(RELU, vec![], (0.003, 5), (0.002, -20)), want(|x| half_up(x - 5).max(0) - 20));
    // In QUANTIZE's double precision it is less, so no product is a tie.
    assert_eq!(unary(QUANTIZE, vec![], (0.003, 0), (0.002, 0)), want(|x| 3 * x / 2));
}

#[test]
fn slopes_below_0_change_the_sign_of_what_is_rounded() {
    let below = |x: i32, by: fn(i32) -> i32| if x < 0 { by(x) } else { x };
    assert_eq!(unary(LEAKY_RELU, alpha(-0.5), (0.05, 0), (0.05, 0)), want(|x| below(x, |x| -((x + 1) >> 1))));
    assert_eq!(unary(LEAKY_RELU, alpha(0.5), (0.05, 0), (0.05, 0)), want(|x| below(x, |x| (x + 1) >> 1)));
    assert_eq!(unary(LEAKY_RELU, alpha(-1.0), (0.05, 3), (0.05, 3)), want(|x| below(x - 3, |x| -x) + 3));
}

#[test]
fn factors_past_2_to_the_31_saturate() {
    let sign = |x: i32| x.signum() * 1000;
    for to in [1e-6, 2f32.powi(-28), 1e-12] {
        let from = (1e4, 7);
        assert_eq!(unary(QUANTIZE, vec![], from, (to, -3)), want(|x| sign(x - 7) - 3));
        assert_eq!(unary(RELU, vec![], from, (to, -3)), want(|x| sign(x - 7).max(0) - 3));
        assert_eq!(unary(LEAKY_RELU, alpha(-2.0), from, (to, -3)), want(|x| sign((x - 7).abs()) - 3));
    }
    for to in [1e14, 1e30] {
        assert_eq!(unary(QUANTIZE, vec![], (1e4, 7), (to, -3)), want(|_| -3));
    }
}

#[test]
fn tables_equal_the_kernels_at_their_edges() {
    // 5.35 / 0.1 is 53.5, except for what the kernel loses in single precision.
    assert_eq!(unary(GELU, vec![], (0.05, 0), (0.1, 0))[107 + 128], 53);
    // Shifts beyond the kernel's 16 bits round 0 up.
    assert_eq!(unary(HARD_SWISH, vec![], (1e-4, -128), (10.0, -128)), vec![-127; 256]);
}

/// A fully connected layer with one scale, or one per row of weights, compared with a factor in double precision that
/// is rounded away from zero. True if no multipliers reproduce it.
fn dense(weights: &Tensor, scales: &[f32], zero: i64) -> bool {
    let &[rows, columns] = weights.shape() else { panic!() };
    let data = Tensor::from_fn(&[256, columns], |i| (i / columns) as i32 as u8 as i8 ^ (i % columns % 3 == 2) as i8);
    let (x, w) = (data.as_slice::<i8>().unwrap(), weights.as_slice::<i8>().unwrap());
    let expected = (0..256 * rows).map(|i| {
        let (r, c) = (i / rows, i % rows);
        let products =
            (0..columns).map(|k| (i64::from(x[r * columns + k]) + 1) * (i64::from(w[c * columns + k]) - zero));
        let factor = 0.25 * f64::from(scales[c % scales.len()]) / f64::from(0.125f32);
        ((products.sum::<i64>() as f64 * factor).round() as i32).saturating_add(-9).clamp(-128, 127)
    });
    let case = Case {
        code: FULLY_CONNECTED,
        options: vec![],
        data: (data.clone(), (&[0.25], -1)),
        constants: &[(weights.clone(), (scales, zero))],
        shape: &[256, rows],
        result: (&[0.125], -9),
    };
    assert_eq!(case.run(), expected.collect::<Vec<_>>(), "{scales:?}");
    let graph = case.import().unwrap();
    graph.nodes().any(|(_, n)| matches!(n.op, crate::graph::Op::Reduce(_)))
}

#[test]
fn fully_connected_rounds_once_in_double_precision() {
    let one = Tensor::from_fn(&[1, 1], |_| 1i8);
    for scale in [0.25, 0.125, 3.0 / 16.0, 0.1, 0.35, 0.5, 0.75, 0.8, 300.0, 1e12, 1e-12] {
        assert!(!dense(&one, &[scale], 0));
    }
    let rows = Tensor::from_fn(&[4, 8], |i| (i as i32 * 37 % 23 - 11) as i8);
    assert!(!dense(&rows, &[1.0 / 64.0], 3));
    assert!(!dense(&rows, &[1.0 / 64.0, 1.0 / 128.0, 0.003, 0.01], 0));
    // If one channel's factor is 1 or more, the others are computed without their shift.
    assert!(!dense(&rows, &[1.0 / 64.0, 0.75, 0.003, 0.01], 0));
    let wide = Tensor::from_fn(&[2, 8], |i| if i % 2 == 0 { 127i8 } else { -128 + i as i8 });
    // Here 31 fractional bits are too few for the second channel.
    assert!(dense(&wide, &[0.5, 0.35 * 2f32.powi(-16)], 0));
}

#[test]
fn weights_that_are_no_bytes_are_refused() {
    let weights = Tensor::from_fn(&[1, 1], |_| 1i32);
    let case = Case {
        code: FULLY_CONNECTED,
        options: vec![],
        data: (Tensor::from_fn(&[1, 1], |_| 1i8), (&[0.25], 0)),
        constants: &[(weights, (&[0.25], 0))],
        shape: &[1, 1],
        result: (&[0.125], 0),
    };
    let found = case.import().unwrap_err().to_string();
    assert!(found.contains("tensor `c` has weights of type i32; with 8-bit data they must be i8"), "{found}");
}

#[test]
fn what_passes_32_bits_is_refused() {
    let weights = Tensor::from_fn(&[1, 1, 1, 400], |_| 127i8);
    let convolution = |to: f32| {
        Case {
            code: CONV_2D,
            options: vec![(0, Field::Byte(1)), (1, Field::Word(1)), (2, Field::Word(1))],
            data: (Tensor::from_fn(&[1, 1, 1, 400], |_| 1i8), (&[1.0], 0)),
            constants: &[(weights.clone(), (&[1.0], 0))],
            shape: &[1, 1, 1, 1],
            result: (&[to], 0),
        }
        .import()
    };
    let message = |r: Result<Graph, ImportError>| r.unwrap_err().to_string();
    let found = message(convolution(1e-6));
    assert!(found.contains("its scales are too far apart: sums up to 6502400 times"), "{found}");
    assert!(convolution(0.01).is_ok());
    let sum = |to: f32| {
        Case {
            code: ADD,
            options: vec![],
            data: (all(), (&[1.0], 0)),
            constants: &[(all(), (&[0.5], 0))],
            shape: &[256],
            result: (&[to], 0),
        }
        .import()
    };
    let found = message(sum(1e-6));
    assert!(found.contains("its result's scale 0.000001 is too small for its operands' scale 1"), "{found}");
    assert!(sum(1e-5).is_ok());
}
