"""A function for each operator of graphs. Written by `python/tests/write_ops.py`.

Operands are values of a `GraphBuilder`, or arrays, which become constants. Types and shapes are checked at once; errors
name the operator and what does not fit. Attributes that are left out have their defaults.
"""

from __future__ import annotations

from typing import Any

from ._native import BuilderValue
from ._network import Operand, node


def add(a: Operand, b: Operand, *, name: str = "") -> BuilderValue:
    """`a + b`; integers wrap, shapes broadcast as in NumPy."""
    return node("add", [a, b], name, {})


def arg_reduce(
    data: Operand,
    *,
    axis: Any,
    keep_dims: Any = None,
    greatest: Any = None,
    last: Any = None,
    dtype: Any = None,
    name: str = "",
) -> BuilderValue:
    """The index, i32 or i64, of the greatest or least element along a dimension. If there is a NaN, it is the NaN's
    index. Data: any numbers.

    axis: The dimension. Takes an integer (usize).

    keep_dims: Keeps the dimension, with size 1, instead of removing it. Takes `true` or `false` (default false).

    greatest: Finds the greatest element instead of the least. Takes `true` or `false` (default true).

    last: Returns the last of equal elements instead of the first. Takes `true` or `false` (default false).

    dtype: Element type of the result. Takes an element type (default i64).
    """
    return node("arg_reduce", [data], name, {"axis": axis, "keep_dims": keep_dims, "greatest": greatest, "last": last, "dtype": dtype})


def avg_pool2d(
    data: Operand,
    *,
    kernel: Any,
    strides: Any = None,
    pads: Any = None,
    count_include_pad: Any = None,
    layout: Any = None,
    lo: Any = None,
    hi: Any = None,
    unsigned: Any = None,
    name: str = "",
) -> BuilderValue:
    """The mean of each window over height and width.

    kernel: Height and width of the window. Takes a list of the operator's length.

    strides: Steps of height and width. Takes a list of the operator's length (default [1, 1]).

    pads: Top, left, bottom, right. Takes a list of the operator's length (default [0, 0, 0, 0]).

    count_include_pad: Divides by the kernel's size, with padding as 0, instead of by the number of elements
    inside the image. Takes `true` or `false` (default false).

    layout: Order of the data's dimensions. Takes `nhwc` or `nchw` (default nhwc).

    lo: Least i8 result. Takes an integer (i32) (default -128).

    hi: Greatest i8 result. Takes an integer (i32) (default 127).

    unsigned: The i8 data are unsigned bytes less 128; the mean is that of the unsigned bytes, so ties round up.
    Takes `true` or `false` (default false).
    """
    return node("avg_pool2d", [data], name, {"kernel": kernel, "strides": strides, "pads": pads, "count_include_pad": count_include_pad, "layout": layout, "lo": lo, "hi": hi, "unsigned": unsigned})


def bilinear_u8(
    data: Operand,
    row_before: Operand,
    row_after: Operand,
    row_distance: Operand,
    column_before: Operand,
    column_after: Operand,
    column_distance: Operand,
    *,
    offset: Any = None,
    name: str = "",
) -> BuilderValue:
    """Resizes an image `[N,H,W,C]` as TFLite's uint8 kernel does; the i8 data are unsigned bytes less 128.

    offset: Added before truncation. Takes a number (default 0.0).
    """
    return node("bilinear_u8", [data, row_before, row_after, row_distance, column_before, column_after, column_distance], name, {"offset": offset})


def binary(a: Operand, b: Operand, *, kind: Any, name: str = "") -> BuilderValue:
    """A function of two elements of the same type; shapes broadcast as in NumPy. Integers wrap.

    kind: The function. Takes a function such as `mul`.
    """
    return node("binary", [a, b], name, {"kind": kind})


def bitcast(data: Operand, *, dtype: Any, name: str = "") -> BuilderValue:
    """The elements of another type with the same bits. Both types have the same size, and neither is bool.

    dtype: The element type of the result. Takes an element type.
    """
    return node("bitcast", [data], name, {"dtype": dtype})


