"""Greedy planner of a reshard: a short sequence of collectives from one sharding of a tensor to another.

A dimension is split over a list of axes, major to minor. The planner keeps three lists for each dimension:

    placed     the common prefix of the current sharding and the target
    misplaced  the remaining axes of the current sharding
    wanted     the remaining axes of the target

so that `placed + misplaced` is the current sharding, `placed + wanted` the target, and the plan is complete when
nothing is misplaced or wanted. The planner tries four collectives, cheapest first:

    all-slice           appends axes to dimensions; each device keeps a slice of its shard, and nothing is sent
    collective-permute  replaces axes by others of the same total size; each device sends its shard to one device
    all-to-all          moves axes from the end of one dimension to the end of another; each device sends to several
    all-gather          drops axes from the end of dimensions; each device receives the shards of others

For example, over axes of size 2, `[{"x", "y"}, {}]` becomes `[{"y"}, {"z"}]` by

    [{"x", "y"}, {}]  --all-slice "z" on 1-->  [{"x", "y"}, {"z"}]  --permute-->  [{"y", "x"}, {"z"}]
                      --all-gather "x" on 0-->  [{"y"}, {"z"}]

where the permute swaps two axes of a dimension, which no other collective can do.
"""

from collections.abc import Sequence
from itertools import combinations

from sdy.axes import AxisRef, merge_sub_axes
from sdy.mesh import Mesh
from sdy.passes.spmd.reshard.collective_state import CollectivePlan
from sdy.passes.spmd.reshard.collective_steps import AllGather, AllToAll, AxesPerDim, Collective
from sdy.passes.spmd.reshard.permute_plan import collective_permute
from sdy.passes.spmd.reshard.slice_plan import all_slice


def plan_collectives(
    source: AxesPerDim,
    target: AxesPerDim,
    shape: Sequence[int],
    mesh: Mesh,
    reorder_devices: bool = False,
    move_first: bool = False,
) -> tuple[Collective, ...]:
    """Return the collectives that reshard from `source` to `target`, in order; () if both are the same.

    A plan always exists: in the worst case, it gathers all misplaced axes and slices all wanted ones.

    Args:
        source: The axes of each dimension before the reshard.
        target: The axes of each dimension after it.
        shape: The global shape of the tensor.
        mesh: The mesh of both shardings.
        reorder_devices: Whether a permute is required because the target's mesh lists its devices in another order.
        move_first: Whether to do all-to-alls before the first permute as well.
    """
    plan = CollectivePlan(source, target, shape, mesh, reorder_devices)
    if move_first:
        all_slice(plan)
        _all_to_alls(plan)
    # One round is enough if all sizes are powers of two. A step with nothing to do adds no collective.
    for _ in range(2):
        all_slice(plan)
        collective_permute(plan)
        _all_to_alls(plan)
        _all_gather(plan, keep_wanted=True)
    _all_gather(plan, keep_wanted=False)
    all_slice(plan)
    if any(map(_has_conflicts, plan.steps)):
        # Sub-axes such as "x":(1)2 and "x":(1)3 have no common refinement: gather all of them before slicing any.
        plan = CollectivePlan(source, target, shape, mesh, reorder_devices)
        _all_gather(plan, keep_wanted=False)
        collective_permute(plan)
        all_slice(plan)
    return tuple(plan.steps)


def _has_conflicts(step: Collective) -> bool:
    """Return whether the sharding after `step` uses axes that cannot coexist in one sharding."""
    axes = [axis for axes in step.after for axis in axes]
    return any(one.conflicts_with(other) for one, other in combinations(axes, 2))


def _all_to_alls(plan: CollectivePlan) -> None:
    """Move axes by all-to-alls to the dimensions that want them; first those that arrive in their final position."""
    for only_into_place in (True, False):
        _move_groups(plan, only_into_place)


def _move_groups(plan: CollectivePlan, only_into_place: bool) -> None:
    """Move groups of axes from the ends of dimensions to those that want them, or only into their final position."""
    for d, dim in enumerate(plan.dims):
        while move := _movable(plan, d):
            axes, to = move
            target = plan.dims[to]
            if only_into_place and target.wanted[: len(axes)] != axes:
                break
            del dim.misplaced[-len(axes) :]
            target.misplaced += axes
            target.settle()
            plan.steps.append(AllToAll(merge_sub_axes(axes, plan.mesh), d, to, plan.current()))


def _movable(plan: CollectivePlan, d: int) -> tuple[list[AxisRef], int] | None:
    """Return the longest suffix of dimension `d` that one other dimension wants, and that dimension; or None."""
    misplaced = plan.dims[d].misplaced
    destinations = plan.destinations()
    if not misplaced or misplaced[-1] not in destinations or destinations[misplaced[-1]][0] == d:
        return None
    to = destinations[misplaced[-1]][0]
    start = len(misplaced) - 1
    while start and destinations.get(misplaced[start - 1], (d, 0))[0] == to:
        start -= 1
    return misplaced[start:], to


def _all_gather(plan: CollectivePlan, keep_wanted: bool) -> None:
    """All-gather the misplaced axes at the ends of dimensions; with `keep_wanted`, only behind the last wanted axis."""
    destinations = plan.destinations()
    gathered: list[list[AxisRef]] = []
    for dim in plan.dims:
        start = len(dim.misplaced)
        while start and not (keep_wanted and dim.misplaced[start - 1] in destinations):
            start -= 1
        gathered.append(dim.misplaced[start:])
        del dim.misplaced[start:]
    if any(gathered):
        plan.steps.append(AllGather(plan.merged(gathered), plan.current()))
