"""What a plan of collectives costs: the elements that devices receive from others."""

import math
from collections.abc import Iterable, Sequence
from itertools import chain

from sdy.axes import total_size
from sdy.device_groups import places
from sdy.mesh import MOST_DEVICES, Mesh
from sdy.passes.spmd.reshards.collective_steps import AllGather, AllSlice, AllToAll, AxesPerDim, Collective


def elements_received(steps: Iterable[Collective], source: AxesPerDim, shape: Sequence[int], mesh: Mesh) -> int:
    """The elements of a tensor of `shape`, split over `source` at first, that all devices receive in all `steps`.

    In a permute between more than `MOST_DEVICES` devices, each counts as receiving a shard.
    """
    received = 0
    before = source
    for step in steps:
        received += _received(step, before, shape, mesh)
        before = step.after
    return received


def _received(step: Collective, before: AxesPerDim, shape: Sequence[int], mesh: Mesh) -> int:
    local = local_elements(before, shape, mesh)
    match step:
        case AllSlice():
            return 0
        case AllGather(after=after):
            return (local_elements(after, shape, mesh) - local) * mesh.size
        case AllToAll(axes):
            parts = total_size(axes, mesh)
            return local * mesh.size * (parts - 1) // parts
        case _ if mesh.size > MOST_DEVICES:
            return local * mesh.size
        case _:
            old, new = (places(tuple(chain(*axes)), mesh) for axes in (before, step.after))
            return local * sum(here != there for here, there in zip(old, new, strict=True))


def local_elements(axes_per_dim: AxesPerDim, shape: Sequence[int], mesh: Mesh) -> int:
    """The elements of a tensor of `shape` that one device has, padding included where a dimension is not divisible."""
    return math.prod(-(-size // total_size(axes, mesh)) for size, axes in zip(shape, axes_per_dim, strict=True))
