"""Planning a reshard that sends little: of several sequences of collectives from one sharding to another, the cheapest.

`sdy.passes.spmd.reshards.collective_plan` makes a plan from the first dimension to the last. Which axes it slices and
how it orders those that a permute replaces depends on that order, and so does what the plan costs. Over axes of size 2,
`[{"z"}, {}]` to `[{"y", "x"}, {"z"}]` can be

    [{"z"}, {}]  --all-slice-->  [{"z", "y"}, {"x"}]  --permute-->  [{"y", "x"}, {"z"}]
    [{"z"}, {}]  --all-slice-->  [{"z", "x"}, {"y"}]  --permute-->  [{"y", "x"}, {"z"}]

and in the second permute four of eight devices have what they need, in the first only two. Between few pieces of axes,
`sdy.passes.spmd.reshards.searched_plan` finds the cheapest plan of all. Between many, wherever there is a permute, the
dimensions are also taken in every other order, and what can move before the permute moves. And since each collective
can be undone by one, a plan from the target to the source, backwards, is one from the source to the target.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence

from sdy.axes import total_size
from sdy.mesh import Mesh
from sdy.passes.spmd.reshards.collective_cost import elements_received
from sdy.passes.spmd.reshards.collective_plan import plan_collectives
from sdy.passes.spmd.reshards.collective_steps import (
    AllGather,
    AllSlice,
    AllToAll,
    AxesPerDim,
    Collective,
    CollectivePermute,
)
from sdy.passes.spmd.reshards.searched_plan import cheaper_plan, is_exhaustive

Steps = tuple[Collective, ...]
_MOST_DIMS_IN_ANY_ORDER = 3


@functools.lru_cache(2**14)
def cheapest_plan(
    source: AxesPerDim, target: AxesPerDim, shape: tuple[int, ...], mesh: Mesh, reorder_devices: bool = False
) -> Steps:
    """The steps from the sharding with axes `source` to the one with axes `target`, in order; () if they are the same.

    `shape` is that of the whole tensor, in elements. `reorder_devices` asks for a permute in any case, as is needed
    when the target's mesh lists the same devices in another order.
    """
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
    whole = [dim for dim in range(len(shape)) if dim not in split]
    orders = itertools.permutations(split) if len(split) <= _MOST_DIMS_IN_ANY_ORDER else (split, split[::-1])
    for order in orders:
        for move_first in (False, True):
            yield _plan_in_order((*order, *whole), source, target, shape, mesh, move_first)
            yield _backwards(_plan_in_order((*order, *whole), target, source, shape, mesh, move_first), target)


def _plan_in_order(
    order: Sequence[int],
    source: AxesPerDim,
    target: AxesPerDim,
    shape: Sequence[int],
    mesh: Mesh,
    move_first: bool,
) -> Steps:
    """A plan made for the tensor with its dimensions transposed to `order`, in terms of the tensor itself."""
    source, target = (tuple(axes[dim] for dim in order) for axes in (source, target))
    sizes = [shape[dim] for dim in order]
    place = [order.index(dim) for dim in range(len(order))]

    def restored(axes: AxesPerDim) -> AxesPerDim:
        return tuple(axes[at] for at in place)

    steps: list[Collective] = []
    for step in plan_collectives(source, target, sizes, mesh, move_first=move_first):
        after = restored(step.after)
        match step:
            case AllSlice(axes):
                steps.append(AllSlice(restored(axes), after))
            case AllGather(axes):
                steps.append(AllGather(restored(axes), after))
            case AllToAll(axes, start, end):
                steps.append(AllToAll(axes, order[start], order[end], after))
            case CollectivePermute():
                steps.append(CollectivePermute(after))
    return tuple(steps)


def _backwards(steps: Steps, start: AxesPerDim) -> Steps:
    """The steps that undo `steps`, which begin at `start`, in the order in which they do."""
    befores = [start, *(step.after for step in steps)]
    undone: list[Collective] = []
    for step, before in zip(reversed(steps), reversed(befores[:-1]), strict=True):
        match step:
            case AllSlice(axes):
                undone.append(AllGather(axes, before))
            case AllGather(axes):
                undone.append(AllSlice(axes, before))
            case AllToAll(axes, source, target):
                undone.append(AllToAll(axes, target, source, before))
            case CollectivePermute():
                undone.append(CollectivePermute(before))
    return tuple(undone)


def _is_even(axes_per_dim: AxesPerDim, shape: Sequence[int], mesh: Mesh) -> bool:
    return not any(size % total_size(axes, mesh) for size, axes in zip(shape, axes_per_dim, strict=True))
