"""Axis references: a full mesh axis, or a sub-axis of one.

An axis of size 8 can be split into sub-axes along a factorization of 8, say 2 x 4. The sub-axis of size `size` with
`pre_size` to its left (its major side) is written `"x":(pre_size)size`: here `"x":(1)2` and `"x":(2)4`. A sub-axis is
the interval from `pre_size` to `pre_size * size` on a line from 1 (major) to the size of the axis (minor); a full axis
extends to infinity. Overlap, containment and prefix are those of intervals.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sdy.interned import Interned
from sdy.mesh import Mesh


def quoted(text: str) -> str:
    """Return `text` as an MLIR string literal; quotes and bytes that are not printable ASCII become two hex digits."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    escapes = {ord('"'): "\\22", ord("\\"): "\\\\"}
    escaped = (escapes.get(b, chr(b) if 0x20 <= b < 0x7F else f"\\{b:02X}") for b in text.encode())
    return f'"{"".join(escaped)}"'


@dataclass(frozen=True, slots=True, eq=False)
class AxisRef(Interned):
    """The axis `name`, or its sub-axis `"name":(pre_size)size` if both sizes are given."""

    name: str
    pre_size: int | None = None
    size: int | None = None

    def __str__(self) -> str:
        name = quoted(self.name)
        return name if self.size is None else f"{name}:({self.pre_size}){self.size}"

    @property
    def is_full(self) -> bool:
        """True if this is a full axis, not a sub-axis."""
        return self.size is None

    @property
    def start(self) -> int:
        """Start of the interval: the product of the sizes to its left within the full axis."""
        return self.pre_size or 1

    @property
    def _end(self) -> float:
        """End of the interval; infinity for a full axis."""
        return math.inf if self.size is None else self.start * self.size

    def size_in(self, mesh: Mesh) -> int:
        """Return the size of the axis: the number of shards that it splits a dimension into."""
        return mesh.axis_size(self.name) if self.size is None else self.size

    def end_in(self, mesh: Mesh) -> int:
        """Return the end of the interval: start times size."""
        return self.start * self.size_in(mesh)

    def contains(self, other: "AxisRef") -> bool:
        """Return whether `other` is this axis or a sub-axis of it."""
        return self.name == other.name and self.start <= other.start and self._end >= other._end

    def is_prefix_of(self, other: "AxisRef") -> bool:
        """Return whether this axis is `other` or a sub-axis at its major end."""
        return self.name == other.name and self.start == other.start and self._end <= other._end

    def is_suffix_of(self, other: "AxisRef", mesh: Mesh) -> bool:
        """Return whether this axis is `other` or a sub-axis at its minor end."""
        return self.name == other.name and self.start >= other.start and self.end_in(mesh) == other.end_in(mesh)

    def overlaps(self, other: "AxisRef") -> bool:
        """Return whether the intervals of the two axes intersect."""
        return self.name == other.name and self.start < other._end and other.start < self._end

    def can_coexist(self, other: "AxisRef") -> bool:
        """Return whether one factorization of the full axis contains both sub-axes.

        `"x":(1)2` and `"x":(1)3` cannot coexist.
        """
        if self.name != other.name or self.size is None or other.size is None:
            return True
        low, high = sorted((self.start, other.start))
        low_end, high_end = sorted((self.start * self.size, other.start * other.size))
        if low_end > high:
            return low_end % high == 0 and high % low == 0 and high_end % low_end == 0
        return high % low_end == 0

    def conflicts_with(self, other: "AxisRef") -> bool:
        """Return whether a sharding cannot use both axes: they overlap or cannot coexist."""
        return self.overlaps(other) or not self.can_coexist(other)

    def overlap(self, other: "AxisRef") -> "AxisRef | None":
        """Return the intersection; None if it is empty or the two cannot coexist."""
        if not self.overlaps(other) or not self.can_coexist(other):
            return None
        if self.size is None:
            return other
        if other.size is None:
            return self
        start = max(self.start, other.start)
        end = min(self.start * self.size, other.start * other.size)
        return AxisRef(self.name, start, end // start)

    def prefix_without_overlap(self, other: "AxisRef") -> "AxisRef | None":
        """Return the longest prefix of this axis that does not overlap `other`.

        None if the prefix is empty or the two axes cannot coexist.
        """
        if not self.can_coexist(other):
            return None
        if not self.overlaps(other):
            return self
        if self.start >= other.start:
            return None
        return AxisRef(self.name, self.start, other.start // self.start)

    def common_prefix(self, other: "AxisRef") -> "AxisRef | None":
        """Return the longest common prefix; None if it is empty or the two axes cannot coexist."""
        if self.name != other.name or self.start != other.start or not self.can_coexist(other):
            return None
        return self if self._end <= other._end else other

    def can_merge(self, other: "AxisRef") -> bool:
        """Return whether `other` starts where this sub-axis ends."""
        return self.name == other.name and self._end == other.start

    def merge(self, other: "AxisRef", mesh: Mesh) -> "AxisRef":
        """Merge this sub-axis with `other`, which starts where it ends; returns the full axis if they cover it."""
        return axis_between(self.name, self.start, other.end_in(mesh), mesh)

    def split(self, size: int, mesh: Mesh) -> "tuple[AxisRef, AxisRef]":
        """Split the axis into a major sub-axis of `size` and the rest.

        `size` must divide the size of the axis and differ from 1 and from that size.
        """
        middle, end = self.start * size, self.end_in(mesh)
        return AxisRef(self.name, self.start, size), AxisRef(self.name, middle, end // middle)


Axes = tuple[AxisRef, ...]
"""Axes and sub-axes, major to minor, for example those of one dimension."""


def axis_between(name: str, start: int, end: int, mesh: Mesh) -> AxisRef:
    """Return the sub-axis of `name` from `start` to `end`, or the full axis if they are its ends."""
    if start == 1 and end == mesh.axis_size(name):
        return AxisRef(name)
    return AxisRef(name, start, end // start)


def mesh_order(mesh: Mesh) -> Callable[[AxisRef], tuple[int, int, int]]:
    """Return a sort key: axes in the order of `mesh`, sub-axes of one axis from major to minor."""
    return lambda axis: (mesh.axis_index(axis.name), axis.start, axis.size_in(mesh))


def total_size(axes: Iterable[AxisRef], mesh: Mesh) -> int:
    """Return the product of the sizes of `axes`."""
    return math.prod(axis.size_in(mesh) for axis in axes)


def merge_sub_axes(axes: Sequence[AxisRef], mesh: Mesh) -> tuple[AxisRef, ...]:
    """Merge neighbouring sub-axes in `axes` that are contiguous."""
    if len(axes) < 2:
        return tuple(axes)
    merged: list[AxisRef] = []
    for axis in axes:
        if merged and merged[-1].can_merge(axis):
            merged[-1] = merged[-1].merge(axis, mesh)
        else:
            merged.append(axis)
    return tuple(merged)


def is_prefix(first: Sequence[AxisRef], second: Sequence[AxisRef]) -> bool:
    """Return whether `second` begins with `first`, whose last axis may be a prefix of its counterpart."""
    if not first:
        return True
    last = len(first) - 1
    return last < len(second) and tuple(first[:last]) == tuple(second[:last]) and first[last].is_prefix_of(second[last])


def common_prefix(first: Sequence[AxisRef], second: Sequence[AxisRef]) -> tuple[AxisRef, ...]:
    """Return the longest common prefix of two lists of axes; its last axis may be a sub-axis."""
    prefix: list[AxisRef] = []
    for a, b in zip(first, second, strict=False):
        shared = a.common_prefix(b)
        if shared is not None:
            prefix.append(shared)
        if a != b:
            break
    return tuple(prefix)


def prefix_without_overlap(axes: Sequence[AxisRef], others: Sequence[AxisRef]) -> tuple[AxisRef, ...]:
    """Return the longest prefix of `axes` that overlaps none of `others`; its last axis may be a sub-axis."""
    prefix: list[AxisRef] = []
    for axis in axes:
        free: AxisRef | None = axis
        for other in others:
            free = free.prefix_without_overlap(other) if free is not None else None
        if free is not None:
            prefix.append(free)
        if free != axis:
            break
    return tuple(prefix)


def subtract(axes: Iterable[AxisRef], others: Iterable[AxisRef], mesh: Mesh) -> tuple[AxisRef, ...]:
    """Return the sub-axes of `axes` that none of `others` overlaps, in order, without merging neighbours."""
    remaining = list(axes)
    for other in others:
        remaining = [part for axis in remaining for part in _difference(axis, other, mesh)]
    return tuple(remaining)


def _difference(axis: AxisRef, other: AxisRef, mesh: Mesh) -> list[AxisRef]:
    if not axis.overlaps(other):
        return [axis]
    pieces: list[AxisRef] = []
    if axis.start < other.start:
        pieces.append(axis_between(axis.name, axis.start, other.start, mesh))
    if other.end_in(mesh) < axis.end_in(mesh):
        pieces.append(axis_between(axis.name, other.end_in(mesh), axis.end_in(mesh), mesh))
    return pieces
