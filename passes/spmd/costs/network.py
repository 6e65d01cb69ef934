"""Time of collectives on the links of a mesh, by the published formula of each kind.

n devices exchange data over a link with bandwidth b, the bytes a second that a device receives, and latency a:

    kind             on a switch                                  on a torus, per ring of d devices
    all-gather       ring: (n-1)/n B / b + (n-1) a                bidirectional ring: (n-1)/n B / b + d/2 a
    reduce-scatter   ring: the same                               the same
    all-reduce       the faster of ring: 2 (n-1)/n B / b          both, one after the other
                     + 2 (n-1) a, and double binary tree:
                     2 B / b + 2 ceil(log2 n) a
    all-to-all       pairwise: (n-1)/n B / b + (n-1) a            bisection: d B / (4 b) + d/2 a
    permute          B / b + a                                    one direction: B / (b/2) + a

B is the larger of the bytes that a device has before and after. If the hardware file has a curve of measured times for
the kind and the number of devices, that is used instead. Several rings of a torus are used at once. A line,
which is an axis of a torus without a link from its end to its beginning, has half the bandwidth of a ring and twice the
steps.

A group that spans several links is a flat ring through all of them at once. Each device of a host receives another part
of the data from other hosts, so that the link between hosts has the bandwidth of all of them together. Cutting an
all-reduce into stages, a reduce-scatter within hosts, an all-reduce across them and an all-gather within, uses one link
after the other; on hosts of GPUs, that is at no size faster by more than 1 %.

Sources: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH" (2005), for ring
and pairwise; Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan" (2009);
Chan et al., "Collective communication: theory, practice, and experience" (2007), for several rings at once; the JAX
scaling book, https://jax-ml.github.io/scaling-book/sharding, for the all-to-all on a ring; and NCCL's cost model,
https://github.com/NVIDIA/nccl/blob/master/src/graph/tuning.cc, for rings through several hosts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import NamedTuple

from sdy.mesh import Mesh
from sdy.passes.spmd.costs.hardware import Hardware, Link

AxisNames = tuple[str, ...]
"""The names of the mesh axes that a collective runs along."""


class Message(NamedTuple):
    """Equal collectives of a program, on one device."""

    kind: str
    """The name of the operation without its dialect, such as `all_gather`."""
    axes: AxisNames
    devices: int
    """The number of devices in a group; 0 for all along the axes."""
    bytes: float
    """The bytes received by the device in all of the collectives."""
    times: float
    """The number of collectives."""


Channel = tuple[Link, int]
"""A link, and the number of an axis of its torus; 0 for a switch."""


class Ring(NamedTuple):
    """Devices of a group along one axis of a torus."""

    size: int
    is_closed: bool
    """False for a line, which has no link from its last to its first device."""
    place: int = 0
    """The number of the axis of the torus."""

    @property
    def steps(self) -> int:
        """The number of steps in which data from each device reaches all others."""
        return self.size // 2 if self.is_closed else self.size - 1


@dataclass(frozen=True, slots=True)
class Level:
    """The part of a group that one link connects."""

    link: Link
    size: int
    inside: int
    """The number of devices that each of `size` positions stands for, which use the link at the same time."""
    rings: tuple[Ring, ...]
    """The axes of the torus; empty for a switch."""

    @property
    def bandwidth(self) -> float:
        """The bytes a second that one device receives on all rings together."""
        parts = [self.link.bandwidth * (1.0 if ring.is_closed else 0.5) for ring in self.rings]
        return sum(parts) if parts else self.link.bandwidth

    @property
    def steps(self) -> int:
        """The number of steps of a ring through the level."""
        return sum(ring.steps for ring in self.rings) if self.rings else self.size - 1

    @property
    def tree_steps(self) -> int:
        """The number of steps of a tree through the level; a torus has rings only."""
        return self.steps if self.rings else math.ceil(math.log2(self.size))


class Network:
    """The links between the devices of a mesh on some hardware.

    Raises:
        DiagnosticError: The hardware has a link for an axis that the mesh does not have.
    """

    def __init__(self, mesh: Mesh, hardware: Hardware) -> None:
        hardware.check_axes(mesh)
        self._mesh = mesh
        self._hardware = hardware
        below = [1, *(devices for devices, _ in hardware.links)]
        self._torus = [
            _Torus({axis: self._positions(axis, inside, devices) for axis in mesh}, link) if link.torus else None
            for inside, (devices, link) in zip(below, hardware.links, strict=False)
        ]
        self.levels = cache(self._levels)

    def seconds(self, message: Message) -> float:
        """Return the seconds that a device spends in the collectives."""
        _, axes, devices, received, times = message
        levels = self.levels(axes, devices)
        if not levels or not received:
            return 0.0
        group = math.prod(level.size for level in levels)
        if curve := self._hardware.curves.get((message.kind, group)):
            return times * curve.at(received / times)
        seconds = _SECONDS.get(message.kind, _ring_seconds)
        return times * seconds(levels, received / times)

    def channels(self, axes: AxisNames, devices: int) -> frozenset[Channel]:
        """Return the channels that a collective along `axes` occupies: links, and the axes of each torus."""
        levels = self.levels(axes, devices)
        return frozenset([(level.link, ring.place) for level in levels for ring in level.rings or (Ring(1, True),)])

    def name_of(self, channel: Channel) -> str:
        """Return the name of a channel: the mesh axis, or the number of devices, that its link connects."""
        link, place = channel
        shared = [f"link of {devices} devices" for devices, each in self._hardware.links if each == link]
        own = [f'link of axis "{axis}"' for axis, each in self._hardware.axes.items() if each == link]
        name = (own or shared)[0]
        return f"{name}, torus axis {place}" if link.torus else name

    def _levels(self, axes: AxisNames, devices: int) -> tuple[Level, ...]:
        """Return the levels of a group, the innermost first; `devices` is less than the axes have for sub-axes."""
        levels: list[Level] = []
        inside, whole = 1, devices or math.prod(map(self._mesh.axis_size, axes))
        for link, size, rings in self._parts(axes):
            kept = math.gcd(size, whole // inside)
            if kept > 1:
                levels.append(Level(link, kept, inside, rings if kept == size else _lines(rings, kept)))
                inside *= kept
        return tuple(levels)

    def _parts(self, axes: AxisNames) -> list[tuple[Link, int, tuple[Ring, ...]]]:
        """Return each link along `axes` with its number of positions and, on a torus, its rings."""
        shared = [axis for axis in axes if axis not in self._hardware.axes]
        parts: list[tuple[Link, int, tuple[Ring, ...]]] = []
        below = 1
        for (devices, link), torus in zip(self._hardware.links, self._torus, strict=True):
            size = math.prod(self._positions(axis, below, devices) for axis in shared)
            parts.append((link, size, torus.rings(shared) if torus else ()))
            below = devices
        # Devices beyond the last link have that link, too.
        beyond = math.prod(self._positions(axis, below, 0) for axis in shared)
        if beyond > 1:
            parts.append((self._hardware.links[-1][1], beyond, ()))
        own = [axis for axis in axes if axis in self._hardware.axes]
        return [*parts, *((self._hardware.axes[axis], self._mesh.axis_size(axis), ()) for axis in own)]

    def _positions(self, axis: str, below: int, devices: int) -> int:
        """Return how many groups of `below` devices along `axis` a group of `devices` contains, 0 being all."""
        size = self._mesh.axis_size(axis)
        stride = _stride(axis, self._mesh)
        return (_within(size, stride, devices) if devices else size) // _within(size, stride, below)


def _stride(axis: str, mesh: Mesh) -> int:
    """Return the difference between the numbers of neighbors along `axis`."""
    return math.prod(size for _, size in mesh.axes[mesh.axis_names.index(axis) + 1 :])


def _within(size: int, stride: int, devices: int) -> int:
    """Return how many of the `size` devices in steps of `stride` are among `devices` consecutive ones."""
    return math.gcd(size, devices // stride) if devices > stride else 1


class _Torus:
    """Assignment of mesh axes to the axes of a torus, as `jax.experimental.mesh_utils` makes it."""

    def __init__(self, sizes: Mapping[str, int], link: Link) -> None:
        self._shape = torus_shape(math.prod(sizes.values()), link.torus)
        self._wrap = link.wrap
        remaining = [*self._shape]
        self._parts = {axis: _take(sizes[axis], remaining) for axis in reversed([*sizes])}
        """For each mesh axis, the number of devices along each axis of the torus."""

    def rings(self, axes: Sequence[str]) -> tuple[Ring, ...]:
        """Return the rings of a group along `axes`."""
        sizes = [math.prod(self._parts[axis][place] for axis in axes) for place in range(len(self._shape))]
        return tuple(
            [
                Ring(size, size == whole and whole % self._wrap == 0, place)
                for place, (size, whole) in enumerate(zip(sizes, self._shape, strict=True))
                if size > 1
            ]
        )


def torus_shape(devices: int, largest: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of the slice with this number of devices that is closest to a cube, the small sizes first."""
    if len(largest) == 1:
        return (devices,)
    sizes = [size for size in range(1, min(devices, largest[0]) + 1) if devices % size == 0]
    shapes = [tuple(sorted((size, *torus_shape(devices // size, largest[1:])))) for size in sizes]
    return min(shapes, key=lambda shape: (max(shape), sum(shape)))


def _take(size: int, remaining: list[int]) -> tuple[int, ...]:
    """Take `size` devices from the axes of a torus: whole axes if there are some of that size, or else parts."""
    taken = [1] * len(remaining)
    places = [place for place, left in enumerate(remaining) if left > 1]
    wholes = (each for count in range(len(places), 0, -1) for each in combinations(places, count))
    whole = next((each for each in wholes if math.prod(remaining[place] for place in each) == size), None)
    for place in places if whole is None else whole:
        taken[place] = math.gcd(size, remaining[place])
        remaining[place] //= taken[place]
        size //= taken[place]
    taken[0] *= size
    return tuple(taken)


def _lines(rings: Sequence[Ring], size: int) -> tuple[Ring, ...]:
    """Return the line of `size` devices that a sub-axis of a torus is."""
    return (Ring(size, is_closed=False, place=rings[0].place),) if rings else ()


def _bottleneck(levels: Sequence[Level]) -> float:
    """Return the bytes a second that a device receives in a ring through all levels."""
    return min(level.bandwidth * level.inside for level in levels)


def _ring_latency(levels: Sequence[Level]) -> float:
    """Return the latency of a flat ring: it passes through the links inside of each host in turn."""
    outside = math.prod(level.size for level in levels)
    latency = 0.0
    for level in levels:
        outside //= level.size
        latency += level.steps * level.link.latency * (1 if level.rings else outside)
    return latency


def _ring_seconds(levels: Sequence[Level], received: float) -> float:
    return received / _bottleneck(levels) + _ring_latency(levels)


def _all_reduce_seconds(levels: Sequence[Level], received: float) -> float:
    devices = math.prod(level.size for level in levels)
    bandwidth = _bottleneck(levels)
    ring = received / bandwidth + 2 * _ring_latency(levels)
    if any(level.rings for level in levels):
        return ring
    tree_latency = sum(2 * level.tree_steps * level.link.latency for level in levels)
    return min(ring, received * devices / (devices - 1) / bandwidth + tree_latency)


def _all_to_all_seconds(levels: Sequence[Level], received: float) -> float:
    """Return the time of the slowest level; data of different levels travel at the same time."""
    devices = math.prod(level.size for level in levels)
    per_device = received / (devices - 1)
    slowest, latency = 0.0, 0.0
    for level in levels:
        # Each of the other positions at this level stands for `inside` devices.
        peers = (level.size - 1) * level.inside
        seconds = per_device * peers / level.bandwidth
        for ring in level.rings:
            crossing = per_device * devices * ring.size / (4 if ring.is_closed else 2) / level.link.bandwidth
            seconds = max(seconds, crossing)
        slowest = max(slowest, seconds)
        latency += level.link.latency * (level.steps if level.rings else peers)
    return slowest + latency


def _permute_seconds(levels: Sequence[Level], received: float) -> float:
    """Return the time over the slowest link; on a torus, a permute uses one direction of one axis."""
    return max(
        received / (level.link.bandwidth / 2 if level.rings else level.link.bandwidth) + level.link.latency
        for level in levels
    )


_SECONDS = {
    "all_reduce": _all_reduce_seconds,
    "all_to_all": _all_to_all_seconds,
    "collective_permute": _permute_seconds,
}
"""The seconds of one collective by its kind, from the levels and the bytes received; the others are rings."""
