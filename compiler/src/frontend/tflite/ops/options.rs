//! Tables of operator options.

use crate::frontend::tflite::names::operator_name;
use crate::frontend::tflite::schema::Operator;

/// For each operator: its number, the number of its table among `BuiltinOptions`, and how many fields of the table are
/// known. Operators whose options are not read are not listed.
const OPTIONS: &[(i32, i8, usize)] = &[
    (0, 11, 2),    // ADD: pot_scale_int16 is for INT16
    (1, 5, 6),     // AVERAGE_POOL_2D
    (2, 10, 2),    // CONCATENATION
    (3, 1, 7),     // CONV_2D
    (4, 2, 7),     // DEPTHWISE_CONV_2D: depth_multiplier follows from the shapes
    (5, 94, 1),    // DEPTH_TO_SPACE
    (9, 8, 5),     // FULLY_CONNECTED: keep_num_dims follows from the shapes
    (11, 12, 1),   // L2_NORMALIZATION
    (17, 5, 6),    // MAX_POOL_2D
    (18, 21, 1),   // MUL
    (22, 17, 1),   // RESHAPE: new_shape is the result's
    (23, 15, 4),   // RESIZE_BILINEAR: the first two are no longer written
    (25, 9, 1),    // SOFTMAX
    (26, 19, 1),   // SPACE_TO_DEPTH
    (36, 23, 2),   // GATHER
    (40, 27, 1),   // MEAN: keep_dims follows from the shapes
    (41, 28, 2),   // SUB
    (42, 29, 1),   // DIV
    (43, 30, 1),   // SQUEEZE: squeeze_dims follow from the shapes
    (45, 32, 6),   // STRIDED_SLICE
    (49, 35, 1),   // SPLIT
    (53, 37, 2),   // CAST: both types are those of the tensors
    (56, 40, 1),   // ARG_MAX: output_type is the result's
    (67, 49, 5),   // TRANSPOSE_CONV
    (74, 27, 1),   // SUM
    (77, 55, 1),   // SHAPE: out_type is the result's
    (79, 57, 1),   // ARG_MIN
    (81, 27, 1),   // REDUCE_PROD
    (82, 27, 1),   // REDUCE_MAX
    (83, 59, 2),   // PACK
    (85, 61, 1),   // ONE_HOT
    (88, 64, 2),   // UNPACK
    (89, 27, 1),   // REDUCE_MIN
    (91, 27, 1),   // REDUCE_ANY
    (97, 74, 2),   // RESIZE_NEAREST_NEIGHBOR
    (98, 75, 1),   // LEAKY_RELU
    (100, 77, 1),  // MIRROR_PAD
    (102, 79, 1),  // SPLIT_V
    (118, 92, 2),  // IF
    (119, 93, 2),  // WHILE
    (126, 101, 3), // BATCH_MATMUL: asymmetric_quantize_inputs is for 8-bit weights with float data
    (128, 102, 2), // CUMSUM
    (140, 27, 1),  // REDUCE_ALL
    (150, 116, 1), // GELU
];

/// Fails if an operator has the options of another operator, or options with unknown fields.
pub(in super::super) fn check(op: &Operator) -> Result<(), String> {
    let row = OPTIONS.iter().find(|row| row.0 == op.code);
    let (Some(&(code, kind, fields)), Some(options)) = (row, op.options) else { return Ok(()) };
    if op.options_kind != kind && op.options_kind != 0 {
        let found = op.options_kind;
        return Err(format!("its options are of kind {found}; {} has options of kind {kind}", operator_name(code, "")));
    }
    options.only_fields_below(fields).map_err(|e| format!("its options: {e}"))
}
