"""Planning a reshard: the short sequence of collectives that turns one sharding of a tensor into another.

A dimension is split over a list of axes, major to minor. While the plan is made, each dimension has three lists:

    placed     axes that stand where the target has them: the beginning that both shardings share
    misplaced  the axes that follow in the current sharding
    wanted     the axes that follow in the target

so that `placed + misplaced` is the current sharding, `placed + wanted` the target, and the plan is complete when
nothing is misplaced or wanted. Four collectives bring that about, and are tried in the order of what they cost:

    all-slice           adds axes at the end of dimensions; each device keeps a part of what it has: nothing is sent
    collective-permute  replaces axes by as many others; each device sends what it has to one other device
    all-to-all          moves axes from the end of one dimension to the end of another; each device sends to several
    all-gather          drops axes from the end of dimensions; each device receives the parts of others

For example, over axes of size 2, `[{"x", "y"}, {}]` becomes `[{"y"}, {"z"}]` by

    [{"x", "y"}, {}]  --all-slice "z" on 1-->  [{"x", "y"}, {"z"}]  --permute-->  [{"y", "x"}, {"z"}]
                      --all-gather "x" on 0-->  [{"y"}, {"z"}]

where the permute stands for swapping two axes, which no other collective can do.
"""

from collections.abc import Sequence
from itertools import combinations

from sdy.axes import AxisRef, merge_sub_axes
from sdy.mesh import Mesh
from sdy.passes.spmd.reshards.collective_state import CollectivePlan
from sdy.passes.spmd.reshards.collective_steps import AllGather, AllToAll, AxesPerDim, Collective
from sdy.passes.spmd.reshards.permute_plan import collective_permute
from sdy.passes.spmd.reshards.slice_plan import all_slice


def plan_collectives(
    source: AxesPerDim,
    target: AxesPerDim,
    shape: Sequence[int],
    mesh: Mesh,
    reorder_devices: bool = False,
    move_first: bool = False,
) -> tuple[Collective, ...]:
    """The steps from the sharding with axes `source` to the one with axes `target`, in order; () if they are the same.

    `shape` is that of the whole tensor, in elements. `reorder_devices` asks for a permute in any case, as is needed
    when the target's mesh lists the same devices in another order. With `move_first`, what can move by all-to-all
    does so before any permute. A plan from one sharding to another of the same tensor always exists: in the worst
    case everything misplaced is gathered and everything wanted is sliced.
    """
    plan = CollectivePlan(source, target, shape, mesh, reorder_devices)
    if move_first:
        all_slice(plan)
        _all_to_alls(plan)
    # One round is enough where all sizes are powers of two. Steps that find nothing to do add nothing.
    for _ in range(2):
        all_slice(plan)
        collective_permute(plan)
        _all_to_alls(plan)
        _all_gather(plan, keep_wanted=True)
    _all_gather(plan, keep_wanted=False)
    all_slice(plan)
    if any(map(_has_conflicts, plan.steps)):
        # Where sub-axes cannot be cut into common pieces, as "x":(1)2 and "x":(1)3, no axis is to be passed over.
        plan = CollectivePlan(source, target, shape, mesh, reorder_devices)
        _all_gather(plan, keep_wanted=False)
        collective_permute(plan)
        all_slice(plan)
    return tuple(plan.steps)


def _has_conflicts(step: Collective) -> bool:
    """Whether what a step gives is split over axes that no sharding can have together."""
    axes = [axis for axes in step.after for axis in axes]
    return any(one.conflicts_with(other) for one, other in combinations(axes, 2))


def _all_to_alls(plan: CollectivePlan) -> None:
    """Move groups of axes from the ends of dimensions to those that want them, first those that come into place."""
    for only_into_place in (True, False):
        _move_groups(plan, only_into_place)


def _move_groups(plan: CollectivePlan, only_into_place: bool) -> None:
    """Move groups of axes from the ends of dimensions to those that want them, or only to where they are wanted."""
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
    """The longest group at the end of dimension `d` that goes to one other dimension, and that dimension."""
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
    """Gather what is misplaced at the end of dimensions, up to the last axis that some dimension wants."""
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
