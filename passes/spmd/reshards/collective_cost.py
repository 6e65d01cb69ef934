"""What a plan of collectives costs: the elements that devices receive from others."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from sdy.axes import total_size
from sdy.device_groups import grid_positions
from sdy.mesh import MOST_DEVICES, Mesh
from sdy.passes.spmd.layout import round_up
from sdy.passes.spmd.reshards.collective_steps import AllGather, AllSlice, AllToAll, AxesPerDim, Collective


def elements_received(steps: Iterable[Collective], source: AxesPerDim, shape: Sequence[int], mesh: Mesh) -> int:
    """The elements of a tensor of `shape`, split over `source` at first, that all devices receive in all `steps`.

    In a permute between more than `MOST_DEVICES` devices, each counts as receiving a shard.
    """
    received = 0
    before = source
    for fused in _fused(steps):
        received += _received(fused, before, shape, mesh)
        before = fused[-1].after
    return received


def _fused(steps: Iterable[Collective]) -> Iterator[list[Collective]]:
    """The steps, all-to-alls in a row between dimensions that are all different together: they become one."""
    fused: list[Collective] = []
    dims: set[int] = set()
    for step in steps:
        ends = {step.source, step.target} if isinstance(step, AllToAll) else set[int]()
        if fused and not (ends and dims and dims.isdisjoint(ends)):
            yield fused
            fused, dims = [], set()
        fused.append(step)
        dims |= ends
    if fused:
        yield fused


def _received(fused: Sequence[Collective], before: AxesPerDim, shape: Sequence[int], mesh: Mesh) -> int:
    local = local_elements(before, shape, mesh)
    match fused[0]:
        case AllSlice():
            return 0
        case AllGather(axes):
            return local * mesh.size * (total_size(chain(*axes), mesh) - 1)
        case AllToAll():
            parts = math.prod(total_size(step.axes, mesh) for step in fused if isinstance(step, AllToAll))
            counts = ([total_size(axes, mesh) for axes in side] for side in (before, fused[-1].after))
            return elements_in_exchange(shape, *counts) * mesh.size * (parts - 1) // parts
        case _ if mesh.size > MOST_DEVICES:
            return local * mesh.size
        case _:
            old, new = (grid_positions(tuple(chain(*axes)), mesh) for axes in (before, fused[0].after))
            return local * sum(here != there for here, there in zip(old, new, strict=True))


def elements_in_exchange(shape: Sequence[int], parts_before: Sequence[int], parts_after: Sequence[int]) -> int:
    """Return the elements that a device has in an all-to-all, each dimension padded for the parts on both sides."""
    return math.prod(
        round_up(size, math.lcm(before, after)) // before
        for size, before, after in zip(shape, parts_before, parts_after, strict=True)
    )


def local_elements(axes_per_dim: AxesPerDim, shape: Sequence[int], mesh: Mesh) -> int:
    """The elements of a tensor of `shape` that one device has, padding included where a dimension is not divisible."""
    return math.prod(-(-size // total_size(axes, mesh)) for size, axes in zip(shape, axes_per_dim, strict=True))
