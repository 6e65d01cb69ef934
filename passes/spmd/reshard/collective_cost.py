"""Communication cost of a plan of collectives, in elements received."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from sdy.axes import total_size
from sdy.device_groups import grid_positions
from sdy.mesh import MOST_DEVICES, Mesh
from sdy.passes.spmd.reshard.collective_steps import AllGather, AllSlice, AllToAll, AxesPerDim, Collective
from sdy.passes.spmd.reshard.resize_cost import received_in_gather, received_in_slice, resizes_around


def elements_received(steps: Iterable[Collective], source: AxesPerDim, shape: Sequence[int], mesh: Mesh) -> int:
    """Return the number of elements that all devices together receive in `steps`.

    In a permute of more than `MOST_DEVICES` devices, every device counts as receiving a shard.

    Args:
        steps: The collectives, in order.
        source: The axes of each dimension before the first step.
        shape: The global shape of the tensor.
        mesh: The mesh of the axes.
    """
    received = 0
    before = source
    for fused in fused_steps(steps):
        received += _received(fused, before, shape, mesh)
        before = fused[-1].after
    return received


def fused_steps(steps: Iterable[Collective]) -> Iterator[list[Collective]]:
    """Yield the steps in groups: consecutive all-to-alls between disjoint dimensions are lowered to one collective."""
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
    parts, new_parts = (tuple(total_size(axes, mesh) for axes in each) for each in (before, fused[-1].after))
    if isinstance(fused[0], AllSlice):
        return received_in_slice(tuple(shape), parts, new_parts, mesh.size)
    if isinstance(fused[0], AllGather):
        return received_in_gather(tuple(shape), parts, new_parts, mesh.size)
    resized, local = resizes_around(tuple(shape), parts, new_parts, mesh.size)
    return resized + _received_in_collective(fused, before, local, mesh)


def _received_in_collective(fused: Sequence[Collective], before: AxesPerDim, local: int, mesh: Mesh) -> int:
    """Return the elements that all devices receive in a collective whose operand has shards of `local` elements."""
    match fused[0]:
        case AllToAll():
            parts = math.prod(total_size(step.axes, mesh) for step in fused if isinstance(step, AllToAll))
            return local * mesh.size * (parts - 1) // parts
        case _ if mesh.size > MOST_DEVICES:
            return local * mesh.size
        case _:
            old, new = (grid_positions(tuple(chain(*axes)), mesh) for axes in (before, fused[0].after))
            return local * sum(here != there for here, there in zip(old, new, strict=True))


def local_elements(axes_per_dim: AxesPerDim, shape: Sequence[int], mesh: Mesh) -> int:
    """Return the number of elements in a shard of a tensor of global `shape`, padding of uneven dimensions included."""
    return math.prod(-(-size // total_size(axes, mesh)) for size, axes in zip(shape, axes_per_dim, strict=True))
