//! The pages of operators are written from the registries.

use super::*;

fn onnx_page() -> String {
    let mut text = String::from(
        "# ONNX operators\n\n\
         Written from the registry in `compiler/src/frontend/onnx/ops/mod.rs` by `BLESS=1 cargo test -p tilewright-compiler \
         operator_pages`; do not edit.\n\n\
         Operator sets 1 to 27 are read, with what each set changed since 7. Elements are FLOAT, UINT8, INT8, INT32, INT64 and\n\
         BOOL; FLOAT16 and DOUBLE are taken in single precision, and inputs and outputs of these types are given and written in\n\
         them. Images have one or two dimensions beside batch and channels, tensors up to 32.\n\
         Shapes must be known when a network is imported: sizes that a file leaves open come from `--bind SYMBOL=SIZE`,\n\
         `--shape INPUT=SIZExSIZE` or the data given with `--input`; an outermost size that nobody gives is 1. Operands that\n\
         give shapes, axes and the like must follow from constants and sizes; constant indices outside their dimension are\n\
         refused.\n\n\
         A file's own functions are inlined, and `If` becomes the branch that its condition chooses, where that follows from\n\
         constants and sizes. A function that calls itself is refused. Constants may be sparse (`sparse_initializer`,\n\
         `sparse_value`) or in files beside the model, in the folder of the model's name or in that of the file which a link\n\
         of this name leads to. An attribute or operand that an operator does not have in the model's operator set is\n\
         refused; the last column lists attributes that may be there and change no value of an inference.\n\n\
         Quantized networks may be in QDQ form, in operator form (QLinear…) or of dynamic quantization (DynamicQuantizeLinear\n\
         before ConvInteger or MatMulInteger): the first two are one and go to the accelerator; products whose zero points and\n\
         scales the run computes give the same integers, on the CPU. An average pooling between equal scales, or others of\n\
         whose sums more than one in a thousand lies half way between two integers, stays float on the CPU, since the format\n\
         rounds these by the error of its floats. What may stand between a product and its QuantizeLinear is in\n\
         [offload.md](offload.md#operators-behind-a-quantized-product).\n\n\
         RNN, GRU and LSTM are unrolled over their steps, up to 2,048 of both directions together, in floats on the CPU; the\n\
         length of a sequence must be known, lengths within it may be computed by the run. `clip` holds the sums that go into\n\
         gates, not an LSTM's cell on its way to the result. Scattered updates whose places the run computes are limited: 64 to\n\
         be combined, else 2^24 pairs of a place and an update; of these, places outside the data are left out. TopK finds up\n\
         to 64.\n\n\
         NaN, infinities and zeros of both signs come out as in ONNX Runtime, with these exceptions:\n\n\
         | operator | here | ONNX Runtime |\n|---|---|---|\n\
         | ReduceMax, ReduceMin, ReduceLogSumExp, MaxPool, GlobalMaxPool | NaN wherever an element is one | NaN or not, by its place |\n\
         | ArgMax, ArgMin | the place of the first NaN (the last with `select_last_index`) | by its place |\n\
         | TopK | a NaN is greater than every number | by its place |\n\
         | MaxPool of -infinity alone | -infinity | the lowest finite number |\n\
         | Max, Min, ReduceMax, ReduceMin, MaxPool of -0 and 0 | -0 | either, by its place |\n\
         | Cast of a float outside the range of an integer | the nearest integer of the type, 0 for NaN | by the processor |\n\
         | QuantizeLinear of NaN | the zero point | by the processor |\n\
         | Selu, Celu of -0 | -0 | 0 |\n\
         | ConvTranspose with infinite or NaN weights | NaN also where a stride leaves gaps | the data's products alone |\n\n\
         A bound of Clip that is left out is the end of the finite numbers, as the format says; one that is NaN bounds nothing.\n\n\
         Resize and Upsample compute sizes and coordinates in single precision and in ONNX Runtime's order. A size is the\n\
         product with its scale, rounded down; `align_corners` goes by the whole number of pixels that come out; data that keep\n\
         all their sizes are copied, whatever the scales. ONNX's reference evaluator computes in double precision, takes the\n\
         size with its fraction for `align_corners`, and copies nothing, so it can differ by a pixel. Before set 11 the nearest\n\
         element is rounded up where a dimension shrinks, else down. The region of `tf_crop_and_resize` also counts in a\n\
         dimension whose size stays, where ONNX Runtime takes the whole.\n\n\
         | operator | attributes | of no effect |\n|---|---|---|\n",
    );
    let list = |names: &[&str]| names.iter().map(|a| format!("`{a}`")).collect::<Vec<_>>().join(", ");
    for o in onnx::operators() {
        text += &format!("| {} | {} | {} |\n", o.name, list(o.attributes), list(o.ignored));
    }
    text
}

