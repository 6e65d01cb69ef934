"""The state of a plan of collectives: how far each dimension is from what is wanted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from sdy.axes import AxisRef, merge_sub_axes, total_size
from sdy.mesh import Mesh
from sdy.passes.spmd.reshards.collective_steps import AxesPerDim, Collective


@dataclass(slots=True)
class DimAxes:
    """The axes of one dimension; see `sdy.passes.spmd.reshards.collective_plan`."""

    placed: list[AxisRef]
    misplaced: list[AxisRef]
    wanted: list[AxisRef]

    def copy(self) -> "DimAxes":
        """The same, to go back to."""
        return DimAxes(self.placed.copy(), self.misplaced.copy(), self.wanted.copy())

    def settle(self) -> None:
        """Move the axes with which `misplaced` and `wanted` both begin to `placed`."""
        while self.misplaced and self.wanted and self.misplaced[0] == self.wanted[0]:
            self.placed.append(self.misplaced.pop(0))
            self.wanted.pop(0)


@dataclass(slots=True)
class CollectivePlan:
    """What has been planned so far, and what there is still to do."""

    source: AxesPerDim
    target: AxesPerDim
    shape: Sequence[int]
    mesh: Mesh
    reorder_devices: bool
    dims: list[DimAxes] = field(init=False)
    steps: list[Collective] = field(init=False, default_factory=list[Collective])

    def __post_init__(self) -> None:
        # Axes are cut until any two that overlap are equal, so that they can be looked up as if they were whole.
        self.dims = [
            DimAxes([], _cut(here, chain(*self.target), self.mesh), _cut(there, chain(*self.source), self.mesh))
            for here, there in zip(self.source, self.target, strict=True)
        ]
        for dim in self.dims:
            dim.settle()

    def size(self, axes: Iterable[AxisRef]) -> int:
        """How many parts a dimension split over `axes` has."""
        return total_size(axes, self.mesh)

    def current(self) -> AxesPerDim:
        """The sharding reached so far."""
        return tuple(merge_sub_axes((*dim.placed, *dim.misplaced), self.mesh) for dim in self.dims)

    def merged(self, axes_per_dim: Iterable[Sequence[AxisRef]]) -> AxesPerDim:
        """The axes of each dimension, neighbours that continue each other made one."""
        return tuple(merge_sub_axes(axes, self.mesh) for axes in axes_per_dim)

    def destinations(self) -> dict[AxisRef, tuple[int, int]]:
        """Where each wanted axis goes: its dimension, and its index among what that dimension wants."""
        return {axis: (d, i) for d, dim in enumerate(self.dims) for i, axis in enumerate(dim.wanted)}

    def is_free(self, axis: AxisRef) -> bool:
        """Whether no dimension is split over any part of `axis`, which could thus be sliced."""
        return not any(axis.overlaps(held) for dim in self.dims for held in dim.misplaced)

    def take(self, available: list[AxisRef], splits: int, in_order: bool = False) -> list[AxisRef]:
        """Remove from `available` axes that together split a dimension into `splits` parts, or as near as they come.

        An axis larger than what is left of `splits` is cut, and its rest becomes the first one available. Where an axis
        neither divides what is left nor is divided by it, `in_order` stops there, otherwise it is passed over.
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
        """Take from `available` for one dimension after the other, each up to its `splits_left`, which become fewer."""
        taken_per_dim: list[list[AxisRef]] = []
        for d, splits in enumerate(splits_left):
            taken = self.take(available, splits)
            splits_left[d] //= self.size(taken)
            taken_per_dim.append(taken)
        self.align_wanted(chain(*taken_per_dim))
        return taken_per_dim

    def align_wanted(self, pieces: Iterable[AxisRef]) -> None:
        """Cut what is wanted where the `pieces`, some of which may have just been cut, begin and end."""
        pieces = tuple(pieces)
        for dim in self.dims:
            dim.wanted = _cut(dim.wanted, pieces, self.mesh)


def divide(a: int, b: int) -> bool:
    """Whether one of the two sizes divides the other."""
    return a % b == 0 or b % a == 0


def _cut(axes: Iterable[AxisRef], others: Iterable[AxisRef], mesh: Mesh) -> list[AxisRef]:
    """`axes`, each cut where any of the `others` that can coexist with it begins or ends."""
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