def cast(data: Operand, *, dtype: Any, name: str = "") -> BuilderValue:
    """Each element converted to another type: floats become integers by truncation and saturation (NaN becomes 0),
    integers wrap, and a boolean is true for anything but 0.

    dtype: The element type of the result. Takes an element type.
    """
    return node("cast", [data], name, {"dtype": dtype})


def clip(data: Operand, *, lo: Any, hi: Any, name: str = "") -> BuilderValue:
    """`min(max(data, lo), hi)`, numbers; NaN stays NaN. With integers the bounds are integers of the data's type.

    lo: Lower bound. Takes a number.

    hi: Upper bound. Takes a number.
    """
    return node("clip", [data], name, {"lo": lo, "hi": hi})


def concat(*data: Operand, axis: Any, name: str = "") -> BuilderValue:
    """The operands joined along a dimension; they have the same element type, and all other sizes are equal.

    axis: The dimension. Takes an integer (usize).
    """
    return node("concat", [*data], name, {"axis": axis})


def conv2d(
    data: Operand,
    weight: Operand,
    bias: Operand | None = None,
    *,
    strides: Any = None,
    pads: Any = None,
    dilations: Any = None,
    groups: Any = None,
    layout: Any = None,
    data_zero_point: Any = None,
    weight_zero_point: Any = None,
    name: str = "",
) -> BuilderValue:
    """Convolution of `data` with `weight [O, KH, KW, I/groups]`, plus `bias [O]` if the data are floats.

    strides: Steps of height and width. Takes a list of the operator's length (default [1, 1]).

    pads: Top, left, bottom, right. Takes a list of the operator's length (default [0, 0, 0, 0]).

    dilations: Distance between taps in height and width. Takes a list of the operator's length (default [1, 1]).

    groups: Number of groups that input and output channels are split into. Takes an integer (usize) (default 1).

    layout: Order of the data's dimensions. Takes `nhwc` or `nchw` (default nhwc).

    data_zero_point: Zero point of i8 data; 0 with floats. Takes an integer (i32) (default 0).

    weight_zero_point: Zero point of i8 weights; 0 with other weights. Takes an integer (i32) (default 0).
    """
    return node("conv2d", [data, weight, bias], name, {"strides": strides, "pads": pads, "dilations": dilations, "groups": groups, "layout": layout, "data_zero_point": data_zero_point, "weight_zero_point": weight_zero_point})


def conv_transpose2d(
    data: Operand,
    weight: Operand,
    bias: Operand | None = None,
    *,
    strides: Any = None,
    pads: Any = None,
    size: Any,
    dilations: Any = None,
    groups: Any = None,
    layout: Any = None,
    data_zero_point: Any = None,
    weight_zero_point: Any = None,
    name: str = "",
) -> BuilderValue:
    """Transposed convolution of `data` with `weight [O, KH, KW, I/groups]`, plus `bias [O]` if the data are floats.

    strides: Distance between the windows of neighboring elements in height and width. Takes a list of the
    operator's length (default [1, 1]).

    pads: Rows cut off at the top of the result, and columns at its left. Takes a list of the operator's length
    (default [0, 0]).

    size: Height and width of the result. Takes a list of the operator's length.

    dilations: Distance between taps in height and width. Takes a list of the operator's length (default [1, 1]).

    groups: Number of groups that input and output channels are split into. Takes an integer (usize) (default 1).

    layout: Order of the data's dimensions. Takes `nhwc` or `nchw` (default nhwc).

    data_zero_point: Zero point of i8 data; 0 with floats. Takes an integer (i32) (default 0).

    weight_zero_point: Zero point of i8 weights; 0 with other weights. Takes an integer (i32) (default 0).
    """
    return node("conv_transpose2d", [data, weight, bias], name, {"strides": strides, "pads": pads, "size": size, "dilations": dilations, "groups": groups, "layout": layout, "data_zero_point": data_zero_point, "weight_zero_point": weight_zero_point})


