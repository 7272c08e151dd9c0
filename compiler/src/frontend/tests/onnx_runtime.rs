//! Operators of ONNX Runtime that are refused. Those that are right are in `tests/cases`.

use super::*;
use crate::frontend::onnx::testing::{Bytes, Made, in_domain, network, with_bytes, with_floats, with_word};

const FLOAT: i32 = 1;

/// The error for a file whose first node is of the domain.
#[track_caller]
fn refused(file: &[u8], want: &str) {
    let file = in_domain(file, "com.microsoft");
    let e = onnx::import(&file, "net.onnx", None, Sizes::default()).map(|_| ()).unwrap_err().to_string();
    assert!(e.contains(want), "{e}");
}

#[test]
fn weights_of_few_bits_must_fill_their_blocks() {
    let product = |attributes: &[(&str, &[i64])], bytes: usize, scales: usize, more: &[&str]| {
        let operands = [&["x", "w", "s"], more].concat();
        let nodes: &[Made] = &[("MatMulNBits", &operands, &["y"], attributes)];
        let file = network(nodes, &[1, 32], FLOAT, &[("groups", &[5; 32])], 17);
        let data = vec![0x21; bytes];
        let zeros = [0; 3];
        let constants = [("w", bytes, data.as_slice()), ("z", 3, &zeros)];
        let dims = constants.map(|(_, count, _)| [count as i64]);
        let bytes = [0, 1].map(|i| Bytes {
            name: constants[i].0,
            dims: &dims[i],
            element: Bytes::UNSIGNED,
            data: constants[i].2,
        });
        with_floats(&with_bytes(&file, &bytes), &[], &[("s", &vec![0.5; scales])])
    };
    let of = |bits: &'static [i64]| -> [(&str, &[i64]); 4] {
        [("K", &[32]), ("N", &[2]), ("bits", bits), ("block_size", &[16])]
    };
    refused(&product(&of(&[4]), 31, 4, &[]), "it needs 4 blocks of 8 bytes, each with a scale, found 31 bytes and 4");
    refused(&product(&of(&[4]), 32, 3, &[]), "found 32 bytes and 3 scales");
    refused(&product(&of(&[3]), 32, 4, &[]), "its bits of 3 are not supported; use 2, 4 or 8");
    refused(&product(&of(&[4])[1..], 32, 4, &[]), "its K must be positive");
    refused(&product(&of(&[4]), 32, 4, &["z"]), "its zero points, operand 3, must be one for each of 4 blocks");
    refused(&product(&of(&[4]), 32, 4, &["", "groups"]), "must give one of 2 blocks for each of 32 rows");
    let huge: [(&str, &[i64]); 3] = [("K", &[1 << 30]), ("N", &[1 << 30]), ("block_size", &[1 << 30])];
    refused(&product(&huge, 32, 4, &[]), "it needs 1073741824 blocks of 536870912 bytes");
}

#[test]
fn attention_needs_heads_that_divide_and_masks_that_suit() {
    let attention = |operands: &[&str]| {
        let nodes: &[Made] = &[("Attention", operands, &["y"], &[("num_heads", &[2])])];
        let file = network(nodes, &[2, 5, 8], FLOAT, &[], 17);
        let one: Vec<f32> = (0..192).map(|i| i as f32).collect();
        with_floats(&file, &[], &[("flat", &one)])
    };
    refused(&attention(&["x", "flat"]), "operand `data` must be of 192 columns");
    refused(&attention(&["x", "x"]), "operand `b` must be of 8 rows");
    let many = |operands: &[&str], heads: &[i64]| {
        let nodes: &[Made] = &[("MultiHeadAttention", operands, &["y"], &[("num_heads", heads)])];
        let file = network(nodes, &[2, 5, 8], FLOAT, &[("m", &[1, 2, 3])], 17);
        with_bytes(&file, &[Bytes { name: "number", dims: &[], element: Bytes::SIGNED, data: &[1] }])
    };
    refused(&many(&["x", "x", "x"], &[3]), "must divide 8");
    refused(
        &many(&["x", "x", "x", "", "m"], &[2]),
        "its mask, operand 4, is i32[3]; it must be [2], [4], [2,5] or [2,5,5]",
    );
    // A line or a number where a tensor of three dimensions is expected.
    refused(&many(&["x", "m", "m"], &[2]), "must have 3 or 4 dimensions, past ones 4, found i64[3]");
    refused(
        &many(&["x", "x", "x", "", "", "", "m", "m"], &[2]),
        "must have 3 or 4 dimensions, past ones 4, found i64[3]",
    );
    refused(&many(&["x", "x", "x", "number"], &[2]), "out of range for 0 dimensions");
    refused(&many(&["x", "", "x"], &[2]), "it has values, operand 2, but no keys, operand 1");
    refused(&many(&["x"], &[2]), "what holds 3 tensors must have 5 dimensions, found f32[2,5,8]");
    refused(&many(&["x", "x", "x", "", "", "", "x"], &[2]), "operands 6 and 7, must be given together");
}

#[test]
fn fused_activations_have_names() {
    let nodes: &[Made] = &[("FusedGemm", &["x", "x"], &["y"], &[])];
    let file = with_word(&network(nodes, &[3, 3], FLOAT, &[], 17), "activation", "Mish");
    refused(&file, "unknown activation `Mish`; use Clip, HardSigmoid, LeakyRelu, Relu, Sigmoid or Tanh");
}

#[test]
fn a_layout_of_one_processor_is_refused_with_the_remedy() {
    let nodes: &[Made] = &[("Conv", &["x", "x"], &["y"], &[])];
    let file = in_domain(&network(nodes, &[1, 8, 3, 3], FLOAT, &[], 17), "com.microsoft.nchwc");
    let e = onnx::import(&file, "net.onnx", None, Sizes::default()).unwrap_err().to_string();
    assert!(e.contains("save it at ORT_ENABLE_EXTENDED"), "{e}");
}
