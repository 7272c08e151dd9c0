//! Operators between a product and its quantization.

use super::qdq::Build;
use super::*;
use crate::graph::Op;
use Then::{AtLeast, AtMost, From, Function, Held, Move, Over, Plus, Pool, Slopes, Times};

const CHANNELS: usize = 4;

/// An operator of a chain. Vectors have one value, or one per channel.
#[derive(Debug, Clone)]
enum Then {
    Plus(Vec<f32>),
    Times(Vec<f32>),
    Over(Vec<f32>),
    /// A constant minus the results.
    From(Vec<f32>),
    AtLeast(Vec<f32>),
    AtMost(Vec<f32>),
    Held(f32, f32),
    Function(UnaryKind, f32),
    /// `max(x, 0) + slopes * min(x, 0)`.
    Slopes(Vec<f32>),
    Pool,
    Move(Op),
}

/// A convolution with a bias in steps of its sums.
fn conv(t: &mut Build, groups: usize) -> ValueId {
    let x = t.input(&[1, CHANNELS, 6, 5], 0.02, -7);
    let w = t.weight(&[CHANNELS, 3, 3, CHANNELS / groups], true);
    let layout = Layout::Nchw;
    let (strides, pads, dilations, data_zero_point, weight_zero_point) = ([1, 1], [1, 1, 1, 1], [1, 1], 0, 0);
    let op = Conv2d { strides, pads, dilations, groups, layout, data_zero_point, weight_zero_point };
    t.b.node("conv", op, &[x, w]).unwrap()
}

/// Adds operators after an NCHW image.
fn chain(t: &mut Build, mut v: ValueId, then: &[Then]) -> ValueId {
    let mut axis = 1;
    for (i, then) in then.iter().enumerate() {
        let (rank, name) = (t.b.ty(v).rank(), format!("then{i}"));
        let vector = |t: &mut Build, x: &[f32]| {
            let shape: Vec<usize> = (axis..rank).map(|d| if d == axis { x.len() } else { 1 }).collect();
            t.b.constant("c", Tensor::new(&shape, x.to_vec()).unwrap())
        };
        let binary = |t: &mut Build, kind, x: &[f32]| {
            let c = vector(t, x);
            t.b.node(&name, Binary { kind }, &[v, c])
        };
        let made = match then {
            Plus(x) => {
                let c = vector(t, x);
                t.b.node(&name, Add {}, &[c, v])
            }
            Times(x) => binary(t, BinaryKind::Mul, x),
            Over(x) => binary(t, BinaryKind::Div, x),
            AtLeast(x) => binary(t, BinaryKind::Max, x),
            AtMost(x) => binary(t, BinaryKind::Min, x),
            From(x) => {
                let c = vector(t, x);
                t.b.node(&name, Binary { kind: BinaryKind::Sub }, &[c, v])
            }
            Held(lo, hi) => t.b.node(&name, Clip { lo: *lo, hi: *hi }, &[v]),
            Function(kind, alpha) => t.b.node(&name, Unary { kind: *kind, alpha: *alpha, beta: 0.25 }, &[v]),
            Slopes(x) => {
                let (zero, slopes) = (vector(t, &[0.0]), vector(t, x));
                let below = t.b.node("below", Binary { kind: BinaryKind::Min }, &[v, zero]).unwrap();
                let below = t.b.node("sloped", Binary { kind: BinaryKind::Mul }, &[below, slopes]).unwrap();
                let above = t.b.node("above", Binary { kind: BinaryKind::Max }, &[v, zero]).unwrap();
                t.b.node(&name, Add {}, &[above, below])
            }
            Pool => {
                let layout = if axis == 1 { Layout::Nchw } else { Layout::Nhwc };
                let (kernel, strides, pads, dilations) = ([3, 2], [1, 2], [1, 0, 1, 1], [1, 1]);
                t.b.node(&name, MaxPool2d { kernel, strides, pads, dilations, layout }, &[v])
            }
            Move(op) => {
                if let Op::Transpose(moved) = op {
                    axis = moved.perm.iter().position(|&p| p == axis).unwrap();
                }
                t.b.node(&name, op.clone(), &[v])
            }
        };
        v = made.unwrap();
    }
    v
}

fn ops(g: &Graph) -> Vec<&'static str> {
    g.nodes().map(|(_, n)| n.op.name()).filter(|&n| n != "constant").collect()
}

fn nhwc() -> Then {
    Move(Transpose { perm: vec![0, 2, 3, 1] }.into())
}

