"""The commands `tune`, `schedule`, `zoo`, `synth` and `inspect --targets` as functions."""

from __future__ import annotations

import json as _json
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

from . import _native
from ._errors import NotFoundError
from ._examine import _options
from ._reports import Networks, SynthReport, Targets, TuneReport

_Path = str | PathLike[str]
_Hw = str | PathLike[str] | _native.Config


def tune(
    model: _Path | _native.Graph,
    log: _Path,
    *,
    trials: int | None = None,
    seconds: float | None = None,
    hw: _Hw = "1x16x16",
    device: Literal["csim", "cpu"] = "csim",
    layer: str | None = None,
    seed: int = 1,
    opt_level: Literal[2, 3] = 3,
    threads: int | None = None,
    tuned: _Path | None = None,
    bind: Mapping[str, int] | None = None,
    shape: Mapping[str, Sequence[int]] | None = None,
    packed: Sequence[str] = (),
    progress: Callable[[str, int, int], Any] | None = None,
) -> TuneReport:
    """Searches for better plans of a model's layers, as ``tilewright tune`` does.

    With ``device="csim"``, plans that take fewer cycles on the accelerator; with ``device="cpu"``, faster code of this
    machine's processor, where all of the model runs. A line is appended to ``log`` for each trial, and the trials of an
    existing log are not repeated. ``trials`` or ``seconds`` limits the search. Use the plans with
    ``compile(model, opt_level=3, tuned=log)``. Code of the CPU is measured in processes of their own.
    """
    given = {name: value for name, value in locals().items() if name != "log"}
    json, text = _native._tune(model, _options(given, log=fspath(log)))
    return TuneReport(json, text, fspath(log))


class Schedules(Mapping[str, str]):
    """Schedules of a model's layers on the accelerator: the text of each by the layer's name.

    Change a text by assignment, ``write`` all into a folder, and give them back: ``compile(model, schedules=folder)``.
    """

    def __init__(self, texts: Mapping[str, str], files: Mapping[str, str]) -> None:
        self._texts = dict(texts)
        self._files = files

    def __getitem__(self, layer: str) -> str:
        try:
            return self._texts[layer]
        except KeyError:
            raise NotFoundError(f"no layer is named {layer}; there are: {', '.join(self._texts)}") from None

    def __setitem__(self, layer: str, text: str) -> None:
        _ = self[layer]
        self._texts[layer] = text

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __contains__(self, layer: object) -> bool:
        return layer in self._texts

    def write(self, folder: _Path) -> None:
        """Writes a file for each layer into ``folder``, which is made if it is not there."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for layer, text in self._texts.items():
            (folder / self._files[layer]).write_text(text)


def schedule(
    model: _Path | _native.Graph,
    *,
    hw: _Hw = "1x16x16",
    offload: Literal["all", "auto", "none"] = "all",
    opt_level: int = 2,
    bind: Mapping[str, int] | None = None,
    shape: Mapping[str, Sequence[int]] | None = None,
    packed: Sequence[str] = (),
) -> Schedules:
    """The schedules of a model's layers on the accelerator, as ``tilewright schedule --of`` writes them."""
    sizes = None if bind is None else dict(bind)
    inputs = None if shape is None else dict(shape)
    found = _native._schedules(model, hw, offload, opt_level, sizes, inputs, list(packed))
    return Schedules({layer: text for layer, _, text in found}, {layer: file for layer, file, _ in found})


def zoo(name: str | None = None) -> Networks:
    """The networks of the zoo: dicts with ``name`` (for ``compile``), ``title``, ``file``, ``inputs``, ``outputs``,
    ``bytes``, ``source`` and more. Their files are written into the cache folder. With ``name``, this network alone.

    Raises NotFoundError if the zoo has no network of that name.
    """
    return Networks(_json.loads(_native._zoo(name)))


def make_network(name: str, output: _Path, *, float: bool = False) -> None:
    """Writes a network of a well-known shape with random weights as ONNX, as ``tilewright zoo make`` does: for example
    ``resnet18`` or ``mobilenet-v2``, in int8, or with ``float`` weights."""
    _native._zoo_make(name, output, float)


def targets() -> Targets:
    """What this build can compile for and run on, as ``tilewright inspect --targets`` says it."""
    return Targets(*_native._targets())


def boards() -> list[dict[str, Any]]:
    """The boards: dicts with ``name``, ``title``, ``device`` (the part), ``hw`` and ``core_mhz``."""
    found: list[dict[str, Any]] = _json.loads(_native._boards())
    return found


def synth(
    board: _Path,
    *,
    hw: _Hw | None = None,
    output: _Path | None = None,
    estimate: bool = False,
    mhz: float | None = None,
    seed: int | None = None,
    allow_slow: bool = False,
    minutes: float = 120.0,
    progress: Callable[[str, int, int], Any] | None = None,
) -> SynthReport:
    """Builds a board's bitstream, as ``tilewright synth`` does, into ``output`` (``build/synth/BOARD``).

    With ``estimate`` it stops after synthesis and reports the resources and the expected clock. ``mhz`` is the clock
    of shell and core, and ``minutes`` the limit of each step. A design that does not fit or is too slow has
    ``meets`` False. The tools are those of ``make setup-synth``.

    Raises InputError for an unknown board, and ModelError if a tool is missing or fails.
    """
    options = {name: value for name, value in locals().items() if name != "board"}
    told, meets, folder = _native._synth(board, options)
    return SynthReport(*told, meets, folder)
