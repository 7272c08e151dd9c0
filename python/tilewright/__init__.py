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

from ._errors import (
    ArtifactError,
    BusyError,
    CallError,
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
from ._native import (
    Artifact,
    BuilderValue,
    Config,
    Device,
    Function,
    Graph,
    GraphBuilder,
    Module,
    Node,
    Session,
    Tensor,
    Value,
    __version__,
    _add_pass,
    _register,
    compile,
    device,
    function,
    functions,
    has_cuda,
    has_llvm,
    load,
    passes,
    remove_pass,
    unregister,
)
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
from ._tools import Schedules, boards, make_network, schedule, synth, targets, tune, zoo

__all__ = [
    "Artifact",
    "ArtifactError",
    "BenchReport",
    "BisectReport",
    "BuilderValue",
    "BusyError",
    "CallError",
    "Config",
    "ConfigError",
    "Device",
    "DeviceError",
    "DiffReport",
    "Error",
    "Function",
    "Graph",
    "GraphBuilder",
    "GraphError",
    "InputError",
    "ModelError",
    "Module",
    "Networks",
    "Node",
    "NotFoundError",
    "PassError",
    "ProfileReport",
    "QuantizeReport",
    "Report",
    "Schedules",
    "Session",
    "SynthReport",
    "Targets",
    "Tensor",
    "TuneReport",
    "Value",
    "__version__",
    "add_pass",
    "bench",
    "bisect",
    "boards",
    "compile",
    "device",
    "diff",
    "function",
    "functions",
    "has_cuda",
    "has_llvm",
    "load",
    "make_network",
    "passes",
    "profile",
    "quantize",
    "register",
    "remove_pass",
    "schedule",
    "synth",
    "targets",
    "tune",
    "unregister",
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
