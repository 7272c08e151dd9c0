"""What `bench`, `profile`, `diff`, `bisect` and `quantize` return."""

from __future__ import annotations

import html as _html
import json as _json
from os import PathLike
from pathlib import Path
from typing import Any


def _table(caption: str, names: list[str], rows: list[list[Any]]) -> str:
    def line(tag: str, cells: list[Any]) -> str:
        return "<tr>" + "".join(f"<{tag}>{_html.escape(_cell(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    caption = f"<caption>{_html.escape(caption)}</caption>" if caption else ""
    return f"<table>{caption}<thead>{line('th', names)}</thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case float():
            return f"{value:.4g}"
        case list():
            return ", ".join(map(_cell, value))
        case _:
            return str(value)


class Report:
    """The result of an examination. ``str(report)`` is the text of the command line, and ``report["key"]`` an item of
    the JSON object that its ``--json`` prints."""

    def __init__(self, json: str, text: str) -> None:
        self._json = json
        self._text = text
        self._data: dict[str, Any] = _json.loads(json)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object as dicts and lists of its own."""
        data: dict[str, Any] = _json.loads(self._json)
        return data

    def to_json(self) -> str:
        """The JSON object as text."""
        return self._json

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<tilewright.{type(self).__name__} {self._title()}>"

    def _title(self) -> str:
        return str(self._data.get("model", ""))

    def _repr_html_(self) -> str:
        return f"<pre>{_html.escape(self._text)}</pre>"


class BenchReport(Report):
    """A model's times on several devices."""

    def __init__(self, json: str, text: str, csv: str) -> None:
        super().__init__(json, text)
        self._csv = csv

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self["model"])

    @property
    def devices(self) -> dict[str, dict[str, Any]]:
        """The figures of each device by its name; ``missing`` has the reason if it could not run the model."""
        devices: dict[str, dict[str, Any]] = self["devices"]
        return devices

    @property
    def layers(self) -> list[dict[str, Any]]:
        """The layers with their times on each device, in milliseconds."""
        layers: list[dict[str, Any]] = self["layers"]
        return layers

    @property
    def agrees(self) -> bool:
        """Whether every device that ran the model has the CPU's outputs."""
        return all(found.get("agrees_with_cpu", True) for found in self.devices.values())

    def latency_ms(self, device: str) -> float | None:
        """The median latency of one input in milliseconds; None if the device could not run the model."""
        latency = self.devices[device]["latency_ms"]
        return None if latency is None else float(latency["median"])

    def to_csv(self) -> str:
        """A line for each device and layer, as ``--csv`` writes them."""
        return self._csv

    def _repr_html_(self) -> str:
        def row(name: str, found: dict[str, Any]) -> list[Any]:
            if "missing" in found:
                return [name, None, None, None, found["missing"]]
            speed = found.get("speed_up_over_cpu")
            return [name, self.latency_ms(name), found.get("throughput_per_s"), speed, found.get("latency_from")]

        names = ["device", "latency, ms", "inputs a second", "times as fast as the CPU", "from"]
        return _table(self.model, names, [row(*item) for item in self.devices.items()])


