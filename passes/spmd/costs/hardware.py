"""What devices can do: how fast they compute, what memory they have, and how fast they hear from each other.

A hardware file is TOML that a person can write; `presets/` has some, named by their files:

    name = "8 x H100, NVLink"
    memory = "80G"              # of one device
    memory_bandwidth = 3.35e12  # bytes a second
    [peak]                      # operations a second by element type; a multiply-add is two
    bf16 = 989e12
    f32 = 67e12
    [[links]]                   # how devices hear from each other, the fastest first
    devices = 8                 # so many, one after the other by their numbers, by this one
    bandwidth = 450e9           # bytes a second that a device receives
    latency = 3e-6              # seconds that a message takes
    [axes.data]                 # an axis of the mesh that has links of its own; may be left out
    bandwidth = 50e9
    latency = 5e-6
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from sdy.byte_sizes import parse_bytes
from sdy.diagnostics import Location, error
from sdy.mesh import Mesh
from sdy.type_guards import is_dict, is_list

_PRESETS = Path(__file__).with_name("presets")


@dataclass(frozen=True, slots=True)
class Link:
    """How a device hears from others."""

    bandwidth: float
    """Bytes a second that it receives."""
    latency: float
    """Seconds that a message takes however short it is."""


@dataclass(frozen=True)
class Hardware:
    """What one device can do, and the links between devices."""

    name: str
    memory: int
    """Bytes."""
    memory_bandwidth: float
    """Bytes a second."""
    peak: Mapping[str, float]
    """Operations a second by element type, as MLIR writes it; a multiply-add is two of them."""
    links: Sequence[tuple[int, Link]]
    """With how many devices, one after the other by their numbers, each link connects a device; the fastest first."""
    axes: Mapping[str, Link]
    """The links along axes of a mesh that have some of their own."""

    def link_along(self, axis: str, mesh: Mesh) -> Link:
        """The link by which a device hears from the others along an axis of `mesh`."""
        if axis in self.axes:
            return self.axes[axis]
        place = mesh.axis_names.index(axis)
        reach = math.prod(size for _, size in mesh.axes[place:])
        return next((link for devices, link in self.links if devices >= reach), self.links[-1][1])

    def peak_of(self, element_type: str) -> float:
        """Operations a second on elements of a type, `bf16` for one; of one that is not listed, as on the slowest."""
        return self.peak.get(element_type, min(self.peak.values()))


def presets() -> Sequence[str]:
    """The names of the hardware files that come with this package."""
    return tuple(sorted(path.stem for path in _PRESETS.glob("*.toml")))


def hardware_of(name: str) -> Hardware:
    """The preset, or the hardware file, of this name. Raises DiagnosticError where there is none, or it is wrong."""
    path = _PRESETS / f"{name}.toml" if name in presets() else Path(name)
    if not path.is_file():
        known = ", ".join(presets())
        raise error(Location(name, 1, 1), f"there is no hardware of this name: give a file, or one of {known}")
    try:
        return _Reader(str(path), tomllib.loads(path.read_text())).hardware()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise error(Location(str(path), 1, 1), f"this is not TOML: {problem}") from None


_KEYS = {"name", "memory", "memory_bandwidth", "peak", "links", "axes"}
_LINK_KEYS = {"bandwidth", "latency"}


class _Reader:
    """Reads one hardware file, and says what is wrong with it."""

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
            self._fail("'peak' is to be a table of operations a second by element type")
        if not is_list(links) or not links or not all(map(is_dict, links)):
            self._fail("'links' is to be a list of tables, [[links]]")
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
            self._fail("'axes' is to have a table for each axis, as [axes.data]")
        return axes

    def _link(self, table: Mapping[str, Any], where: str, others: set[str]) -> Link:
        self._check_keys(table, _LINK_KEYS | others, f"{where}.")
        return Link(*(self._number(table.get(key), f"{where}.{key}") for key in ("bandwidth", "latency")))

    def _check_keys(self, table: Mapping[str, Any], known: set[str], where: str) -> None:
        for key in table:
            if key not in known:
                self._fail(f"'{where}{key}' is unknown; there are {', '.join(sorted(known))}")

    def _number(self, value: object, where: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            self._fail(f"'{where}' is to be a number above 0")
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