def dense(
    data: Operand,
    weight: Operand,
    bias: Operand | None = None,
    *,
    data_zero_point: Any = None,
    weight_zero_point: Any = None,
    name: str = "",
) -> BuilderValue:
    """`data [M, K]` times the transpose of `weight [N, K]`, plus `bias [N]` if the data are floats: `[M, N]`.

    data_zero_point: Zero point of i8 data; 0 with floats. Takes an integer (i32) (default 0).

    weight_zero_point: Zero point of i8 weights; 0 with other weights. Takes an integer (i32) (default 0).
    """
    return node("dense", [data, weight, bias], name, {"data_zero_point": data_zero_point, "weight_zero_point": weight_zero_point})


def dequantize(data: Operand, *, scale: Any, zero_point: Any = None, axis: Any = None, name: str = "") -> BuilderValue:
    """`(data - zero_point) * scale`; i8, u8 or i32 -> f32.

    scale: Real value of one step. Takes a list.

    zero_point: The integer that represents 0. Takes a list (default [0]).

    axis: The dimension that has a scale per index, if there are several scales. Takes an integer (usize) (default
    0).
    """
    return node("dequantize", [data], name, {"scale": scale, "zero_point": zero_point, "axis": axis})


def expand(data: Operand, *, shape: Any, name: str = "") -> BuilderValue:
    """The data broadcast to a shape as in NumPy; any element type.

    shape: Sizes of the result. Takes a list.
    """
    return node("expand", [data], name, {"shape": shape})


def gather(data: Operand, indices: Operand, *, axis: Any, name: str = "") -> BuilderValue:
    """The data's slices at the indices (i32 or i64) along a dimension; any element type.

    axis: The dimension. Takes an integer (usize).
    """
    return node("gather", [data, indices], name, {"axis": axis})


def gather_elements(data: Operand, indices: Operand, *, axis: Any, name: str = "") -> BuilderValue:
    """Each result element is the data's element at the same position, except along `axis`, where the index (i32 or
    i64) at that position selects it.

    axis: The dimension. Takes an integer (usize).
    """
    return node("gather_elements", [data, indices], name, {"axis": axis})


def global_avg_pool(
    data: Operand,
    *,
    layout: Any = None,
    lo: Any = None,
    hi: Any = None,
    name: str = "",
) -> BuilderValue:
    """The mean over height and width, which become 1.

    layout: Order of the data's dimensions. Takes `nhwc` or `nchw` (default nhwc).

    lo: Least i8 result. Takes an integer (i32) (default -128).

    hi: Greatest i8 result. Takes an integer (i32) (default 127).
    """
    return node("global_avg_pool", [data], name, {"layout": layout, "lo": lo, "hi": hi})


def hybrid_conv2d(
    data: Operand,
    weight: Operand,
    scale: Operand,
    bias: Operand,
    *,
    strides: Any = None,
    pads: Any = None,
    dilations: Any = None,
    groups: Any = None,
    asymmetric: Any = None,
    name: str = "",
) -> BuilderValue:
    """Convolution of `data [N, H, W, I]` (f32) with `weight [O, KH, KW, I/groups]` (i8, with `scale [O]`), plus
    `bias [O]`: f32.

    strides: Steps of height and width. Takes a list of the operator's length (default [1, 1]).

    pads: Top, left, bottom, right. Takes a list of the operator's length (default [0, 0, 0, 0]).

    dilations: Distance between taps in height and width. Takes a list of the operator's length (default [1, 1]).

    groups: Number of groups that input and output channels are split into. Takes an integer (usize) (default 1).

    asymmetric: Quantizes by the range of an image instead of by its greatest magnitude. Takes `true` or `false`
    (default false).
    """
    return node("hybrid_conv2d", [data, weight, scale, bias], name, {"strides": strides, "pads": pads, "dilations": dilations, "groups": groups, "asymmetric": asymmetric})


