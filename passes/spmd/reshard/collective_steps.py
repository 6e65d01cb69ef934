"""Steps of a reshard plan: collectives, described by the axes of each dimension."""

from dataclasses import dataclass

from sdy.axes import Axes

AxesPerDim = tuple[Axes, ...]


@dataclass(frozen=True, slots=True)
class AllSlice:
    """Slice each dimension over its `axes`, appended to those that split it; `after` is the resulting sharding."""

    axes: AxesPerDim
    after: AxesPerDim


@dataclass(frozen=True, slots=True)
class CollectivePermute:
    """Permute shards between devices; `after` is the resulting sharding, with as many shards per dimension."""

    after: AxesPerDim


@dataclass(frozen=True, slots=True)
class AllToAll:
    """Move `axes` from the end of dimension `source` to that of `target`; `after` is the resulting sharding."""

    axes: Axes
    source: int
    target: int
    after: AxesPerDim


@dataclass(frozen=True, slots=True)
class AllGather:
    """Gather each dimension over its `axes`, the minor-most ones; `after` is the resulting sharding."""

    axes: AxesPerDim
    after: AxesPerDim


Collective = AllSlice | CollectivePermute | AllToAll | AllGather
