"""The cheapest sequences of collectives by Dijkstra's algorithm over all shardings.

A slow reference for `sdy.passes.spmd.reshard.collective_search`.
"""

import heapq
import itertools
from collections.abc import Sequence

from sdy.axes import merge_sub_axes, subtract, total_size
from sdy.mesh import Mesh
from sdy.passes.spmd.reshard.collective_cost import elements_received
from sdy.passes.spmd.reshard.collective_steps import (
    AllGather,
    AllSlice,
    AllToAll,
    Axes,
    AxesPerDim,
    Collective,
    CollectivePermute,
)


class Collectives:
    """All collectives between `shardings` of a tensor of `shape`."""

    def __init__(self, shardings: Sequence[AxesPerDim], shape: Sequence[int], mesh: Mesh) -> None:
        self._edges: dict[AxesPerDim, list[tuple[AxesPerDim, int]]] = {}
        for before in shardings:
            found = [(after, collectives(before, after, mesh)) for after in shardings]
            self._edges[before] = [
                (after, elements_received(steps, before, shape, mesh)) for after, steps in found if steps
            ]

    def received_from(self, source: AxesPerDim) -> dict[AxesPerDim, int]:
        """Return, for each sharding, the fewest elements that all devices receive to reach it from `source`."""
        received = {source: 0}
        entry = itertools.count()
        queue = [(0, next(entry), source)]
        while queue:
            so_far, _, sharding = heapq.heappop(queue)
            if so_far > received[sharding]:
                continue
            for after, cost in self._edges[sharding]:
                total = so_far + cost
                if after not in received or total < received[after]:
                    received[after] = total
                    heapq.heappush(queue, (total, next(entry), after))
        return received


def collectives(before: AxesPerDim, after: AxesPerDim, mesh: Mesh) -> list[Collective]:
    """Return the collectives that reshard `before` to `after` in one step, empty if it takes several steps."""
    changed = [dim for dim, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    if not changed:
        return []
    if all(total_size(old, mesh) == total_size(new, mesh) for old, new in zip(before, after, strict=True)):
        return [CollectivePermute(after)]
    gone = [_behind(new, old, mesh) for old, new in zip(before, after, strict=True)]
    come = [_behind(old, new, mesh) for old, new in zip(before, after, strict=True)]
    if all(come[dim] for dim in changed):
        return [AllSlice(tuple(come), after)]
    if all(gone[dim] for dim in changed):
        return [AllGather(tuple(gone), after)]
    starts = [dim for dim in changed if gone[dim]]
    ends = [next((end for end in changed if come[end] == gone[start]), -1) for start in starts]
    if -1 in ends or len({*starts, *ends}) != len(changed):
        return []
    steps: list[Collective] = []
    current = list(before)
    for start, end in zip(starts, ends, strict=True):
        current[start], current[end] = after[start], after[end]
        steps.append(AllToAll(gone[start], start, end, tuple(current)))
    return steps


def _behind(first: Axes, longer: Axes, mesh: Mesh) -> Axes:
    """Return the axes of `longer` after the prefix `first`, () if `first` is not a prefix."""
    more = merge_sub_axes(subtract(longer, first, mesh), mesh)
    return more if merge_sub_axes((*first, *more), mesh) == longer else ()
