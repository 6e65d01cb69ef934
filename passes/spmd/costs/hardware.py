"""Hardware descriptions: peak compute rates, memory size and bandwidth, and the links of devices.

A hardware file is TOML; `presets/` contains several, selected by their file names:

    name = "8 x H100, NVLink"
    memory = "80G"              # of one device
    memory_bandwidth = 3.35e12  # bytes a second
    [peak]                      # operations a second by element type; a multiply-add counts as two
    bf16 = 989e12
    f32 = { default = 494e12, high = 494e12, highest = 67e12 }  # or by the precision that the program asks for
    [[links]]                   # links between devices, the fastest first
    devices = 8                 # number of consecutive device ids that the link connects
    bandwidth = 370e9           # bytes a second that a device receives
    latency = 2e-6              # seconds per message
    [axes.data]                 # optional: the link of one mesh axis
    bandwidth = 50e9
    latency = 5e-6
    [host]                      # optional: the link between the memories of a device and of its host
    bandwidth = 52e9            # bytes a second in each direction
    latency = 1e-5              # seconds per transfer
    [reached]                   # optional: the parts of the peaks that programs reach
    products = 0.7              # of the peak, by large products
    memory = 0.9                # of the memory bandwidth
    tile = [64, 128, 16]        # rows, columns and summed elements of a product are padded to multiples of these
    overhead = 2e-6             # seconds that each product takes beside its work
    [curves.all_gather.8]       # optional: measured times of a collective of 8 devices, instead of the formula
    bytes = [4096, 65536]       # that a device receives
    seconds = [2e-5, 6e-5]

`launch = 2e-5` is the seconds in which the host starts a program. `backend = "cpu"` predicts memory as XLA for CPUs
needs it, instead of for GPUs and TPUs. `asynchronous = ["all_gather", "all_reduce"]` lists
the kinds of collectives that run beside computation; by default, all kinds do. `pipelines_loops = false` says that
iterations of a loop do not overlap; by default, they do where nothing but data orders them.

A link is a switch, which connects each device to all others, or a torus with `torus = [16, 16]`, the largest size of
each of its axes. `bandwidth` is then that of one axis, both directions together, and an axis has a link from its last
to its first device if its size is a multiple of `wrap`.
"""

import math
import tomllib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

from sdy.diagnostics import Location, error
from sdy.formatting import parse_bytes
from sdy.mesh import Mesh
from sdy.operators.work import Work
from sdy.passes.spmd.costs.backend import Backend
from sdy.type_helpers import is_dict, is_list

_PRESETS = Path(__file__).with_name("presets")

_ALIASES = {"h100-8": "h100", "h100-hosts": "h100"}
"""Other names of presets: those of earlier versions."""

VECTOR, SORT = "vector", "sort"
"""The entries of `peak` for operations on vector units, and for the comparisons of sorts, by default those."""

COLLECTIVES = ("all_gather", "all_reduce", "all_to_all", "collective_permute", "reduce_scatter")
"""The kinds of collectives."""

PRECISIONS = ("default", "high", "highest")
"""The precisions of `precision_config`, the fastest first."""


@dataclass(frozen=True, slots=True)
class Link:
    """Alpha-beta model of the link between one device and the others."""

    bandwidth: float
    """Bytes a second that a device receives; on a torus, along one axis in both directions together."""
    latency: float
    """Seconds per message, independent of its size."""
    torus: tuple[int, ...] = ()
    """The largest size of each axis of the torus; empty for a switch."""
    wrap: int = 1
    """Axes of the torus are rings if this number divides their size, or else lines."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Measured times of a collective by its size."""

    bytes: tuple[float, ...]
    """The bytes that a device receives, in ascending order."""
    seconds: tuple[float, ...]
    """The seconds of one collective of each size."""

    def at(self, received: float) -> float:
        """Return the seconds for a number of bytes, by a power law between two measured sizes.

        Smaller collectives take as long as the smallest one, larger ones have the rate of the largest one.
        """
        place = bisect_left(self.bytes, received)
        if place == 0:
            return self.seconds[0]
        if place == len(self.bytes):
            return self.seconds[-1] * received / self.bytes[-1]
        (low, high), (faster, slower) = self.bytes[place - 1 : place + 1], self.seconds[place - 1 : place + 1]
        return faster * (slower / faster) ** (math.log(received / low) / math.log(high / low))


