//! Sizes and coordinates of Resize in single precision, as in ONNX Runtime.

use super::onnx_operators::{floats, of_one};
use super::*;
use crate::frontend::onnx::testing::{Operand, Value};

/// A row of an image resized by a scale.
fn row(x: &[f32], scale: f32, words: &[(&str, &str)], opset: i64) -> Vec<f32> {
    let image = Operand::Given(Tensor::new(&[1, 1, 1, x.len()], x.to_vec()).unwrap());
    let scales = Operand::Constant(Tensor::vector(vec![1f32, 1.0, 1.0, scale]));
    let attributes: Vec<_> = words.iter().map(|&(name, word)| (name, Value::Word(word))).collect();
    let operands = if opset < 11 { vec![image, scales] } else { vec![image, Operand::Missing, scales] };
    floats(&of_one("Resize", &attributes, &operands, opset)).to_vec()
}

#[test]
fn sizes_are_products_in_single_precision() {
    let place: Vec<f32> = (0..20).map(|i| i as f32).collect();
    for (from, scale, to) in
        [(10, 0.7, 7), (10, 0.9, 9), (10, 1.3, 13), (10, 2.1, 21), (20, 0.9, 18), (20, 2.1, 42), (10, 0.55, 5)]
    {
        for mode in ["nearest", "linear", "cubic"] {
            assert_eq!(row(&place[..from], scale, &[("mode", mode)], 18).len(), to, "{from} by {scale}, {mode}");
        }
    }
}

#[test]
fn nearest_elements_are_those_of_single_precision() {
    let place: Vec<f32> = (0..15).map(|i| i as f32).collect();
    let asymmetric = [("coordinate_transformation_mode", "asymmetric"), ("nearest_mode", "floor")];
    assert_eq!(row(&place, 0.2, &asymmetric, 18), [0.0, 5.0, 10.0]);
    for (mode, want) in [
        ("round_prefer_floor", [0.0, 2.0, 3.0, 4.0]),
        ("round_prefer_ceil", [0.0, 2.0, 3.0, 5.0]),
        ("floor", [0.0, 1.0, 3.0, 4.0]),
        ("ceil", [1.0, 2.0, 4.0, 5.0]),
    ] {
        assert_eq!(row(&place[..7], 0.7, &[("nearest_mode", mode)], 18), want, "{mode}");
    }
    // Coordinates that are halfway except for rounding count as halfway.
    let place: Vec<f32> = (0..18).map(|i| i as f32).collect();
    assert_eq!(row(&place[..16], 1.3, &[], 18)[15..], [11.0, 12.0, 13.0, 14.0, 14.0]);
    assert_eq!(row(&place, 0.3, &[("nearest_mode", "round_prefer_ceil")], 18), [1.0, 5.0, 8.0, 11.0, 15.0]);
    // Before set 11, coordinates are rounded up if the dimension shrinks.
    assert_eq!(row(&place[..10], 0.4, &[], 10), [0.0, 3.0, 5.0, 8.0]);
    assert_eq!(row(&place[..4], 1.5, &[], 10), [0.0, 0.0, 1.0, 2.0, 2.0, 3.0]);
}

#[test]
fn aligned_corners_go_by_the_whole_pixels_that_come_out() {
    let x = [0.0, 1.0, 4.0, 9.0];
    let near = |words: &[(&str, &str)], want: &[f32]| {
        let y = row(&x, 1.7, words, 18);
        assert!(y.len() == want.len() && y.iter().zip(want).all(|(y, w)| (y - w).abs() < 1e-5), "{words:?}: {y:?}");
    };
    let aligned = ("coordinate_transformation_mode", "align_corners");
    near(&[("mode", "linear"), aligned], &[0.0, 0.6, 1.6, 3.4, 6.0, 9.0]);
    near(&[("mode", "cubic"), aligned], &[0.0, 0.288, 1.504, 3.016, 6.264, 9.0]);
    let symmetric = ("coordinate_transformation_mode", "half_pixel_symmetric");
    near(&[("mode", "linear"), symmetric], &[0.029_41, 0.617_65, 1.617_65, 3.382_35, 5.911_77, 8.852_94]);
}

#[test]
fn an_infinity_at_the_edge_stays_one() {
    let far = f32::INFINITY;
    let y = row(&[1.0, 2.0, far], 2.0, &[("mode", "linear")], 18);
    assert_eq!(y[3..], [far, far, far]);
    assert_eq!(y[1..3], [1.25, 1.75]);
}
