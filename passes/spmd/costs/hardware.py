"""Hardware descriptions: peak compute rates, memory size and bandwidth, and the links between devices.

A hardware file is TOML; `presets/` contains several, selected by their file names:

    name = "8 x H100, NVLink"
    memory = "80G"              # of one device
    memory_bandwidth = 3.35e12  # bytes a second
    [peak]                      # operations a second by element type; a multiply-add counts as two
    bf16 = 989e12
    f32 = 67e12
    [[links]]                   # links between devices, the fastest first
    devices = 8                 # number of consecutive device ids that the link connects
    bandwidth = 450e9           # bytes a second that a device receives
    latency = 3e-6              # seconds per message
    [axes.data]                 # optional: the link of one mesh axis
    bandwidth = 50e9
    latency = 5e-6
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from sdy.diagnostics import Location, error
from sdy.formatting import parse_bytes
from sdy.mesh import Mesh
from sdy.type_helpers import is_dict, is_list

_PRESETS = Path(__file__).with_name("presets")


@dataclass(frozen=True, slots=True)
class Link:
    """Alpha-beta model of the link between one device and the others."""

    bandwidth: float
    """Bytes a second that a device receives."""
    latency: float
    """Seconds per message, independent of its size."""


@dataclass(frozen=True)
class Hardware:
    """The performance of one device and of the links between devices."""

    name: str
    memory: int
    """Bytes."""
    memory_bandwidth: float
    """Bytes a second."""
    peak: Mapping[str, float]
    """Operations a second by element type in MLIR syntax (`bf16`); a multiply-add counts as two."""
    links: Sequence[tuple[int, Link]]
    """For each link, the fastest first, the number of devices with consecutive ids that it connects."""
    axes: Mapping[str, Link]
    """Links of individual mesh axes, which take precedence over `links`."""

    def link_along(self, axis: str, mesh: Mesh) -> Link:
        """Return the link that connects the devices along `axis` of `mesh`."""
        if axis in self.axes:
            return self.axes[axis]
        place = mesh.axis_names.index(axis)
        reach = math.prod(size for _, size in mesh.axes[place:])
        return next((link for devices, link in self.links if devices >= reach), self.links[-1][1])

    def peak_of(self, element_type: str) -> float:
        """Return the operations a second on `element_type`, such as `bf16`; an unlisted type has the lowest rate."""
        return self.peak.get(element_type, min(self.peak.values()))


def presets() -> Sequence[str]:
    """Return the names of the hardware files in this package."""
    return tuple(sorted(path.stem for path in _PRESETS.glob("*.toml")))


def hardware_of(name: str) -> Hardware:
    """Return the preset of this name, or read the hardware file at this path.

    Raises:
        DiagnosticError: There is no such preset or file, or the file is invalid.
    """
    path = _PRESETS / f"{name}.toml" if name in presets() else Path(name)
    if not path.is_file():
        known = ", ".join(presets())
        raise error(Location(name, 1, 1), f"no hardware preset or file has this name; the presets are {known}")
    try:
        return _Reader(str(path), tomllib.loads(path.read_text())).hardware()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise error(Location(str(path), 1, 1), f"invalid TOML: {problem}") from None


_KEYS = {"name", "memory", "memory_bandwidth", "peak", "links", "axes"}
_LINK_KEYS = {"bandwidth", "latency"}


class _Reader:
    """Reads and validates one hardware file."""

    def __init__(self, path: str, table: Mapping[str, Any]) -> None:
        self._path = path
        self._table = table

    def hardware(self) -> Hardware:
        self._check_keys(self._table, _KEYS, "")
        missing = _KEYS - {"axes"} - {*self._table}
        if missing:
            self._fail(f"'{min(missing)}' is missing")
        peak, links = self._table["peak"], self._table["links"]
        if not is_dict(peak) or not peak:
            self._fail("'peak' must be a table of operations a second by element type")
        if not is_list(links) or not links or not all(map(is_dict, links)):
            self._fail("'links' must be a list of tables, [[links]]")
        return Hardware(
            str(self._table["name"]),
            self._bytes(self._table["memory"]),
            self._number(self._table["memory_bandwidth"], "memory_bandwidth"),
            {str(key): self._number(value, f"peak.{key}") for key, value in peak.items()},
            [
                (int(self._number(link.get("devices"), "links.devices")), self._link(link, "links", {"devices"}))
                for link in links
            ],
            {str(name): self._link(link, f"axes.{name}", set()) for name, link in self._axes().items()},
        )

    def _axes(self) -> Mapping[str, Mapping[str, Any]]:
        axes = self._table.get("axes", {})
        if not is_dict(axes) or not all(map(is_dict, axes.values())):
            self._fail("'axes' must have a table for each axis, such as [axes.data]")
        return axes

    def _link(self, table: Mapping[str, Any], where: str, others: set[str]) -> Link:
        self._check_keys(table, _LINK_KEYS | others, f"{where}.")
        return Link(*(self._number(table.get(key), f"{where}.{key}") for key in ("bandwidth", "latency")))

    def _check_keys(self, table: Mapping[str, Any], known: set[str], where: str) -> None:
        for key in table:
            if key not in known:
                self._fail(f"'{where}{key}' is unknown; the keys are {', '.join(sorted(known))}")

    def _number(self, value: object, where: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            self._fail(f"'{where}' must be a number above 0")
        return float(value)

    def _bytes(self, value: object) -> int:
        if not isinstance(value, str):
            return int(self._number(value, "memory"))
        try:
            return parse_bytes(value)
        except ValueError as problem:
            self._fail(f"'memory': {problem}")

    def _fail(self, message: str) -> NoReturn:
        raise error(Location(self._path, 1, 1), message)
