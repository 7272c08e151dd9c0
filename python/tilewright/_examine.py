"""The commands `bench`, `profile`, `diff`, `bisect` and `quantize` as functions.

They run the command line's own code, with other threads of Python meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from . import _native
from ._reports import BenchReport, BisectReport, DiffReport, ProfileReport, QuantizeReport

_Path = str | PathLike[str]
_Model = _Path | _native.Graph
_Hw = str | PathLike[str] | _native.Config
_Offload = Literal["all", "auto", "none"]
_Progress = Callable[[str, int, int], Any]


def bench(
    model: _Model,
    *,
    devices: str | Sequence[str] = ("csim", "cpu"),
    hw: _Hw | Sequence[_Hw] = "1x16x16",
    inputs: Any = None,
    offload: _Offload = "all",
    opt_level: int = 2,
    tuned: _Path | None = None,
    dram: str | None = None,
    precision: Literal["f32", "f16"] = "f32",
    threads: int | None = None,
    warm_up: int = 3,
    repetitions: int = 20,
    bind: Mapping[str, int] | None = None,
    shape: Mapping[str, Sequence[int]] | None = None,
    packed: Sequence[str] = (),
    progress: _Progress | None = None,
) -> BenchReport:
    """Compares a model's time on several devices, as ``tilewright bench`` does.

    ``inputs`` is an array, the path of a .npy or .npz file or a picture, a list of them in the model's order, or a dict
    by the inputs' names; without it, the sample of a network of the zoo, or random data. Of several samples the first is
    used. Times are milliseconds. ``progress`` is called with what is done, how much of it, and how much there is.

    Raises ModelError if the model cannot be compiled; a device that is not there is a column with the reason.
    """
    options = _options(locals())
    options["devices"] = [devices] if isinstance(devices, str) else list(devices)
    options["hw"] = [hw] if isinstance(hw, (str, PathLike, _native.Config)) else list(hw)
    (json, text), csv = _native._bench(model, options)
    return BenchReport(json, text, csv)


def profile(
    model: _Model,
    *,
    hw: _Hw = "1x16x16",
    device: str = "csim",
    inputs: Any = None,
    offload: _Offload = "all",
    opt_level: int = 2,
    tuned: _Path | None = None,
    dram: str | None = None,
    warm_up: int = 2,
    repetitions: int = 5,
    bind: Mapping[str, int] | None = None,
    shape: Mapping[str, Sequence[int]] | None = None,
    packed: Sequence[str] = (),
    progress: _Progress | None = None,
) -> ProfileReport:
    """Profiles one run, as ``tilewright profile`` does: cycles of each layer, units at work, memory traffic.

    In a notebook the result shows as the interactive page; ``save`` writes it. ``device`` is ``csim`` or ``rtl``.
    ``inputs`` is as for ``bench``.
    """
    return ProfileReport(*_native._profile(model, _options(locals())))


def diff(
    model: _Model | _native.Artifact,
    *,
    a: str = "fsim",
    b: str = "cpu",
    hw: _Hw | None = None,
    hw_b: _Hw | None = None,
    inputs: Any = None,
    tolerance: str | float = "0",
    offload: _Offload = "all",
    fallback: Literal["cpu", "cuda"] | None = None,
    precision: Literal["f32", "f16"] = "f32",
    opt_level: int = 2,
    tuned: _Path | None = None,
    schedules: _Path | None = None,
    preprocess: str | None = None,
    bind: Mapping[str, int] | None = None,
    shape: Mapping[str, Sequence[int]] | None = None,
    packed: Sequence[str] = (),
    progress: _Progress | None = None,
) -> DiffReport:
    """Compares a model's values on two devices, in the order of the graph, as ``tilewright diff`` does.

    ``a`` and ``b`` are devices; ``b`` can also be arrays (``npz:FILE``) or a folder of ``run --dump-tensors``
    (``dir:DIR``). ``tolerance`` is a number of steps between integers (``1``), a fraction of the greatest magnitude
    between floats (``1e-4``), or both (``"1,1e-4"``). Each item of ``inputs`` (as for ``bench``) can hold several runs.
    """
    options = _options(locals())
    options["tolerance"] = str(tolerance)
    return DiffReport(*_native._diff(model, options))


def bisect(
    model: _Model,
    *,
    inputs: Any = None,
    tolerance: str | float = "0,1e-5",
    opt_level: int = 2,
    preprocess: str | None = None,
    bind: Mapping[str, int] | None = None,
    shape: Mapping[str, Sequence[int]] | None = None,
    packed: Sequence[str] = (),
) -> BisectReport:
    """Finds the first rewrite of a model's graph that changes its result, as ``tilewright bisect`` does.

    The passes include those of ``add_pass``. ``inputs`` and ``tolerance`` are as for ``diff``.
    """
    options = _options(locals(), progress=None)
    options["tolerance"] = str(tolerance)
    return BisectReport(*_native._bisect(model, options))


def quantize(
    model: _Path,
    output: _Path,
    *,
    calibrate: Any,
    method: Literal["auto", "min-max", "percentile", "mse", "entropy"] = "auto",
    percentile: float | None = None,
    weights: Literal[7, 8] = 8,
    keep_float: Sequence[str] = (),
    weak: float = 10.0,
    per_tensor: bool = False,
    bias_correction: bool = False,
    equalize: bool = False,
    crops: int | None = None,
    preprocess: str | None = None,
    eval: Any = None,
    labels: Any = None,
    bind: Mapping[str, int] | None = None,
    shape: Mapping[str, Sequence[int]] | None = None,
    packed: Sequence[str] = (),
    progress: _Progress | None = None,
) -> QuantizeReport:
    """Converts a float model to int8 and writes it to ``output`` as ONNX, as ``tilewright quantize`` does.

    ``calibrate`` has the samples, best 100 or more: an array whose first dimension counts them, a dict of such arrays
    by the inputs' names, a .npy or .npz file, or a folder of pictures. ``eval`` (in the same form) and ``labels`` (an
    array of integers, or its file) compare the accuracy of both models. ``weak`` is in decibels.

    Raises InputError for samples that do not fit, and ModelError if the model cannot be quantized.
    """
    return QuantizeReport(*_native._quantize(model, _options(locals(), inputs=None, opt_level=2)))


def _options(given: dict[str, Any], **more: Any) -> dict[str, Any]:
    options = {name: value for name, value in given.items() if name != "model"} | more
    for name in ("bind", "shape"):
        if options[name] is not None:
            options[name] = dict(options[name])
    for name in ("packed", "keep_float"):
        if name in options:
            options[name] = list(options[name])
    return options
