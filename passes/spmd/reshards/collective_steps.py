"""The collectives that a reshard can be carried out by, in terms of the axes that split each dimension."""

from dataclasses import dataclass

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


Collective = AllSlice | CollectivePermute | AllToAll | AllGather
