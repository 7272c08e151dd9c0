"""Tilewright: compile trained networks for deep-learning accelerators, simulate them, and run them.

    >>> import tilewright as tw
    >>> artifact = tw.compile("zoo:lenet-int8", hw="1x8x8")
    >>> session = artifact.session("csim")
    >>> outputs = session.run(image)
"""

from collections.abc import Callable as _Callable
from typing import Any as _Any
from typing import TypeVar as _TypeVar
from typing import overload as _overload

try:
    from . import _native as _native
except ImportError as _error:
    if "libLLVM" not in str(_error):
        raise
    raise ImportError(
        f"this build of tilewright has the compiler, which loads LLVM 19, but: {_error}; install it (on Debian and "
        "Ubuntu: apt-get install libllvm19), or use the wheel without the compiler (make wheel COMPILER=no)"
    ) from None

from ._errors import (
    ArtifactError,
    BusyError,
    CallError,
    ClosedError,
    ConfigError,
    DeviceError,
    Error,
    GraphError,
    InputError,
    ModelError,
    NotFoundError,
    PassError,
)
from ._examine import bench, bisect, diff, profile, quantize
from . import ops
from ._native import (
    Artifact,
    BuilderValue,
    Config,
    Device,
    Expression,
    Function,
    Graph,
    GraphBuilder,
    Manifest,
    Module,
    Node,
    Remote,
    ScheduleFile,
    Server,
    Session,
    Tensor,
    Value,
    VirtualBoard,
    __version__,
    _add_pass,
    _manifest,
    _register,
    compile,
    connect,
    device,
    function,
    functions,
    has_cuda,
    has_llvm,
    jit,
    load,
    passes,
    remove_pass,
    serve,
    unregister,
    virtual_board,
)
from ._network import compute, from_torch
from ._reports import (
    BenchReport,
    BisectReport,
    DiffReport,
    Networks,
    ProfileReport,
    QuantizeReport,
    Report,
    SynthReport,
    Targets,
    TuneReport,
)
from .ops import (
    add,
    arg_reduce,
    avg_pool2d,
    bilinear_u8,
    binary,
    cast,
    clip,
    concat,
    conv2d,
    conv_transpose2d,
    dense,
    dequantize,
    expand,
    gather,
    gather_elements,
    global_avg_pool,
    hybrid_conv2d,
    hybrid_dense,
    layer_norm,
    lookup,
    matmul,
    max_pool2d,
    pad,
    qadd,
    qavg_pool2d,
    qmatmul,
    qmul,
    qsquared_difference,
    reduce,
    relu,
    requantize,
    resample,
    rescale,
    reshape,
    select,
    shift_sign,
    softmax,
    sum_pool2d,
    transpose,
    unary,
)
from ._tools import Schedules, boards, make_network, schedule, synth, targets, tune, zoo

__all__ = [
    "Artifact",
    "ArtifactError",
    "BenchReport",
    "BisectReport",
    "BuilderValue",
    "BusyError",
    "CallError",
    "ClosedError",
    "Config",
    "ConfigError",
    "Device",
    "DeviceError",
    "DiffReport",
    "Error",
    "Expression",
    "Function",
    "Graph",
    "GraphBuilder",
    "GraphError",
    "InputError",
    "Manifest",
    "ModelError",
    "Module",
    "Networks",
    "Node",
    "NotFoundError",
    "PassError",
    "ProfileReport",
    "QuantizeReport",
    "Remote",
    "Report",
    "ScheduleFile",
    "Schedules",
    "Server",
    "Session",
    "SynthReport",
    "Targets",
    "Tensor",
    "TuneReport",
    "Value",
    "VirtualBoard",
    "__version__",
    "add",
    "add_pass",
    "arg_reduce",
    "avg_pool2d",
    "bench",
    "bilinear_u8",
    "binary",
    "bisect",
    "boards",
    "cast",
    "clip",
    "compile",
    "compute",
    "concat",
    "connect",
    "conv2d",
    "conv_transpose2d",
    "dense",
    "dequantize",
    "device",
    "diff",
    "expand",
    "from_torch",
    "function",
    "functions",
    "gather",
    "gather_elements",
    "global_avg_pool",
    "has_cuda",
    "has_llvm",
    "hybrid_conv2d",
    "hybrid_dense",
    "jit",
    "layer_norm",
    "load",
    "lookup",
    "make_network",
    "manifest",
    "matmul",
    "max_pool2d",
    "ops",
    "pad",
    "passes",
    "profile",
    "qadd",
    "qavg_pool2d",
    "qmatmul",
    "qmul",
    "qsquared_difference",
    "quantize",
    "reduce",
    "register",
    "relu",
    "remove_pass",
    "requantize",
    "resample",
    "rescale",
    "reshape",
    "schedule",
    "select",
    "serve",
    "shift_sign",
    "softmax",
    "sum_pool2d",
    "synth",
    "targets",
    "transpose",
    "tune",
    "unary",
    "unregister",
    "virtual_board",
    "zoo",
]

_F = _TypeVar("_F", bound=_Callable[..., _Any])


@_overload
def register(name: str, callable: _F) -> _F: ...
@_overload
def register(name: str) -> _Callable[[_F], _F]: ...
def register(name: str, callable: _Callable[..., _Any] | None = None) -> _Any:
    """Registers a function under a name, in place of one that has the name.

    Packed steps of models find it there, and so do programs in Rust and C of the same process. Tensors come as NumPy
    arrays, which the function must not write. Without ``callable`` it is a decorator: ``@tilewright.register("name")``.
    Returns the function itself.
    """
    if callable is None:

        def decorate(function: _F) -> _F:
            _register(name, function)
            return function

        return decorate
    _register(name, callable)
    return callable


_P = _TypeVar("_P", bound=_Callable[[Graph], Graph | None])


def add_pass(name: str, *, after: str, exact: bool = True) -> _Callable[[_P], _P]:
    """Adds a pass to everything that this process compiles from now on: ``@tilewright.add_pass("name", after="fold_pad")``.

    The function gets the graph and returns another one with the same inputs and outputs, or None to change nothing. It
    runs after the last pass named ``after``, at the optimization levels that have such a pass (``passes(level)`` lists
    them). The graph that it returns is verified, and the pass shows in ``dump_ir`` and in bisection like the
    compiler's own. ``exact`` says that it changes no result, apart from the rounding of floats.
    """

    def decorate(change: _P) -> _P:
        _add_pass(name, after, change, exact)
        return change

    return decorate


def manifest(artifact: Artifact) -> Manifest:
    """The description of an artifact as an object with a text and a JSON form; ``artifact.manifest`` is its dict."""
    return _manifest(artifact)