def hybrid_dense(
    data: Operand,
    weight: Operand,
    scale: Operand,
    bias: Operand,
    *,
    asymmetric: Any = None,
    name: str = "",
) -> BuilderValue:
    """`data [M, K]` (f32) times the transpose of `weight [N, K]` (i8, with `scale [N]`), plus `bias [N]`: f32 `[M,
    N]`.

    asymmetric: Quantizes by the range of a row instead of by its greatest magnitude. Takes `true` or `false`
    (default false).
    """
    return node("hybrid_dense", [data, weight, scale, bias], name, {"asymmetric": asymmetric})


def layer_norm(
    data: Operand,
    scale: Operand | None = None,
    bias: Operand | None = None,
    *,
    axis: Any,
    epsilon: Any = None,
    name: str = "",
) -> BuilderValue:
    """`(data - mean) / sqrt(variance + epsilon)`, with mean and variance over the dimensions from `axis` on, times
    `scale`, plus `bias`. Both are optional, and have the sizes of these dimensions; all are floats of one type.

    axis: The first dimension that is normalized. Takes an integer (usize).

    epsilon: Added to the variance. Takes a number (default 1e-5).
    """
    return node("layer_norm", [data, scale, bias], name, {"axis": axis, "epsilon": epsilon})


def lookup(data: Operand, table: Operand, *, name: str = "") -> BuilderValue:
    """`table[data + 128]`, i8 -> i8, with a table of 256 bytes: any function of one quantized operand."""
    return node("lookup", [data, table], name, {})


def matmul(a: Operand, b: Operand, *, name: str = "") -> BuilderValue:
    """`a [..., M, K]` times `b [..., K, N]`, floats; the outer dimensions broadcast."""
    return node("matmul", [a, b], name, {})


def max_pool2d(
    data: Operand,
    *,
    kernel: Any,
    strides: Any = None,
    pads: Any = None,
    dilations: Any = None,
    layout: Any = None,
    name: str = "",
) -> BuilderValue:
    """The greatest element of each window over height and width, floats (NaN if one is NaN) or i8. Padding is less
    than any element.

    kernel: Height and width of the window. Takes a list of the operator's length.

    strides: Steps of height and width. Takes a list of the operator's length (default [1, 1]).

    pads: Top, left, bottom, right. Takes a list of the operator's length (default [0, 0, 0, 0]).

    dilations: Distance between taps in height and width. Takes a list of the operator's length (default [1, 1]).

    layout: Order of the data's dimensions. Takes `nhwc` or `nchw` (default nhwc).
    """
    return node("max_pool2d", [data], name, {"kernel": kernel, "strides": strides, "pads": pads, "dilations": dilations, "layout": layout})


def narrow(data: Operand, *, float: Any, saturate: Any = None, name: str = "") -> BuilderValue:
    """Each f32 rounded to the nearest number of a narrower type, ties to even; it stays an f32. For `f8e8m0` it is
    the least power of two that is not less.

    float: The narrower type. Takes a float type of at most 16 bits, such as `bf16`.

    saturate: A number beyond the greatest becomes the greatest. Otherwise it becomes infinity, or NaN if the type
    has no infinity. `f4e2m1` always saturates, and has -0 for NaN. Takes `true` or `false` (default false).
    """
    return node("narrow", [data], name, {"float": float, "saturate": saturate})


def pad(data: Operand, *, before: Any, after: Any, value: Any = None, name: str = "") -> BuilderValue:
    """`data` with `before` and `after` elements of `value` added to each dimension, of any type.

    before: Elements added at the start, one number per dimension. Takes a list.

    after: Elements added at the end, one number per dimension. Takes a list.

    value: The border's value, which the data's type must have. Takes a number (default 0.0).
    """
    return node("pad", [data], name, {"before": before, "after": after, "value": value})


def qadd(a: Operand, b: Operand, *, params: Any, name: str = "") -> BuilderValue:
    """[`num::quantized_add`] of two i8 tensors -> i8; their shapes broadcast.

    params: Zero point, multiplier and shift of `a`, of `b` and of the result, then the left shift, `lo` and `hi`.
    Takes the 12 integers of a quantized addition.
    """
    return node("qadd", [a, b], name, {"params": params})


