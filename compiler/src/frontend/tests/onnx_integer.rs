//! Integer products of ONNX with zero points computed at run time, compared with plain sums and ONNX Runtime.

use super::*;
use crate::frontend::onnx::testing::{Bytes, Made, in_domain, network, with_bytes, with_floats};

const FLOAT: i32 = 1;

fn results(file: &[u8], x: &Tensor) -> Vec<Tensor> {
    let g = onnx::import(file, "net.onnx", None, Sizes::default()).unwrap_or_else(|e| panic!("{e}"));
    eval(&g, std::slice::from_ref(x)).unwrap()
}

/// Bytes, scale and zero point of floats, as the operator's page defines them.
fn quantized(x: &[f32]) -> (Vec<i32>, f32, i32) {
    let hi = x.iter().fold(0f32, |m, &v| m.max(v));
    let lo = x.iter().fold(0f32, |m, &v| m.min(v));
    let scale = if hi == lo { 1.0 } else { (hi - lo) / 255.0 };
    let zero = (0.0 - lo / scale).clamp(0.0, 255.0).round_ties_even() as i32;
    let q = |&v: &f32| ((v / scale).round_ties_even() as i32 + zero).clamp(0, 255);
    (x.iter().map(q).collect(), scale, zero)
}

fn reals(n: usize, seed: i32, shift: f32) -> Vec<f32> {
    (0..n as i32).map(|i| ((i * 37 + seed * 11) % 101) as f32 / 17.0 - shift).collect()
}

fn bytes(n: usize, seed: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 73 + seed * 29 + i * i * 5) as u8).collect()
}

/// A weight byte as a number.
fn number(element: i32, b: u8) -> i32 {
    if element == Bytes::SIGNED { i32::from(b as i8) } else { i32::from(b) }
}

#[test]
fn convolutions_take_zero_points_of_the_run() {
    let (c, h, w, o) = (4usize, 5usize, 6usize, 4usize);
    for (element, groups, zeros, shift) in [
        (Bytes::UNSIGNED, 1, vec![131u8], 2.0),
        (Bytes::SIGNED, 2, vec![0xf9], 1.0),
        (Bytes::SIGNED, 1, vec![3, 0xfe, 0, 7], 4.0),
        (Bytes::UNSIGNED, 4, vec![9, 120, 255, 0], -0.5),
    ] {
        let per = c / groups;
        let weight = bytes(o * per * 3 * 2, groups);
        let nodes: &[Made] = &[
            ("DynamicQuantizeLinear", &["x"], &["q", "s", "z"], &[]),
            (
                "ConvInteger",
                &["q", "w", "z", "zw"],
                &["y"],
                &[("pads", &[1, 0, 2, 1]), ("strides", &[2, 1]), ("group", &[groups as i64])],
            ),
        ];
        let file = network(nodes, &[1, c as i64, h as i64, w as i64], FLOAT, &[], 17);
        let dims = [o as i64, per as i64, 3, 2];
        let many: &[i64] = if zeros.len() == 1 { &[] } else { &[4] };
        let constants = [
            Bytes { name: "w", dims: &dims, element, data: &weight },
            Bytes { name: "zw", dims: many, element, data: &zeros },
        ];
        let x = reals(c * h * w, groups as i32, shift);
        let found = results(&with_bytes(&file, &constants), &Tensor::new(&[1, c, h, w], x.clone()).unwrap()).remove(0);
        let (q, _, z) = quantized(&x);
        let (oh, ow) = ((h + 3 - 3) / 2 + 1, w + 1 - 2 + 1);
        let want = Tensor::from_fn(&[1, o, oh, ow], |i| {
            let (k, y, x) = (i / (oh * ow), i / ow % oh, i % ow);
            let zw = number(element, zeros[if zeros.len() == 1 { 0 } else { k }]);
            let mut sum = 0;
            for (ci, (ky, kx)) in (0..per).flat_map(|c| (0..3).flat_map(move |y| (0..2).map(move |x| (c, (y, x))))) {
                let (at_y, at_x) = ((y * 2 + ky).wrapping_sub(1), x + kx);
                if at_y < h && at_x < w {
                    let data = q[((k / (o / groups) * per + ci) * h + at_y) * w + at_x] - z;
                    sum += data * (number(element, weight[((k * per + ci) * 3 + ky) * 2 + kx]) - zw);
                }
            }
            sum
        });
        assert_eq!(found, want, "{groups} groups, zero points {zeros:?}");
    }
}

