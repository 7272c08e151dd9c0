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
    InputError,
    ModelError,
    NotFoundError,
)
from ._native import (
    Artifact,
    Config,
    Device,
    Function,
    Module,
    Session,
    Tensor,
    __version__,
    _register,
    compile,
    device,
    function,
    functions,
    has_cuda,
    has_llvm,
    load,
    unregister,
)

__all__ = [
    "Artifact",
    "ArtifactError",
    "BusyError",
    "CallError",
    "Config",
    "ConfigError",
    "Device",
    "DeviceError",
    "Error",
    "Function",
    "InputError",
    "ModelError",
    "Module",
    "NotFoundError",
    "Session",
    "Tensor",
    "__version__",
    "compile",
    "device",
    "function",
    "functions",
    "has_cuda",
    "has_llvm",
    "load",
    "register",
    "unregister",
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