def qavg_pool2d(
    data: Operand,
    *,
    kernel: Any,
    strides: Any = None,
    pads: Any = None,
    layout: Any = None,
    data_zero_point: Any = None,
    multiplier: Any,
    shift: Any,
    zero_point: Any = None,
    lo: Any = None,
    hi: Any = None,
    mode: Any = None,
    name: str = "",
) -> BuilderValue:
    """[`num::requantize`] of the sum of `data - data_zero_point` over the elements of each window inside the image,
    i8 -> i8. The multiplier depends on the number of those elements and includes the division by it.

    kernel: Height and width of the window. Takes a list of the operator's length.

    strides: Steps of height and width. Takes a list of the operator's length (default [1, 1]).

    pads: Top, left, bottom, right; smaller than the window. Takes a list of the operator's length (default [0, 0,
    0, 0]).

    layout: Order of the data's dimensions. Takes `nhwc` or `nchw` (default nhwc).

    data_zero_point: Zero point of the data. Takes an integer (i32) (default 0).

    multiplier: Fixed-point factors, fractions of 2^31, for 1 element up to the whole window. Takes a list.

    shift: Shifts, one per multiplier; `mode` defines their sign. Takes a list.

    zero_point: Added after scaling. Takes an integer (i32) (default 0).

    lo: Least result. Takes an integer (i32) (default -128).

    hi: Greatest result. Takes an integer (i32) (default 127).

    mode: How the product is rounded. Takes `double` or `single` (default double).
    """
    return node("qavg_pool2d", [data], name, {"kernel": kernel, "strides": strides, "pads": pads, "layout": layout, "data_zero_point": data_zero_point, "multiplier": multiplier, "shift": shift, "zero_point": zero_point, "lo": lo, "hi": hi, "mode": mode})


def qmatmul(
    a: Operand,
    b: Operand,
    *,
    a_zero_point: Any = None,
    b_zero_point: Any = None,
    name: str = "",
) -> BuilderValue:
    """`a - a_zero_point [..., M, K]` times `b - b_zero_point [..., K, N]`, i8 -> i32, wrapping; the outer dimensions
    broadcast.

    a_zero_point: Zero point of the first operand. Takes an integer (i32) (default 0).

    b_zero_point: Zero point of the second operand. Takes an integer (i32) (default 0).
    """
    return node("qmatmul", [a, b], name, {"a_zero_point": a_zero_point, "b_zero_point": b_zero_point})


def qmul(
    a: Operand,
    b: Operand,
    *,
    a_zero_point: Any = None,
    b_zero_point: Any = None,
    multiplier: Any,
    shift: Any,
    zero_point: Any = None,
    lo: Any = None,
    hi: Any = None,
    mode: Any = None,
    name: str = "",
) -> BuilderValue:
    """[`num::quantized_mul`] of two i8 tensors -> i8; their shapes broadcast.

    a_zero_point: Zero point of the first operand. Takes an integer (i32) (default 0).

    b_zero_point: Zero point of the second operand. Takes an integer (i32) (default 0).

    multiplier: Fixed-point factor, a fraction of 2^31. Takes an integer (i32).

    shift: Shift; `mode` defines its sign. Takes an integer (i8).

    zero_point: Added after scaling. Takes an integer (i32) (default 0).

    lo: Least result. Takes an integer (i32) (default -128).

    hi: Greatest result. Takes an integer (i32) (default 127).

    mode: How the product is rounded. Takes `double` or `single` (default double).
    """
    return node("qmul", [a, b], name, {"a_zero_point": a_zero_point, "b_zero_point": b_zero_point, "multiplier": multiplier, "shift": shift, "zero_point": zero_point, "lo": lo, "hi": hi, "mode": mode})


def qsquared_difference(a: Operand, b: Operand, *, params: Any, name: str = "") -> BuilderValue:
    """[`num::quantized_squared_difference`] of two i8 tensors -> i8; their shapes broadcast.

    params: Zero point, multiplier and shift of `a`, of `b` and of the result, then the left shift, `lo` and `hi`.
    Takes the 12 integers of a quantized addition.
    """
    return node("qsquared_difference", [a, b], name, {"params": params})