#[test]
fn factors_and_terms_are_in_the_requantization_and_moves_behind_it() {
    let both = || vec![0.5, -2.0, 1.25, 0.0];
    let terms = || vec![1.0, -0.5, 0.25, 2.0];
    let slopes = || vec![0.25, -0.5, 0.0, 1.0];
    let slice = Slice { starts: vec![0, 1, 0, 0], sizes: vec![1, 4, 5, CHANNELS], steps: vec![1; 4] };
    let pad = Pad { before: vec![0, 0, 1, 0], after: vec![0, 0, 0, 2], value: 0.3 };
    let one = "requantize";
    let two = "requantize requantize binary";
    let cases = [
        (one.to_string(), vec![Times(both())]),
        (one.into(), vec![Over(vec![0.5, -3.0, 4.0, 1.0]), Plus(terms())]),
        (one.into(), vec![From(terms()), Function(UnaryKind::Neg, 0.0), Times(vec![-3.0])]),
        // A bound shared by all channels is a clamp; one per channel is a vector.
        (one.into(), vec![Times(vec![-2.0]), AtLeast(vec![-0.5]), AtMost(vec![1.5]), Plus(vec![0.5])]),
        (one.into(), vec![Held(0.0, 1.0), From(vec![1.0])]),
        (one.into(), vec![Function(UnaryKind::HardSigmoid, 0.5)]),
        (format!("{one} binary"), vec![AtLeast(terms())]),
        (format!("{one} binary binary"), vec![Held(0.0, f32::INFINITY), Times(both()), Plus(terms())]),
        // A bend takes two requantizations.
        (two.into(), vec![Function(UnaryKind::Abs, 0.0)]),
        (two.into(), vec![Slopes(slopes())]),
        // A slope of 0 is a bound if terms follow it, and a factor otherwise.
        (
            format!("{two} binary"),
            vec![Times(vec![0.5, 1.5, -0.5, 2.0]), Plus(terms()), Slopes(slopes()), Plus(terms())],
        ),
        // One constant channel among others.
        (two.into(), vec![Times(vec![0.5, 0.0, -0.5, 2.0]), Plus(terms()), Function(UnaryKind::LeakyRelu, 0.25)]),
        (one.into(), vec![Times(vec![0.0]), Plus(vec![0.5, -2.0, 9.0, 0.0]), Slopes(vec![0.5, 0.25, 0.5, 0.5])]),
        (two.into(), vec![Function(UnaryKind::LeakyRelu, 1.75), Times(vec![-0.5]), From(terms())]),
        (two.into(), vec![Held(-1.0, 1.0), Function(UnaryKind::Abs, 0.0)]),
        // Moves keep their order, and constants after them find their channels.
        (format!("{one} max_pool2d"), vec![Pool, Times(vec![0.5, 2.0, 1.25, 0.0]), Plus(terms())]),
        (format!("{one} max_pool2d transpose"), vec![Times(both()), Pool, nhwc(), Plus(terms())]),
        (format!("{two} transpose max_pool2d"), vec![nhwc(), Slopes(slopes()), Pool, Times(vec![3.0])]),
        (format!("{one} transpose slice"), vec![nhwc(), Move(slice.into()), Times(both())]),
        (format!("{one} pad"), vec![Times(both()), Move(pad.into())]),
        // The maximum of negative multiples is the negated minimum of the positive ones.
        (format!("{one} max_pool2d rescale"), vec![Pool, Times(vec![-0.5, -2.0, -1.0, 0.0]), Plus(terms())]),
        (format!("{one} max_pool2d transpose rescale"), vec![Pool, Function(UnaryKind::Neg, 0.0), nhwc()]),
    ];
    for (i, (integer, then)) in cases.iter().enumerate() {
        for groups in [1, CHANNELS] {
            let mut t = Build::new(i as u64);
            let v = conv(&mut t, groups);
            let v = chain(&mut t, v, then);
            let (g, report) = t.legal(v, None, 5, None);
            assert_eq!(ops(&g).join(" "), format!("conv2d {integer}"), "{then:?}\n{:?}\n{g}", report.notes);
        }
    }
}

