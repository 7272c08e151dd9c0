//! Writes `docs/onnx.md` and `docs/tflite.md` from the registries of operators.

use super::*;

/// The ONNX page up to the rows of its last table.
const ONNX: &str = "\
# ONNX operators

Generated from the registry in `compiler/src/frontend/onnx/ops/mod.rs` by
`BLESS=1 cargo test -p tilewright-compiler operator_pages`; do not edit. The list of operators is [below](#operators).

## What the importer reads

- **Operator sets** 1 to 27, with the changes that each set made since 7.
- **Element types**: integers and floats of all widths, and BOOL. DOUBLE is computed in double precision. FLOAT16 and
  BFLOAT16 are computed in single precision, which has all of their numbers; Cast and the network's outputs round to
  them. So do the floats of 8 and 4 bits. An INT4 or INT2 is an INT8 with fewer values, a UINT4 or UINT2 a UINT8. Types
  that NumPy does not have are f32 in arrays of outputs; an array for an input can be f32, or the bits as uint16 or
  uint8.
- **Tensors** of up to 32 dimensions; images with one, two or three spatial dimensions.
- **Shapes** must be known at import. Sizes that the file leaves open come from `--bind SYMBOL=SIZE`,
  `--shape INPUT=SIZExSIZE` or the data given with `--input`. An outermost size that is still open becomes 1.
- **Operands for shapes, axes and the like** are computed at import from constants, sizes, and values of inputs. An
  input that they need has its value from `--value INPUT=NUMBERS`, or from data given with `--input` that are a number
  or a list of up to 64 numbers. The model is then compiled for this value; a session that compiles when it runs does
  so for each value that it meets. Constant indices out of range are refused.
- **Functions** in the file are inlined, unless they call themselves: these are refused.
- **If, Loop, Scan** decide and repeat when the model runs, and the accelerator computes what it can of their graphs.
  An `If` whose condition is known becomes the chosen branch. Both branches must return the same types. A `Loop` ends
  after 2^20 steps with an error. It collects values if its limit is known and its condition stays true. One whose
  carried values change their sizes is imported step by step, up to 1,024 steps, which must be known.
- **NonMaxSuppression, NonZero, Compress, Unique** have results with a number of rows that is known only when the model
  has run. Operators that compute each row on its own can follow: Gather, Slice and Transpose of other dimensions,
  arithmetic, MatMul. Others are refused by name, and so are these four within If, Loop and Scan. An output with such
  rows is cut to their number, which is a further output, `NAME_count`. A caller that gives memory for the outputs gets
  the most rows that there can be, filled up with zeros.
- **Sequences and optional values** are known at import: how many tensors a sequence holds, and whether an optional value
  is there. A position for SequenceAt can be computed at run time if all tensors have one shape. SequenceMap, and a Loop
  that carries a sequence, are imported step by step, a Loop up to 1,024 steps, which must be known. At the network's
  edge a sequence `x` is the tensors `x_0`, `x_1` and so on. An input has as many as are given a shape
  (`--shape x_0=2x3`) or data (`--input x_0=FILE`). Optional inputs are imported as present.
- **Operators of ONNX Runtime** (`com.microsoft`): those that its optimizer writes at `ORT_ENABLE_EXTENDED`, and those of
  its quantized models. At `ORT_ENABLE_ALL` it can also write a layout for its own processor (`com.microsoft.nchwc`),
  which is refused. GroupQueryAttention and masks of four dimensions are not supported.
- **Constants** can be sparse (`sparse_initializer`, `sparse_value`) or in external data files. These must be in the
  folder of the model's path or, if that path is a symbolic link, in the folder of its target.
- **Attributes and operands** that an operator does not have in the model's operator set are refused. The last column of
  the table lists attributes that are accepted and do not change the result of an inference.

## Operators of your own

With `--packed DOMAIN`, the nodes of that domain call functions of your program. The operator `my.ops.Peaks` calls the
function of that name, which the program registers before it opens a session, from Rust ([`Registry`]), C
([c.md](c.md)), Python or [JavaScript](web.md#what-you-can-call). The compiler knows nothing of such an operator:

- The file must declare the element types and shapes of the node's outputs in `value_info`. Shapes can have the symbols
  of the inputs' shapes.
- The function gets the node's operands as tensors and then, if the node has attributes, a map of them: integers,
  floats, texts and lists. It returns a tensor, or a list of tensors if the node has several outputs.
- It runs on the host. Passes neither evaluate it nor look through it; layers before and after it still run on the
  accelerator.

An operator whose meaning you can write down is faster as a [tensor expression](add-an-operator.md).

[`Registry`]: ../runtime/src/registry.rs

## Quantized networks

| form | where it runs |
|---|---|
| QDQ, and operator form (QLinear…), which is handled the same way | accelerator |
| dynamic quantization (DynamicQuantizeLinear before ConvInteger or MatMulInteger) | CPU: zero points and scales of these products are known only at run time. The integers are exact |

[offload.md](offload.md#operators-after-a-quantized-product) lists the operators that can be between a product and its
QuantizeLinear.

An average pooling stays float on the CPU if too many of its averages would be ties, half way between two integers: more
than one in a thousand possible sums, as with equal scales and an even number of elements. At a tie, ONNX's result
depends on the rounding error of a float sum, so no integer rounding matches it.

## Limits

- **RNN, GRU, LSTM** run in floats on the CPU. Up to 256 steps of both directions together are unrolled; more are a
  loop. The length of the sequence must be known at import; the lengths in `sequence_lens` can be computed at run
  time. `clip` limits the sums that enter the gates, but not an LSTM's cell on its way to the output.
- **RoiAlign** needs a `sampling_ratio` above 0. **Col2Im** is for images of two dimensions, **ConvTranspose** for one
  or two.
- **Scatter** with a reduction takes at most 64 updates of one position. If the indices are computed at run time, it
  takes at most 64 updates with a reduction, and at most 2^24 pairs of a position and an update without one. Updates
  with such indices out of range are ignored.
- **TopK** returns up to 64 elements.

## Differences from ONNX Runtime

NaN, infinities and signed zeros give the results of ONNX Runtime, except for these:

| operator | Tilewright | ONNX Runtime |
|---|---|---|
| ReduceMax, ReduceMin, ReduceLogSumExp, MaxPool, GlobalMaxPool | NaN if an element is NaN | NaN or not, by its position |
| ArgMax, ArgMin | the index of the first NaN (the last with `select_last_index`) | depends on the position |
| TopK | a NaN is greater than every number | depends on the position |
| MaxPool of only -infinity | -infinity | the lowest finite number |
| Max, Min, ReduceMax, ReduceMin, MaxPool of -0 and 0 | -0 | either, by the position |
| Cast of a float outside the range of an integer | the nearest integer of the type, 0 for NaN | depends on the processor |
| QuantizeLinear of NaN | the zero point | depends on the processor |
| products of bytes, uint8 with int8 | exact | on processors without VNNI, sums of two products end at the bounds of 16 bits |
| Selu, Celu of -0 | -0 | 0 |
| PRelu with a constant slope of 0 or below, for a result of 0 | 0 | 0 or -0 |
| ConvTranspose with infinite or NaN weights | NaN also in the gaps of a stride | only the products of the data |

A missing bound of Clip is the largest or smallest finite number, as ONNX specifies. A bound that is NaN has no effect.

Resize and Upsample compute sizes and coordinates in single precision and in ONNX Runtime's order:

- A size is the input size times the scale, rounded down.
- `align_corners` uses the integer output size.
- Data that keep all their sizes are copied, whatever the scales.
- Before set 11, nearest rounds up in dimensions that shrink, and down in others.
- The region of `tf_crop_and_resize` also applies to dimensions that keep their size. ONNX Runtime takes such a
  dimension whole.

ONNX's reference evaluator differs from the first three: it uses double precision, the fractional size for
`align_corners`, and copies nothing. So its results can be off by a pixel.

## Operators

| operator | attributes | without effect |
|---|---|---|
";

fn onnx_page() -> String {
    let mut text = String::from(ONNX);
    let list = |names: &[&str]| names.iter().map(|a| format!("`{a}`")).collect::<Vec<_>>().join(", ");
    for o in onnx::operators() {
        text += &format!("| {} | {} | {} |\n", o.name, list(o.attributes), list(o.ignored));
    }
    text
}

const TFLITE_FIELDS: &[(&str, &str)] = &[
    ("`Model.version`", "up to 3"),
    ("`Model.subgraphs`", "the first is the model; others are those of IF and WHILE"),
    ("`Model.signature_defs`, `description`", "ignored: names for people"),
    ("`Model.metadata`", "`TFLITE_METADATA` gives the normalization of images and the class names"),
    ("`Buffer.offset`, `size`", "read: data after the tables"),
    ("`Tensor.external_buffer`", "refused: data in another file"),
    ("`Tensor.sparsity`", "expanded for FLOAT32, FLOAT16, INT8 and INT32; damaged tables are refused"),
    ("`Tensor.is_variable`", "refused if the network would read a value of an earlier run"),
    (
        "`Tensor.shape_signature`",
        "inputs have the sizes of `shape`, as in TFLite if nobody resizes them; open sizes of results follow from the operators",
    ),
    ("`Tensor.has_rank`", "without it, a result with an empty shape must be a scalar; others are refused"),
    ("`Tensor.variant_tensors`", "ignored: the type VARIANT is refused"),
    ("`QuantizationParameters.min`, `max`", "ignored, as by TFLite's kernels"),
    ("`QuantizationParameters.details`", "refused: custom, blockwise and multi-axis quantization"),
    ("`OperatorCode.version`", "ignored: types and fields are checked directly"),
    ("`Operator.mutating_variable_inputs`, `intermediates`", "ignored: no supported operator has them"),
    (
        "`Operator.custom_options`, `large_custom_options`, `builtin_options_2`",
        "ignored: no supported operator has them",
    ),
    ("`quantized_bias_type`", "INT32 or left out"),
    (
        "`keep_num_dims`, `keep_dims`, `new_shape`, `squeeze_dims`",
        "ignored: results have the shapes that the file declares",
    ),
    ("`depth_multiplier`", "ignored: it follows from the shapes"),
    ("`pot_scale_int16`", "ignored: for INT16 only"),
    ("`BatchMatMulOptions.asymmetric_quantize_inputs`", "ignored: both operands have the same type"),
    ("inputs and outputs", "a tensor can be listed more than once as an output, but not as an input"),
];

/// The TFLite page up to the rows of its table of operators.
const TFLITE: &str = "\
# TFLite operators

Generated from the registry in `compiler/src/frontend/tflite/ops/mod.rs` by
`BLESS=1 cargo test -p tilewright-compiler operator_pages`; do not edit.

The importer reads networks of these kinds:

- int8 and uint8;
- float, with constant or computed weights;
- float with float16 or int8 weights that go through DEQUANTIZE;
- float activations with int8 weights;
- int16 activations with int8 weights (16x8), on the CPU;
- weights of 4 bits in place of 8.

Operands that give shapes, axes and the like must be constants.

Results of 8 and 16 bits equal those of LiteRT's reference kernels bit for bit; softmax and logistic of 8 bits can
be one step off.
`make check-tflite` compares all of them. With a factor of 256 or more, every sum except 0 saturates. Two cases are
refused with an error that names the operator:

- a factor of 1 or more whose shift could overflow 32 bits;
- ADD, SUB and SQUARED_DIFFERENCE with a result scale so small that the reference kernels refuse it.

## Operators

| data type in the table | types in the file |
|---|---|
| float | FLOAT32 and FLOAT16 |
| 8 bits | INT8 and UINT8 with a scale and a zero point |
| 16 bits | INT16 with a scale and the zero point 0 |
| all | all of these, FLOAT64, integers without a scale, and BOOL |

| operator | data types | requirements |
|---|---|---|
";

fn tflite_page() -> String {
    let mut text = String::from(TFLITE);
    let mut rows = tflite::operators();
    rows.sort();
    rows.iter().for_each(|[name, types, limits]| text += &format!("| {name} | {types} | {limits} |\n"));
    text += "\n## Other fields of the file\n\n\
             A field from a newer schema is refused in the tables of tensors, quantization, sparsity and options, whatever the\n\
             operator's version. Options of another operator are refused too.\n\n\
             | field | treatment |\n|---|---|\n";
    for (field, what) in TFLITE_FIELDS {
        text += &format!("| {field} | {what} |\n");
    }
    text
}

/// The page of PyTorch's operators up to the rows of its table.
const PYTORCH: &str = "\
# PyTorch operators

Generated from the registry in `compiler/src/frontend/pytorch/ops/mod.rs` by
`BLESS=1 cargo test -p tilewright-compiler operator_pages`; do not edit.

Tilewright reads the programs that `torch.export` makes, as `torch.export.save` writes them:

```python
program = torch.export.export(module.eval(), (torch.randn(1, 3, 224, 224),))
torch.export.save(program, \"model.pt2\")
```

```console
$ tilewright run model.pt2 --input photo.png
```

Files of torch 2.6 to 2.15 are read, as they are traced or after `run_decompositions()`. A file of weights alone
(`state_dict`) or a TorchScript module is refused: it has no graph of operators.

- **Names.** Inputs have the names of the arguments of `forward`. Outputs have their keys if the module returns a dictionary
  or a result with fields (`last_hidden_state`), else their names in the program. `tilewright inspect` lists them.
- **Sizes.** A dimension that was exported as dynamic is a symbol, such as `s77`. It follows from the data, or is given with
  `--bind s77=12`; the outermost dimension is 1 if there are no data. A compiled artifact has one size: samples of another
  outermost size are computed one after the other, so bind it if the module mixes them. A size that is an expression, such as `2*s39`, is
  given as such.
- **Changes in place** (`add_`, `relu_`, `copy_`) are followed through views: a tensor that is a view of the changed one
  changes too. A buffer that the module changes is not kept from one run to the next.
- **Half precision.** `float16` and `bfloat16` are computed in single precision, and are rounded by conversions and at outputs.
- **Quantized modules.** The operators of `quantized_decomposed` that PT2E writes, and fake quantization, become `quantize`
  and `dequantize`, and the passes make their products integer. A convolution's bias is rounded to the scale of its sums, as
  ONNX has it, so results can be a step away from PyTorch's, which keeps the bias a float.
- **Branches and loops.** `cond` and `while_loop` run as such; a branch whose condition is known at import is taken.
- **Safety.** Nothing of a file is executed. Weights that torch up to 2.8 stores as pickles are read by a reader that knows
  tensors only; a pickle that names anything else is refused.

## Limits

- Indices by a mask (`x[mask]`) have a number of results that depends on the data; use `torch.where`.
- `topk` and `sort` return up to 64 elements; `prod` multiplies up to 64.
- LSTM layers with projections, complex numbers and sparse tensors are refused.

## Operators

An operator that ends with `_` and changes its first argument is supported if the operator without it is.

| operator | overloads |
|---|---|
";

fn pytorch_page() -> String {
    let mut text = String::from(PYTORCH);
    for [name, overloads] in pytorch::operators() {
        text += &format!("| {name} | {overloads} |\n");
    }
    text
}

#[test]
fn the_pages_of_operators_are_those_of_the_registries() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    for (name, page) in [("onnx.md", onnx_page()), ("pytorch.md", pytorch_page()), ("tflite.md", tflite_page())] {
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
