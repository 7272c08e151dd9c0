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

fn nhwc() -> Then {
    Move(Transpose { perm: vec![0, 2, 3, 1] }.into())
}

/// Chains at random: each is integers and within a step, or has a note.
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
