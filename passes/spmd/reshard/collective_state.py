"""State of the greedy reshard planner: the placed, misplaced and wanted axes of each dimension, and the steps."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from sdy.axes import AxisRef, merge_sub_axes, total_size
from sdy.mesh import Mesh
from sdy.passes.spmd.reshard.collective_steps import AxesPerDim, Collective


@dataclass(slots=True)
class DimAxes:
    """The axes of one dimension; see `sdy.passes.spmd.reshard.collective_plan`."""

    placed: list[AxisRef]
    misplaced: list[AxisRef]
    wanted: list[AxisRef]

    def copy(self) -> "DimAxes":
        """Return a copy, for backtracking."""
        return DimAxes(self.placed.copy(), self.misplaced.copy(), self.wanted.copy())

    def settle(self) -> None:
        """Move the common prefix of `misplaced` and `wanted` to `placed`."""
        while self.misplaced and self.wanted and self.misplaced[0] == self.wanted[0]:
            self.placed.append(self.misplaced.pop(0))
            self.wanted.pop(0)


@dataclass(slots=True)
class CollectivePlan:
    """A reshard plan under construction: the collectives planned so far, and the state of each dimension after them."""

    source: AxesPerDim
    target: AxesPerDim
    shape: Sequence[int]
    mesh: Mesh
    reorder_devices: bool
    dims: list[DimAxes] = field(init=False)
    steps: list[Collective] = field(init=False, default_factory=list[Collective])

    def __post_init__(self) -> None:
        # Axes are split until any two that overlap are equal, so that they can be compared and looked up.
        self.dims = [
            DimAxes([], _cut(here, chain(*self.target), self.mesh), _cut(there, chain(*self.source), self.mesh))
            for here, there in zip(self.source, self.target, strict=True)
        ]
        for dim in self.dims:
            dim.settle()

    def size(self, axes: Iterable[AxisRef]) -> int:
        """Return the product of the sizes of `axes`."""
        return total_size(axes, self.mesh)

    def current(self) -> AxesPerDim:
        """Return the axes of each dimension after the steps so far."""
        return tuple(merge_sub_axes((*dim.placed, *dim.misplaced), self.mesh) for dim in self.dims)

    def merged(self, axes_per_dim: Iterable[Sequence[AxisRef]]) -> AxesPerDim:
        """Return the axes of each dimension, with adjacent sub-axes merged."""
        return tuple(merge_sub_axes(axes, self.mesh) for axes in axes_per_dim)

    def destinations(self) -> dict[AxisRef, tuple[int, int]]:
        """Map each wanted axis to the dimension that wants it, and its index in that dimension's `wanted`."""
        return {axis: (d, i) for d, dim in enumerate(self.dims) for i, axis in enumerate(dim.wanted)}

    def is_free(self, axis: AxisRef) -> bool:
        """Return whether no misplaced axis overlaps `axis`, so that an all-slice can use it."""
        return not any(axis.overlaps(held) for dim in self.dims for held in dim.misplaced)

    def take(self, available: list[AxisRef], splits: int, in_order: bool = False) -> list[AxisRef]:
        """Remove from `available`, and return, axes whose sizes multiply to `splits`, or to less if there are too few.

        An axis larger than the rest of `splits` is split, and its remainder stays available. At an axis whose size
        neither divides that rest nor is divided by it, stop if `in_order`, else skip the axis.
        """
        taken: list[AxisRef] = []
        for axis in tuple(available):
            size = axis.size_in(self.mesh)
            if splits <= 1 or (in_order and not divide(size, splits)):
                break
            if not divide(size, splits):
                continue
            available.remove(axis)
            if size > splits:
                axis, rest = axis.split(splits, self.mesh)
                available.insert(0, rest)
            splits //= axis.size_in(self.mesh)
            taken.append(axis)
        return taken

    def spread(self, available: list[AxisRef], splits_left: list[int]) -> list[list[AxisRef]]:
        """Take axes from `available` for each dimension in turn, up to its `splits_left`, which is updated in place."""
        taken_per_dim: list[list[AxisRef]] = []
        for d, splits in enumerate(splits_left):
            taken = self.take(available, splits)
            splits_left[d] //= self.size(taken)
            taken_per_dim.append(taken)
        self.align_wanted(chain(*taken_per_dim))
        return taken_per_dim

    def align_wanted(self, pieces: Iterable[AxisRef]) -> None:
        """Split the wanted axes at the boundaries of `pieces`, so that overlapping axes are equal again."""
        pieces = tuple(pieces)
        for dim in self.dims:
            dim.wanted = _cut(dim.wanted, pieces, self.mesh)


def divide(a: int, b: int) -> bool:
    """Return whether one of the two sizes divides the other."""
    return a % b == 0 or b % a == 0


def _cut(axes: Iterable[AxisRef], others: Iterable[AxisRef], mesh: Mesh) -> list[AxisRef]:
    """Split each of `axes` at the boundaries of those `others` that it can coexist with."""
    others = tuple(others)
    pieces: list[AxisRef] = []
    for axis in axes:
        bounds = {
            bound
            for other in others
            if axis.overlaps(other) and axis.can_coexist(other)
            for bound in (other.start, other.end_in(mesh))
            if axis.start < bound < axis.end_in(mesh)
        }
        for bound in sorted(bounds):
            head, axis = axis.split(bound // axis.start, mesh)
            pieces.append(head)
        pieces.append(axis)
    return pieces


def prime_pieces(axis: AxisRef, mesh: Mesh) -> list[AxisRef]:
    """Return the sub-axes of prime size that `axis` consists of, major to minor."""
    size = axis.size_in(mesh)
    factor = next((number for number in range(2, math.isqrt(size) + 1) if size % number == 0), size)
    if factor == size:
        return [axis]
    first, rest = axis.split(factor, mesh)
    return [first, *prime_pieces(rest, mesh)]