def quantize(
    data: Operand,
    *,
    scale: Any,
    zero_point: Any = None,
    axis: Any = None,
    rounding: Any = None,
    dtype: Any = None,
    name: str = "",
) -> BuilderValue:
    """`round(data / scale) + zero_point`, clamped to the result's range; f32 -> i8 or u8. NaN becomes the zero
    point.

    scale: Real value of one step. Takes a list.

    zero_point: The integer that represents 0. Takes a list (default [0]).

    axis: The dimension that has a scale per index, if there are several scales. Takes an integer (usize) (default
    0).

    rounding: How ties are rounded. Takes `half_even` or `half_away` (default half_even).

    dtype: Element type of the result: i8 or u8. Takes an element type (default i8).
    """
    return node("quantize", [data], name, {"scale": scale, "zero_point": zero_point, "axis": axis, "rounding": rounding, "dtype": dtype})


def reduce(data: Operand, *, kind: Any, axes: Any, keep_dims: Any = None, name: str = "") -> BuilderValue:
    """Reduces all elements along some dimensions to one value.

    kind: The function. Takes `sum`, `mean`, `max` or `min`.

    axes: The dimensions, ascending. Takes a list.

    keep_dims: Keeps the dimensions, with size 1, instead of removing them. Takes `true` or `false` (default
    false).
    """
    return node("reduce", [data], name, {"kind": kind, "axes": axes, "keep_dims": keep_dims})


def relu(data: Operand, *, name: str = "") -> BuilderValue:
    """`max(data, 0)` of numbers; NaN stays NaN."""
    return node("relu", [data], name, {})


def requantize(
    acc: Operand,
    bias: Operand,
    multiplier: Operand,
    shift: Operand,
    *,
    axis: Any,
    zero_point: Any = None,
    lo: Any = None,
    hi: Any = None,
    mode: Any = None,
    name: str = "",
) -> BuilderValue:
    """[`num::requantize`] of each element of `acc` (i32) -> i8. `bias [C]`, `multiplier [C]` and `shift [C]` (i32)
    are indexed along `axis`.

    axis: The channel dimension. Takes an integer (usize).

    zero_point: Added after scaling. Takes an integer (i32) (default 0).

    lo: Least result. Takes an integer (i32) (default -128).

    hi: Greatest result. Takes an integer (i32) (default 127).

    mode: How the product is rounded. Takes `double` or `single` (default double).
    """
    return node("requantize", [acc, bias, multiplier, shift], name, {"axis": axis, "zero_point": zero_point, "lo": lo, "hi": hi, "mode": mode})


def resample(data: Operand, index: Operand, weight: Operand, *, axis: Any, name: str = "") -> BuilderValue:
    """Element `o` along a dimension is the sum over taps `t` of `data[index[o, t]] * weight[o, t]`.

    axis: The dimension. Takes an integer (usize).
    """
    return node("resample", [data, index, weight], name, {"axis": axis})


def rescale(
    data: Operand,
    *,
    data_zero_point: Any = None,
    multiplier: Any,
    shift: Any,
    zero_point: Any = None,
    lo: Any = None,
    hi: Any = None,
    mode: Any = None,
    name: str = "",
) -> BuilderValue:
    """[`num::requantize`] of `data - data_zero_point`, i8 -> i8.

    data_zero_point: Zero point of the data. Takes an integer (i32) (default 0).

    multiplier: Fixed-point factor, a fraction of 2^31. Takes an integer (i32).

    shift: Shift; `mode` defines its sign. Takes an integer (i8).

    zero_point: Added after scaling. Takes an integer (i32) (default 0).

    lo: Least result. Takes an integer (i32) (default -128).

    hi: Greatest result. Takes an integer (i32) (default 127).

    mode: How the product is rounded. Takes `double` or `single` (default double).
    """
    return node("rescale", [data], name, {"data_zero_point": data_zero_point, "multiplier": multiplier, "shift": shift, "zero_point": zero_point, "lo": lo, "hi": hi, "mode": mode})