#[test]
fn what_stands_in_the_way_is_named() {
    let pad = Pad { before: vec![0, 0, 1, 0], after: vec![0, 0, 0, 2], value: 0.3 };
    // Its taps are above and below the image's six rows.
    let (kernel, strides, pads, dilations, layout) = ([2, 1], [1, 1], [1, 0, 1, 0], [7, 1], Layout::Nchw);
    let empty = MaxPool2d { kernel, strides, pads, dilations, layout };
    let cases = [
        ("`then0` (max_pool2d) adds a border", vec![Move(empty.into()), Times(vec![2.0])]),
        ("`then0` (sigmoid) is not piecewise linear", vec![Function(UnaryKind::Sigmoid, 0.0), Times(vec![2.0])]),
        ("`then1` (mul) has a constant that is not finite", vec![Pool, Times(vec![f32::INFINITY])]),
        ("`then0` (add) has a constant that is not finite", vec![Plus(vec![0.0, f32::NAN, 0.0, 0.0])]),
        ("`then0` (div) has a constant that is not finite or divides by 0", vec![Over(vec![1.0, 0.0, 1.0, 1.0])]),
        ("`then0` (max_pool2d) compares elements, but a negative factor", vec![Pool, Times(vec![1.0, -1.0, 1.0, 1.0])]),
        ("`then0` (pad) adds a border", vec![Move(pad.into()), Times(vec![2.0])]),
        (
            "`then1` (mul) needs the maximum of two lines in some channels and the minimum in others",
            vec![Function(UnaryKind::Abs, 0.0), Times(vec![1.0, -1.0, 1.0, 1.0]), Plus(vec![0.1])],
        ),
        (
            "`then2` (leaky_relu) makes a function that is not the maximum or minimum of two lines",
            vec![Slopes(vec![0.5]), Plus(vec![0.3]), Function(UnaryKind::LeakyRelu, -0.5), Times(vec![2.0])],
        ),
        ("`conv` (conv2d) has 32-bit sums whose step is too coarse", vec![Times(vec![1e4]), Plus(vec![0.3])]),
    ];
    for (note, then) in cases {
        let mut t = Build::new(3);
        let v = conv(&mut t, 1);
        let v = chain(&mut t, v, &then);
        let (g, report) = t.legal(v, None, 5, Some(0.1));
        assert!(!ops(&g).contains(&"requantize"), "{then:?}\n{g}");
        let found = report.notes.get("conv").map_or("", |note| note.as_str());
        assert!(found.starts_with(&format!("it stays float: {note}")), "{then:?}: {found}");
    }
}

/// Random chains: each becomes integer and stays within a step, or has a note.
#[test]
fn random_chains_are_integers_or_say_why() {
    let (mut integer, mut all) = (0, 0);
    for seed in 0..300 {
        let mut f = noise(seed);
        let mut draw = |n: usize| usize::from(f(0).unsigned_abs()) % n;
        let mut t = Build::new(seed);
        let v = conv(&mut t, if draw(3) == 0 { CHANNELS } else { 1 });
        let mut then = Vec::new();
        for _ in 0..1 + draw(3) {
            let count = if draw(2) == 0 { 1 } else { CHANNELS };
            let sign = draw(3);
            let factors: Vec<f32> = (0..count)
                .map(|_| {
                    (0.25 + draw(16) as f32 / 8.0) * if sign == 0 && draw(2) == 0 || sign == 1 { -1.0 } else { 1.0 }
                })
                .collect();
            let terms = factors.iter().map(|x| x - 1.0).collect();
            then.push(match draw(13) {
                0 => Times(factors),
                1 => Over(factors),
                2 => Plus(terms),
                3 => From(terms),
                4 => AtLeast(terms),
                5 => AtMost(terms),
                6 => Held(-0.5, 1.5),
                7 => Function([UnaryKind::Abs, UnaryKind::Neg, UnaryKind::LeakyRelu][draw(3)], 0.3),
                8 => Slopes(factors.iter().map(|x| x / 3.0).collect()),
                9 => Function(UnaryKind::HardSigmoid, 0.4),
                10 => Pool,
                11 => Times(factors.iter().map(|&x| if x.abs() < 1.0 { 0.0 } else { x }).collect()),
                _ => nhwc(),
            });
            if matches!(then.last(), Some(Move(_))) {
                break;
            }
        }
        let v = chain(&mut t, v, &then);
        let (g, report) = t.legal(v, None, draw(60) as i32 - 30, None);
        let float = g.nodes().any(|(_, n)| g.ty(n.output()).dtype == DType::F32);
        assert_eq!(float, report.notes.contains_key("conv"), "{then:?}\n{g}");
        all += 1;
        integer += usize::from(!float);
    }
    println!("{integer} of {all} chains are integers");
    assert!(integer * 10 >= all * 8, "{integer} of {all}");
}
