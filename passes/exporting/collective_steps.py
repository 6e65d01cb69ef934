"""The collectives that a reshard can be carried out by, in terms of the axes that split each dimension."""

from dataclasses import dataclass
from itertools import combinations

from sdy.axes import AxisRef

Axes = tuple[AxisRef, ...]
AxesPerDim = tuple[Axes, ...]


@dataclass(frozen=True, slots=True)
class AllSlice:
    """Split each dimension further over its `axes`, which gives `after`."""

    axes: AxesPerDim
    after: AxesPerDim


@dataclass(frozen=True, slots=True)
class CollectivePermute:
    """Exchange whole shards between devices, which gives `after`: each dimension is split as many times as before."""

    after: AxesPerDim


@dataclass(frozen=True, slots=True)
class AllToAll:
    """Move `axes` from the end of dimension `source` to the end of dimension `target`, which gives `after`."""

    axes: Axes
    source: int
    target: int
    after: AxesPerDim


@dataclass(frozen=True, slots=True)
class AllGather:
    """Gather each dimension over its `axes`, the last ones that split it, which gives `after`."""

    axes: AxesPerDim
    after: AxesPerDim


def axes_exclude_each_other(axes_per_dim: AxesPerDim) -> bool:
    """Whether these are the axes of a sharding: no two of them have a part in common."""
    axes = [axis for axes in axes_per_dim for axis in axes]
    return not any(one.overlaps(other) or not one.can_coexist(other) for one, other in combinations(axes, 2))


Step = AllSlice | CollectivePermute | AllToAll | AllGather