#[test]
fn products_of_matrices_take_zero_points_of_the_run() {
    let (m, k, n) = (3usize, 5usize, 4usize);
    let x = reals(m * k, 3, 2.5);
    let (q, _, z) = quantized(&x);
    let data = Tensor::new(&[m, k], x).unwrap();
    let quantize: Made = ("DynamicQuantizeLinear", &["x"], &["q", "s", "z"], &[]);
    for (element, zeros) in
        [(Bytes::UNSIGNED, vec![130u8]), (Bytes::SIGNED, vec![1, 0xfd, 100, 0]), (Bytes::SIGNED, vec![0; 4])]
    {
        let weight = bytes(k * n, zeros.len());
        let file = network(
            &[quantize, ("MatMulInteger", &["q", "w", "z", "zw"], &["y"], &[])],
            &[m as i64, k as i64],
            FLOAT,
            &[],
            17,
        );
        let (dims, many): (&[i64], &[i64]) = (&[k as i64, n as i64], if zeros.len() == 1 { &[] } else { &[4] });
        let constants = [
            Bytes { name: "w", dims, element, data: &weight },
            Bytes { name: "zw", dims: many, element, data: &zeros },
        ];
        let want = Tensor::from_fn(&[m, n], |i| {
            let zw = number(element, zeros[if zeros.len() == 1 { 0 } else { i % n }]);
            (0..k).map(|j| (q[i / n * k + j] - z) * (number(element, weight[j * n + i % n]) - zw)).sum::<i32>()
        });
        assert_eq!(results(&with_bytes(&file, &constants), &data)[0], want, "{zeros:?}");
    }
    // Both zero points are computed at run time: the data times their transpose.
    let nodes: &[Made] = &[
        quantize,
        ("Transpose", &["q"], &["t"], &[("perm", &[1, 0])]),
        ("MatMulInteger", &["q", "t", "z", "z"], &["y"], &[]),
    ];
    let found = results(&network(nodes, &[m as i64, k as i64], FLOAT, &[], 17), &data);
    let want =
        Tensor::from_fn(&[m, m], |i| (0..k).map(|j| (q[i / m * k + j] - z) * (q[i % m * k + j] - z)).sum::<i32>());
    assert_eq!(found[0], want);
}

#[test]
fn products_that_scale_their_integers_are_the_same_with_floats_behind() {
    let (m, k, n) = (2usize, 6usize, 3usize);
    let x = reals(m * k, 5, 2.0);
    let (q, scale, z) = quantized(&x);
    let weight = bytes(k * n, 2);
    let nodes: &[Made] = &[("DynamicQuantizeMatMul", &["x", "w", "sw", "zw", "b"], &["y"], &[])];
    let file = network(nodes, &[m as i64, k as i64], FLOAT, &[], 17);
    let constants = [
        Bytes { name: "w", dims: &[k as i64, n as i64], element: Bytes::UNSIGNED, data: &weight },
        Bytes { name: "zw", dims: &[], element: Bytes::UNSIGNED, data: &[117] },
    ];
    let (sw, b) = (0.01f32, [0.5f32, -1.0, 2.0]);
    let file = with_floats(&with_bytes(&file, &constants), &[], &[("sw", &[sw]), ("b", &b)]);
    let found = results(&in_domain(&file, "com.microsoft"), &Tensor::new(&[m, k], x).unwrap()).remove(0);
    let want = Tensor::from_fn(&[m, n], |i| {
        let sum: i32 = (0..k).map(|j| (q[i / n * k + j] - z) * (i32::from(weight[j * n + i % n]) - 117)).sum();
        sum as f32 * (scale * sw) + b[i % n]
    });
    assert_eq!(found, want);
}