class ProfileReport(Report):
    """A profile: where each node runs, the time of each layer, and when each unit works or waits."""

    def __init__(self, json: str, page: str, trace: str) -> None:
        super().__init__(json, "")
        self._page = page
        self._trace = trace
        self._text = self._lines()

    @property
    def layers(self) -> list[dict[str, Any]]:
        """The layers in order: name, operators, place, cycles and milliseconds."""
        layers: list[dict[str, Any]] = self["layers"]
        return layers

    @property
    def cycles(self) -> int:
        """Cycles of the accelerator for one input."""
        return sum(int(step["cycles"]) for step in self["steps"] if step.get("cycles") is not None)

    def html(self) -> str:
        """The page that ``tilewright profile --report`` writes, one file without references to others."""
        return self._page

    def trace(self) -> str:
        """The timeline as JSON for Perfetto."""
        return self._trace

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the page to ``path``, and the data and the trace next to it, as ``NAME.json`` and ``NAME.trace.json``."""
        path = Path(path)
        if path.suffix == ".json":
            raise ValueError(f"{path} is the path of the data file; name a file that ends in .html")
        path.write_text(self._page)
        path.with_suffix(".json").write_text(self._json)
        path.with_suffix(".trace.json").write_text(self._trace)

    def _title(self) -> str:
        return str(self["model"]["file"])

    def _lines(self) -> str:
        lines = [f"{self._title()}: {len(self.layers)} layers, {self.cycles} cycles"]
        for layer in self.layers:
            cycles = "" if layer["cycles"] is None else f"{layer['cycles']} cycles"
            lines.append(f"{layer['name']}  {layer['op']}  {layer['where']}  {cycles}".rstrip())
        return "\n".join(lines) + "\n"

    def _repr_html_(self) -> str:
        page = _html.escape(self._page, quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 900px; border: 0"></iframe>'


class DiffReport(Report):
    """A comparison of a model's values on two sides."""

    @property
    def equal(self) -> bool:
        """Whether all values are equal within the tolerance."""
        return bool(self["equal"])

    @property
    def first(self) -> dict[str, Any] | None:
        """The first value that differs, with the element, both values and what computed them."""
        first: dict[str, Any] | None = self["first"]
        return first

    def _repr_html_(self) -> str:
        if self.first is None:
            return super()._repr_html_()
        keys = ["name", "op", "dtype", "shape", "index", "a", "b", "differing", "elements", "largest"]
        return _table(f"{self['model']}: {self['a']} and {self['b']}", keys, [[self.first[key] for key in keys]])


class BisectReport(Report):
    """The first rewrite of a graph that changes its result."""

    @property
    def suspect(self) -> dict[str, Any] | None:
        """The patch that changes the answer: its pass, its node, and what changes. None if no patch does."""
        suspect: dict[str, Any] | None = self["suspect"]
        return suspect


class QuantizeReport(Report):
    """A quantized model: the file, and how much each layer lost."""

    @property
    def output(self) -> str:
        """The ONNX file."""
        return str(self["output"])

    @property
    def layers(self) -> list[dict[str, Any]]:
        """The layers with scale, zero point, method and signal-to-noise ratio in decibels (``sqnr_db``; None if exact)."""
        layers: list[dict[str, Any]] = self["layers"]
        return layers

    def _repr_html_(self) -> str:
        keys = ["name", "op", "scale", "zero_point", "method", "sqnr_db"]
        return _table(self._title(), keys, [[layer[key] for key in keys] for layer in self.layers])


class TuneReport(Report):
    """The result of a search for plans. Use them with ``compile(model, tuned=report.log)``."""

    def __init__(self, json: str, text: str, log: str) -> None:
        super().__init__(json, text)
        self.log = log

    @property
    def cycles(self) -> int | None:
        """Cycles of the network with the best plans that are known now; None for the CPU."""
        return self._number("cycles")

    @property
    def cycles_before(self) -> int | None:
        """Cycles without the search; None for the CPU."""
        return self._number("cycles_before")

    @property
    def ns(self) -> int | None:
        """Nanoseconds of the CPU's tuned layers with the best plans that are known now; None for the accelerator."""
        return self._number("ns")

    @property
    def ns_before(self) -> int | None:
        """Nanoseconds of the CPU's tuned layers without the search; None for the accelerator."""
        return self._number("ns_before")

    def _number(self, key: str) -> int | None:
        return self[key] if key in self.to_dict() else None

    def _title(self) -> str:
        if self.cycles is None:
            return f"{self.ns} ns, {self.ns_before} before"
        return f"{self.cycles} cycles, {self.cycles_before} before"

    def _repr_html_(self) -> str:
        measured = ["ns", "ns_before"] if self.cycles is None else ["gain"]
        keys = ["layer", "places", "trials", *measured, "decisions"]
        return _table(self._title(), keys, [[layer[key] for key in keys] for layer in self["layers"]])


class SynthReport(Report):
    """Resources and clock of a design on a board, and the folder with its files."""

    def __init__(self, json: str, text: str, meets: bool, folder: str) -> None:
        super().__init__(json, text)
        self.meets = meets
        """Whether the design fits the part and reaches its clock."""
        self.folder = folder

    def _title(self) -> str:
        return str(self.folder)


class Targets(Report):
    """What this build can compile for and run on."""

    def _title(self) -> str:
        return ""


class Networks(list[dict[str, Any]]):
    """Networks of the zoo, each a dict, with a table in a notebook."""

    def _repr_html_(self) -> str:
        keys = ["name", "bytes", "licence", "inputs", "title"]
        return _table("", keys, [[network[key] for key in keys] for network in self])