@dataclass(frozen=True)
class Hardware:
    """The performance of one device and of the links between devices."""

    name: str
    memory: int
    """Bytes."""
    memory_bandwidth: float
    """Bytes a second."""
    peak: Mapping[str, float]
    """Operations a second by element type in MLIR syntax (`bf16`), at "highest"; a multiply-add counts as two."""
    links: Sequence[tuple[int, Link]]
    """For each link, the fastest first, the number of devices with consecutive ids that it connects."""
    axes: Mapping[str, Link]
    """Links of individual mesh axes, which take precedence over `links`."""
    faster: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])
    """Operations a second at other precisions than "highest", by element type and precision."""
    path: str = ""
    """The file that describes the hardware."""
    product_fraction: float = 1.0
    """The part of the peak that large products reach."""
    memory_fraction: float = 1.0
    """The part of the memory bandwidth that large operations reach."""
    tile: tuple[int, int, int] = (1, 1, 1)
    """The rows, columns and summed elements that a matrix unit computes at once; products are padded to multiples."""
    overhead: float = 0.0
    """Seconds that an operation with arithmetic takes beside its work, for its launch and its ramp up."""
    asynchronous: frozenset[str] = frozenset(COLLECTIVES)
    """The kinds of collectives that run beside computation."""
    host: Link | None = None
    """The link between the memories of a device and of its host, in each direction; None if it is unknown."""
    curves: Mapping[tuple[str, int], Curve] = field(default_factory=dict[tuple[str, int], Curve])
    """The measured times of kinds of collectives, by the number of devices of a group."""
    launch: float = 0.0
    """Seconds in which the host starts a program."""
    backend: Backend = Backend.ACCELERATOR
    """The back end of XLA, for which memory is predicted."""
    host_waits: bool = False
    """True if computation waits for values that come back from the host; transfers there run beside it."""
    pipelines_loops: bool = True
    """True if iterations of a loop overlap where nothing but data orders them."""

    def seconds(self, work: Work, operations: float, traffic: float) -> float:
        """Estimate the time in seconds of an operation by the roofline model.

        Short arithmetic reaches a smaller part of the peak than long arithmetic: `overhead` is the time in which the
        unit does nothing, Hockney's half-performance size over the asymptotic rate ("The Science of Computer
        Benchmarking", 1996). Operations without arithmetic are taken to be fused with others, and have none.

        Args:
            work: The element type and the precision of the arithmetic.
            operations: The number of arithmetic operations.
            traffic: The bytes read and written.
        """
        transfer = traffic / self.memory_bandwidth / self.memory_fraction
        if not operations:
            return transfer
        fraction = 1.0 if work.element_type in (VECTOR, SORT) else self.product_fraction
        arithmetic = operations / self.peak_of(work.element_type, work.precision) / fraction
        return self.overhead + max(arithmetic, transfer)

    def peak_of(self, element_type: str, precision: str = "highest") -> float:
        """Return the operations a second of products of `element_type`, such as `bf16`.

        Args:
            element_type: The type of the factors; an unlisted type has the lowest rate.
            precision: An entry of `PRECISIONS`.
        """
        if element_type == SORT and SORT not in self.peak:
            element_type = VECTOR
        rates = self.faster.get(element_type, {})
        return rates.get(precision) or self.peak.get(element_type) or self._lowest_peak

    @cached_property
    def _lowest_peak(self) -> float:
        """The lowest rate of arithmetic, for types that are not listed."""
        return min([rate for name, rate in self.peak.items() if name != SORT] or self.peak.values())

    @property
    def source(self) -> str:
        """The name of the preset, or the file, that describes the hardware; empty for one made in Python."""
        path = Path(self.path)
        return path.stem if path.parent == _PRESETS else self.path

    def host_seconds(self, num_bytes: float) -> float:
        """Return the time in seconds of a transfer between the memories of a device and of its host."""
        assert self.host is not None
        return self.host.latency + num_bytes / self.host.bandwidth

    def check_axes(self, mesh: Mesh) -> None:
        """Raise DiagnosticError if the hardware has a link for an axis that `mesh` does not have."""
        for name in self.axes:
            if name not in mesh:
                axes = ", ".join(f"'{axis}'" for axis in mesh.axis_names)
                problem = f"'axes.{name}' is the link of no axis of the mesh; its axes are {axes}"
                raise error(Location(self.path or self.name, 1, 1), problem)


