//! Tensors of 16 bits that are refused. Networks of them that are right are in `tests/cases`.

use super::tflite_fields::File;

const INT16: i8 = 7;
const ADD: i32 = 0;
const CONCATENATION: i32 = 2;
const LOGISTIC: i32 = 14;
const MUL: i32 = 18;
const SOFTMAX: i32 = 25;

/// An operator of 16 bits with these scales and zero points of its operands and its result.
fn operator(code: i32, options: i8, tensors: &[(f32, i64)]) -> File {
    let mut file = File::new();
    let (result, operands) = tensors.split_last().unwrap();
    let mut inputs = Vec::new();
    for (i, (scale, zero_point)) in operands.iter().enumerate() {
        let t = file.input(&format!("x{i}"), INT16, &[2, 3]);
        file.quantized(t, &[*scale], &[*zero_point], 0);
        inputs.push(t);
    }
    let y = file.tensor("y", INT16, if code == CONCATENATION { &[4, 3] } else { &[2, 3] });
    file.quantized(y, &[result.0], &[result.1], 0);
    file.operator(code, &inputs, y, Some((options, vec![])));
    file.output(y);
    file
}

#[test]
fn what_tensors_of_16_bits_cannot_be_is_refused() {
    let refused = |file: File, want: &str| {
        let e = file.refused();
        assert!(e.contains(want), "{e}");
    };
    refused(
        operator(MUL, 21, &[(0.1, 0), (0.1, 3), (0.1, 0)]),
        "tensor `x1` is of 16 bits, so its zero point must be 0, not 3",
    );
    refused(
        operator(MUL, 21, &[(0.1, 0), (0.1, 0), (0.1, 3)]),
        "tensor `y` is of 16 bits, so its zero point must be 0",
    );
    refused(
        operator(ADD, 11, &[(0.1, 0), (0.1, 0), (0.1, 0)]),
        "attribute pot_scale_int16 is true; supported is false",
    );
    refused(operator(LOGISTIC, 0, &[(0.1, 0), (0.1, 0)]), "its result must have a scale of 2^-15, not 0.1");
    refused(operator(SOFTMAX, 9, &[(0.1, 0), (0.5, 0)]), "its result must have a scale of 2^-15, not 0.5");
    refused(operator(CONCATENATION, 10, &[(0.1, 0), (0.2, 0), (0.1, 0)]), "must have the same scale");
}