/// A matrix product of bytes whose second operand has a scale and a zero point per column of each matrix.
#[test]
fn products_of_matrices_take_parameters_of_the_operands_rank() {
    let (n, m, k, o) = (2usize, 3usize, 4usize, 5usize);
    let (x, weight, zeros) = (reals(n * m * k, 7, 2.0), bytes(n * k * o, 3), bytes(n * o, 1));
    let scales: Vec<f32> = (0..n * o).map(|i| 0.01 + i as f32 / 500.0).collect();
    let file = |dims: &[i64]| {
        let nodes: &[Made] = &[
            ("QuantizeLinear", &["x", "s", "z"], &["q"], &[]),
            ("Reshape", &["sb", "dims"], &["scales"], &[]),
            ("QLinearMatMul", &["q", "s", "z", "b", "scales", "zb", "sy", "zy"], &["p"], &[]),
            ("DequantizeLinear", &["p", "sy", "zy"], &["y"], &[]),
        ];
        let file = network(nodes, &[n as i64, m as i64, k as i64], FLOAT, &[("dims", dims)], 17);
        let constants = [
            Bytes { name: "b", dims: &[n as i64, k as i64, o as i64], element: Bytes::UNSIGNED, data: &weight },
            Bytes { name: "zb", dims, element: Bytes::UNSIGNED, data: &zeros },
            Bytes { name: "z", dims: &[], element: Bytes::UNSIGNED, data: &[100] },
            Bytes { name: "zy", dims: &[], element: Bytes::UNSIGNED, data: &[120] },
        ];
        with_floats(&with_bytes(&file, &constants), &[], &[("s", &[0.03]), ("sy", &[0.5]), ("sb", &scales)])
    };
    let found = results(&file(&[n as i64, 1, o as i64]), &Tensor::new(&[n, m, k], x.clone()).unwrap()).remove(0);
    let q = |v: f32| ((v / 0.03).round_ties_even() as i32 + 100).clamp(0, 255) - 100;
    for (i, &found) in found.as_slice::<f32>().unwrap().iter().enumerate() {
        let (image, row, column) = (i / (m * o), i / o % m, i % o);
        let at = image * o + column;
        let weight = |j: usize| i32::from(weight[(image * k + j) * o + column]) - i32::from(zeros[at]);
        let sum: i32 = (0..k).map(|j| q(x[(image * m + row) * k + j]) * weight(j)).sum();
        let want = (sum as f32 * 0.03 * scales[at] / 0.5).clamp(-120.0, 135.0) * 0.5;
        assert!((found - want).abs() <= 0.2501, "{i}: {found} {want}");
    }
    let error = onnx::import(&file(&[o as i64, 1, n as i64]), "net.onnx", None, Sizes::default()).unwrap_err();
    let error = format!("{error:?}");
    assert!(error.contains("the zero_point [5, 1, 2] of operand `b` does not broadcast to [2, 4, 5]"), "{error}");
}

#[test]
fn data_without_a_range_have_the_step_one() {
    let nodes: &[Made] = &[("DynamicQuantizeLinear", &["x"], &["q", "y", "z"], &[])];
    let zeros = Tensor::new(&[3], vec![0f32; 3]).unwrap();
    assert_eq!(results(&network(nodes, &[3], FLOAT, &[], 17), &zeros)[0], Tensor::scalar(1f32));
}

#[test]
fn networks_that_onnx_runtime_quantized_give_its_integers() {
    let (found, expected) = super::run(&models("onnx-runtime"), "dynamic.onnx");
    assert_eq!(found.len(), 4);
    assert!(relative(&found[0], &expected[0]) < 1e-6);
    assert_eq!(found[1..], expected[1..]);
}