def presets() -> Sequence[str]:
    """Return the names of the hardware files in this package."""
    return tuple(sorted(path.stem for path in _PRESETS.glob("*.toml")))


def hardware_of(name: str) -> Hardware:
    """Return the preset of this name, or read the hardware file at this path.

    Raises:
        DiagnosticError: There is no such preset or file, or the file is invalid.
    """
    preset = _ALIASES.get(name, name)
    path = _PRESETS / f"{preset}.toml" if preset in presets() else Path(name)
    if not path.is_file():
        known = ", ".join(presets())
        raise error(Location(name, 1, 1), f"no hardware preset or file has this name; the presets are {known}")
    try:
        return _Reader(str(path), tomllib.loads(path.read_text())).hardware()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise error(Location(str(path), 1, 1), f"invalid TOML: {problem}") from None


_REQUIRED = {"name", "memory", "memory_bandwidth", "peak", "links"}
_KEYS = _REQUIRED | {"axes", "reached", "asynchronous", "backend", "host", "curves", "launch", "pipelines_loops"}
_REACHED_KEYS = {"products", "memory", "tile", "overhead"}
_HOST_KEYS = {"bandwidth", "latency", "waits"}
_CURVE_KEYS = ("bytes", "seconds")
_LINK_KEYS = {"bandwidth", "latency", "torus", "wrap"}


