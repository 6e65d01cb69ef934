"""Plan a reshard: the sequence of collectives from one sharding to another that receives the fewest elements.

`sdy.passes.spmd.reshard.collective_plan` is a greedy planner that visits dimensions from first to last. The axes that
it slices, their order in a permute and the cost depend on that order. With axes of size 2, `[{"z"}, {}]` becomes
`[{"y", "x"}, {"z"}]` by

    [{"z"}, {}]  --all-slice-->  [{"z", "y"}, {"x"}]  --permute-->  [{"y", "x"}, {"z"}]
    [{"z"}, {}]  --all-slice-->  [{"z", "x"}, {"y"}]  --permute-->  [{"y", "x"}, {"z"}]

where four of eight devices already have their shard in the second permute, but only two in the first. If there are few
sub-axes, `sdy.passes.spmd.reshard.searched_plan` finds the optimal plan. Otherwise, if the plan has a permute, the
planner also tries the other orders of dimensions, and all-to-alls before the permute. Every collective has an inverse,
so it also plans from the target to the source and inverts the result.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence

from sdy.axes import total_size
from sdy.mesh import Mesh
from sdy.passes.spmd.reshard.collective_cost import elements_received
from sdy.passes.spmd.reshard.collective_plan import plan_collectives
from sdy.passes.spmd.reshard.collective_steps import (
    AllGather,
    AllSlice,
    AllToAll,
    AxesPerDim,
    Collective,
    CollectivePermute,
)
from sdy.passes.spmd.reshard.searched_plan import cheaper_plan, is_exhaustive

Steps = tuple[Collective, ...]
_MOST_DIMS_IN_ANY_ORDER = 3


def cheapest_plan(
    source: AxesPerDim, target: AxesPerDim, shape: tuple[int, ...], mesh: Mesh, reorder_devices: bool = False
) -> Steps:
    """Return the collectives that reshard from `source` to `target`, in order; () if both are the same.

    Args:
        source: The axes of each dimension before the reshard.
        target: The axes of each dimension after it.
        shape: The global shape of the tensor.
        mesh: The mesh of both shardings.
        reorder_devices: Whether a permute is required because the target's mesh lists its devices in another order.
    """
    # The elements that plans receive are in proportion to a size that all numbers of shards divide.
    shape = tuple([mesh.size if size and size % mesh.size == 0 else size for size in shape])
    return _cheapest_plan(source, target, shape, mesh, reorder_devices)


@functools.lru_cache(2**14)
def _cheapest_plan(
    source: AxesPerDim, target: AxesPerDim, shape: tuple[int, ...], mesh: Mesh, reorder_devices: bool
) -> Steps:
    first = plan_collectives(source, target, shape, mesh, reorder_devices)
    if reorder_devices or not first:
        return first
    best = first
    if any(isinstance(step, CollectivePermute) for step in first) and not is_exhaustive(source, target, mesh):
        plans = _other_plans(source, target, shape, mesh)
        others = [plan for plan in plans if all(_is_even(step.after, shape, mesh) for step in plan)]
        best = min((first, *others), key=lambda plan: (elements_received(plan, source, shape, mesh), len(plan)))
    return cheaper_plan(best, source, target, shape, mesh) or best


def _other_plans(source: AxesPerDim, target: AxesPerDim, shape: Sequence[int], mesh: Mesh) -> Iterator[Steps]:
    split = [dim for dim, axes in enumerate(zip(source, target, strict=True)) if any(axes)]
    unsplit = [dim for dim in range(len(shape)) if dim not in split]
    orders = itertools.permutations(split) if len(split) <= _MOST_DIMS_IN_ANY_ORDER else (split, split[::-1])
    for order in orders:
        for move_first in (False, True):
            yield _plan_in_order((*order, *unsplit), source, target, shape, mesh, move_first)
            yield _inverse(_plan_in_order((*order, *unsplit), target, source, shape, mesh, move_first), target)


def _plan_in_order(
    order: Sequence[int],
    source: AxesPerDim,
    target: AxesPerDim,
    shape: Sequence[int],
    mesh: Mesh,
    move_first: bool,
) -> Steps:
    """Plan with the dimensions visited in `order`: plan for the transposed tensor, then transpose the steps back."""
    source, target = (tuple(axes[dim] for dim in order) for axes in (source, target))
    sizes = [shape[dim] for dim in order]
    position_of = [order.index(dim) for dim in range(len(order))]

    def transposed_back(axes: AxesPerDim) -> AxesPerDim:
        return tuple(axes[at] for at in position_of)

    steps: list[Collective] = []
    for step in plan_collectives(source, target, sizes, mesh, move_first=move_first):
        after = transposed_back(step.after)
        match step:
            case AllSlice(axes):
                steps.append(AllSlice(transposed_back(axes), after))
            case AllGather(axes):
                steps.append(AllGather(transposed_back(axes), after))
            case AllToAll(axes, start, end):
                steps.append(AllToAll(axes, order[start], order[end], after))
            case CollectivePermute():
                steps.append(CollectivePermute(after))
    return tuple(steps)


def _inverse(steps: Steps, start: AxesPerDim) -> Steps:
    """Return the inverse of `steps`, a plan that begins at the sharding `start`."""
    befores = [start, *(step.after for step in steps)]
    inverse: list[Collective] = []
    for step, before in zip(reversed(steps), reversed(befores[:-1]), strict=True):
        match step:
            case AllSlice(axes):
                inverse.append(AllGather(axes, before))
            case AllGather(axes):
                inverse.append(AllSlice(axes, before))
            case AllToAll(axes, source, target):
                inverse.append(AllToAll(axes, target, source, before))
            case CollectivePermute():
                inverse.append(CollectivePermute(before))
    return tuple(inverse)


def _is_even(axes_per_dim: AxesPerDim, shape: Sequence[int], mesh: Mesh) -> bool:
    return not any(size % total_size(axes, mesh) for size, axes in zip(shape, axes_per_dim, strict=True))