def reshape(data: Operand, *, shape: Any, name: str = "") -> BuilderValue:
    """The same elements, row-major, with another shape; any element type.

    shape: The new sizes. One of them can be -1: it is computed from the others. 0 copies the size of the same
    dimension. Takes a list.
    """
    return node("reshape", [data], name, {"shape": shape})


def select(condition: Operand, a: Operand, b: Operand, *, name: str = "") -> BuilderValue:
    """`a` where the condition (bool) is true, else `b`; the three shapes broadcast as in NumPy. Any element type.
    """
    return node("select", [condition, a, b], name, {})


def shift_sign(data: Operand, *, name: str = "") -> BuilderValue:
    """`data - 128` from u8 to i8, `data + 128` from i8 to u8: flips the highest bit."""
    return node("shift_sign", [data], name, {})


def slice_(data: Operand, *, starts: Any, sizes: Any, steps: Any, name: str = "") -> BuilderValue:
    """Element `i` along each dimension is the data's element `start + i * step`; any element type.

    starts: The first element, one per dimension. Takes a list.

    sizes: Number of elements, one per dimension. Takes a list.

    steps: Distance between elements, one per dimension; negative steps go backward. Takes a list.
    """
    return node("slice", [data], name, {"starts": starts, "sizes": sizes, "steps": steps})


def softmax(
    data: Operand,
    *,
    axis: Any,
    beta: Any = None,
    input_scale: Any = None,
    output_scale: Any = None,
    output_zero_point: Any = None,
    name: str = "",
) -> BuilderValue:
    """`exp(beta * x)` divided by its sum along `axis`.

    axis: The dimension along which results sum to 1. Takes an integer (usize).

    beta: Factor of the exponent. Takes a number (default 1.0).

    input_scale: Scale of i8 data; 1 with floats. Takes a number (default 1.0).

    output_scale: Scale of the i8 result; 1 with floats. Takes a number (default 1.0).

    output_zero_point: Zero point of the i8 result; 0 with floats. Takes an integer (i32) (default 0).
    """
    return node("softmax", [data], name, {"axis": axis, "beta": beta, "input_scale": input_scale, "output_scale": output_scale, "output_zero_point": output_zero_point})


def sum_pool2d(
    data: Operand,
    *,
    kernel: Any,
    strides: Any = None,
    pads: Any = None,
    layout: Any = None,
    data_zero_point: Any = None,
    name: str = "",
) -> BuilderValue:
    """The sum of `data - data_zero_point` over each window of height and width, i8 -> i32; padding adds nothing.

    kernel: Height and width of the window. Takes a list of the operator's length.

    strides: Steps of height and width. Takes a list of the operator's length (default [1, 1]).

    pads: Top, left, bottom, right. Takes a list of the operator's length (default [0, 0, 0, 0]).

    layout: Order of the data's dimensions. Takes `nhwc` or `nchw` (default nhwc).

    data_zero_point: Zero point of the data. Takes an integer (i32) (default 0).
    """
    return node("sum_pool2d", [data], name, {"kernel": kernel, "strides": strides, "pads": pads, "layout": layout, "data_zero_point": data_zero_point})


def transpose(data: Operand, *, perm: Any, name: str = "") -> BuilderValue:
    """Dimension `i` of the result is dimension `perm[i]` of the data; any element type.

    perm: A permutation of the dimensions. Takes a list.
    """
    return node("transpose", [data], name, {"perm": perm})


def unary(data: Operand, *, kind: Any, alpha: Any = None, beta: Any = None, name: str = "") -> BuilderValue:
    """A function of each float; `abs`, `neg` and `sign` also of integers (wrapping), `not` only of booleans and of
    each bit of integers.

    kind: The function. Takes a function such as `exp`.

    alpha: First parameter, for functions that have one. Takes a number (default 0.0).

    beta: Second parameter, for functions that have one. Takes a number (default 0.0).
    """
    return node("unary", [data], name, {"kind": kind, "alpha": alpha, "beta": beta})