class _Reader:
    """Reads and validates one hardware file."""

    def __init__(self, path: str, table: Mapping[str, Any]) -> None:
        self._path = path
        self._table = table

    def hardware(self) -> Hardware:
        self._check_keys(self._table, _KEYS, "")
        missing = _REQUIRED - {*self._table}
        if missing:
            self._fail(f"'{min(missing)}' is missing")
        peak, links = self._table["peak"], self._table["links"]
        if not is_dict(peak) or not peak:
            self._fail("'peak' must be a table of operations a second by element type")
        if not is_list(links) or not links or not all(map(is_dict, links)):
            self._fail("'links' must be a list of tables, [[links]]")
        rates = {str(key): self._rates(value, f"peak.{key}") for key, value in peak.items()}
        return Hardware(
            str(self._table["name"]),
            self._bytes(self._table["memory"]),
            self._number(self._table["memory_bandwidth"], "memory_bandwidth"),
            {name: each["highest"] for name, each in rates.items()},
            [
                (int(self._number(link.get("devices"), "links.devices")), self._link(link, "links", {"devices"}))
                for link in links
            ],
            {str(name): self._link(link, f"axes.{name}", set()) for name, link in self._axes().items()},
            {name: each for name, each in rates.items() if len({*each.values()}) > 1},
            self._path,
            *self._reached(),
            self._asynchronous(),
            self._host(),
            {key: self._curve(*key, table) for key, table in self._curves()},
            self._number(self._table["launch"], "launch") if "launch" in self._table else 0.0,
            self._backend(),
            self._host_waits(),
            self._pipelines_loops(),
        )

    def _reached(self) -> tuple[float, float, tuple[int, int, int], float]:
        """Read the parts of the peaks that operations reach: of products, of memory, the tile and the overhead."""
        table = self._table.get("reached", {})
        if not is_dict(table):
            self._fail("'reached' must be a table, [reached]")
        self._check_keys(table, _REACHED_KEYS, "reached.")
        fractions = [self._number(table.get(key, 1), f"reached.{key}") for key in ("products", "memory")]
        tile, overhead = table.get("tile", [1, 1, 1]), table.get("overhead", 0)
        if not is_list(tile) or len(tile) != 3:
            self._fail("'reached.tile' must be a list of rows, columns and summed elements, such as [8, 128, 128]")
        rows, columns, summed = (int(self._number(size, "reached.tile")) for size in tile)
        seconds = self._number(overhead, "reached.overhead") if overhead else 0.0
        return fractions[0], fractions[1], (rows, columns, summed), seconds

    def _asynchronous(self) -> frozenset[str]:
        kinds = self._table.get("asynchronous", [*COLLECTIVES])
        if not is_list(kinds) or not {*kinds} <= {*COLLECTIVES}:
            self._fail(f"'asynchronous' must be a list of some of {', '.join(COLLECTIVES)}")
        return frozenset(map(str, kinds))

    def _host(self) -> Link | None:
        table = self._table.get("host")
        if table is None:
            return None
        if not is_dict(table):
            self._fail("'host' must be a table, [host]")
        bandwidth, latency = (self._number(table.get(key), f"host.{key}") for key in ("bandwidth", "latency"))
        self._check_keys(table, _HOST_KEYS, "host.")
        return Link(bandwidth, latency)

    def _backend(self) -> Backend:
        known = {each.value: each for each in Backend}
        backend = self._table.get("backend", Backend.ACCELERATOR.value)
        if backend not in known:
            self._fail(f"'backend' must be one of {', '.join(known)}")
        return known[backend]

    def _host_waits(self) -> bool:
        waits = self._table.get("host", {}).get("waits", False)
        if not isinstance(waits, bool):
            self._fail("'host.waits' must be true or false")
        return waits

    def _pipelines_loops(self) -> bool:
        pipelines = self._table.get("pipelines_loops", True)
        if not isinstance(pipelines, bool):
            self._fail("'pipelines_loops' must be true or false")
        return pipelines

    def _curves(self) -> Iterator[tuple[tuple[str, int], object]]:
        curves = self._table.get("curves", {})
        if not is_dict(curves) or not all(map(is_dict, curves.values())):
            self._fail("'curves' must have a table for each kind and number of devices, such as [curves.all_gather.8]")
        self._check_keys(curves, {*COLLECTIVES}, "curves.")
        for kind, tables in curves.items():
            for devices, table in tables.items():
                if not str(devices).isdecimal():
                    self._fail(f"'curves.{kind}.{devices}': '{devices}' is not a number of devices")
                yield (str(kind), int(devices)), table

    def _curve(self, kind: str, devices: int, table: object) -> Curve:
        where = f"curves.{kind}.{devices}"
        if not is_dict(table):
            self._fail(f"'{where}' must be a table, [{where}]")
        self._check_keys(table, {*_CURVE_KEYS}, f"{where}.")
        sizes, times = (self._numbers(table.get(key), f"{where}.{key}") for key in _CURVE_KEYS)
        if len(sizes) != len(times):
            self._fail(f"'{where}.bytes' and '{where}.seconds' must have equal lengths")
        if any(later <= earlier for earlier, later in pairwise(sizes)):
            self._fail(f"'{where}.bytes' must be in ascending order")
        return Curve(sizes, times)

    def _axes(self) -> Mapping[str, Mapping[str, Any]]:
        axes = self._table.get("axes", {})
        if not is_dict(axes) or not all(map(is_dict, axes.values())):
            self._fail("'axes' must have a table for each axis, such as [axes.data]")
        return axes

    def _rates(self, value: object, where: str) -> Mapping[str, float]:
        if not is_dict(value):
            return dict.fromkeys(PRECISIONS, self._number(value, where))
        self._check_keys(value, {*PRECISIONS}, f"{where}.")
        return {precision: self._number(value.get(precision), f"{where}.{precision}") for precision in PRECISIONS}

    def _link(self, table: Mapping[str, Any], where: str, others: set[str]) -> Link:
        self._check_keys(table, _LINK_KEYS | others, f"{where}.")
        bandwidth, latency = (self._number(table.get(key), f"{where}.{key}") for key in ("bandwidth", "latency"))
        torus = table.get("torus", [])
        if not is_list(torus):
            self._fail(f"'{where}.torus' must be a list of sizes, such as [16, 16]")
        sizes = tuple([int(self._number(size, f"{where}.torus")) for size in torus])
        return Link(bandwidth, latency, sizes, int(self._number(table.get("wrap", 1), f"{where}.wrap")))

    def _check_keys(self, table: Mapping[str, Any], known: set[str], where: str) -> None:
        for key in table:
            if key not in known:
                self._fail(f"'{where}{key}' is unknown; the keys are {', '.join(sorted(known))}")

    def _number(self, value: object, where: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            self._fail(f"'{where}' must be a number above 0")
        return float(value)

    def _numbers(self, value: object, where: str) -> tuple[float, ...]:
        if not is_list(value) or not value:
            self._fail(f"'{where}' must be a list of numbers")
        return tuple([self._number(each, where) for each in value])

    def _bytes(self, value: object) -> int:
        if not isinstance(value, str):
            return int(self._number(value, "memory"))
        try:
            return parse_bytes(value)
        except ValueError as problem:
            self._fail(f"'memory': {problem}")

    def _fail(self, message: str) -> NoReturn:
        raise error(Location(self._path, 1, 1), message)