const TFLITE_FIELDS: &[(&str, &str)] = &[
    ("`Model.version`", "up to 3"),
    ("`Model.subgraphs`", "the first is read; control flow, which needs others, is not supported"),
    ("`Model.signature_defs`, `description`", "not used: they name things for people"),
    ("`Model.metadata`", "`TFLITE_METADATA` says how pictures are normalized, and names classes"),
    ("`Buffer.offset`, `size`", "read: data behind the tables"),
    ("`Tensor.external_buffer`", "refused: data in another file"),
    ("`Tensor.sparsity`", "expanded, of FLOAT32, FLOAT16, INT8 and INT32; damaged tables are refused"),
    ("`Tensor.is_variable`", "refused where a value of an earlier run would be read"),
    ("`Tensor.shape_signature`", "not used: sizes are those of `shape`, as where nobody resizes the inputs"),
    ("`Tensor.has_rank`", "an empty shape without it is refused for a result that is no scalar"),
    ("`Tensor.variant_tensors`", "not used: the type VARIANT is refused"),
    ("`QuantizationParameters.min`, `max`", "not used; TFLite's kernels ignore them too"),
    ("`QuantizationParameters.details`", "refused: custom, blockwise and multi-axis quantization"),
    ("`OperatorCode.version`", "not used: types and fields are checked themselves"),
    ("`Operator.mutating_variable_inputs`, `intermediates`", "not used: no supported operator has them"),
    (
        "`Operator.custom_options`, `large_custom_options`, `builtin_options_2`",
        "not used: no supported operator has them",
    ),
    ("`quantized_bias_type`", "INT32 or left out"),
    (
        "`keep_num_dims`, `keep_dims`, `new_shape`, `squeeze_dims`",
        "not used: results have the shapes that the file declares",
    ),
    ("`depth_multiplier`", "not used: it follows from the shapes"),
    ("`pot_scale_int16`", "not used: it is for INT16"),
    ("`BatchMatMulOptions.asymmetric_quantize_inputs`", "not used: both operands are of one type"),
    ("inputs and outputs", "a tensor may be listed as an output more than once, not as an input"),
];

fn tflite_page() -> String {
    let mut text = String::from(
        "# TFLite operators\n\n\
         Written from the registry in `compiler/src/frontend/tflite/ops/mod.rs` by `BLESS=1 cargo test -p tilewright-compiler \
         operator_pages`; do not edit.\n\n\
         Networks of int8 and uint8, of floats, of float16 and int8 weights behind DEQUANTIZE, and of int8 weights with float\n\
         activations are read. Weights of float layers may be computed or given. Operands that give shapes, axes and the like must be constants. Below, float is FLOAT32 and what\n\
         is FLOAT16 in the file, 8 bits are INT8 and UINT8 with a scale and a zero point, and all are these, INT32, INT64 and BOOL.\n\n\
         Results of 8 bits equal those of LiteRT's reference kernels, bit for bit; softmax and logistic may be one step apart.\n\
         `make check-tflite` compares all of them. From a factor of 256 on every sum but 0 saturates. Two things are refused by\n\
         name: sums that could pass 32 bits when they are shifted for a factor of 1 or more, and in ADD, SUB and\n\
         SQUARED_DIFFERENCE a result's scale so small that the kernels refuse it.\n\n\
         | operator | types of its data | asked of it |\n|---|---|---|\n",
    );
    let mut rows = tflite::operators();
    rows.sort();
    rows.iter().for_each(|[name, types, limits]| text += &format!("| {name} | {types} | {limits} |\n"));
    text += "\n## Fields beside the operators' own\n\n\
             A field that newer schemas add is refused in the tables of tensors, quantization,\n\
             sparsity and options, whatever an operator's version says; so are options of another operator.\n\n\
             | field | what becomes of it |\n|---|---|\n";
    for (field, what) in TFLITE_FIELDS {
        text += &format!("| {field} | {what} |\n");
    }
    text
}

#[test]
fn the_pages_of_operators_are_those_of_the_registries() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    for (name, page) in [("onnx.md", onnx_page()), ("tflite.md", tflite_page())] {
        let path = docs.join(name);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &page).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == page, "docs/{name} is stale; run BLESS=1 cargo test -p tilewright-compiler operator_pages");
    }
}

#[test]
fn the_registry_is_in_order() {
    let names: Vec<&str> = onnx::operators().map(|o| o.name).collect();
    assert!(names.is_sorted(), "{names:?}");
}
