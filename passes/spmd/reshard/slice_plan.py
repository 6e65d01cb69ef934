"""First step of the greedy reshard planner: an all-slice, which sends nothing."""

import math
from collections.abc import Sequence
from itertools import takewhile

from sdy.axes import AxisRef
from sdy.passes.spmd.reshard.collective_state import CollectivePlan
from sdy.passes.spmd.reshard.collective_steps import AllSlice


def all_slice(plan: CollectivePlan) -> None:
    """Slice along free wanted axes: in the dimension that wants them, or else in any that may be split further.

    No dimension is split further than in the target, because another collective would have to undo that. An axis that
    is sliced in another dimension than the one that wants it makes the subsequent all-to-alls smaller.
    """
    splits_left: list[int] = []
    for dim in plan.dims:
        splits = plan.size(dim.wanted)
        splits_left.append(splits // math.gcd(plan.size(dim.misplaced), splits))
    sliced: list[list[AxisRef]] = [[] for _ in plan.dims]

    for d, axes in enumerate(_slices_before_all_to_all(plan, splits_left)):
        sliced[d] += axes

    spare: list[AxisRef] = []
    for d, dim in enumerate(plan.dims):
        for axis in tuple(dim.wanted):
            if not plan.is_free(axis):
                continue
            pieces = [axis]
            if taken := plan.take(pieces, splits_left[d]):
                at = dim.wanted.index(axis)
                dim.wanted[at : at + 1] = taken + pieces
                dim.misplaced += taken
                dim.settle()
                sliced[d] += taken
                splits_left[d] //= plan.size(taken)
            spare += pieces

    for d, axes in enumerate(plan.spread(spare, splits_left)):
        plan.dims[d].misplaced += axes
        sliced[d] += axes
    if any(sliced):
        plan.steps.append(AllSlice(plan.merged(sliced), plan.current()))


def _slices_before_all_to_all(plan: CollectivePlan, splits_left: list[int]) -> list[list[AxisRef]]:
    """Slice free axes in the source dimension of an all-to-all that moves them into place with its own axes.

    If dimension 0 is split over "x" and dimension 1 wants {"x", "y"}, first slice "y" in dimension 0: then one
    all-to-all moves both. Slicing "y" in dimension 1 would leave the two in the wrong order. Both axes count towards
    the `splits_left` of dimension 1.
    """
    sliced: list[list[AxisRef]] = []
    for d, dim in enumerate(plan.dims):
        to, moving = _extended_move(plan, d)
        free = [axis for axis in moving if axis not in dim.misplaced]
        if free:
            splits_left[to] //= plan.size(moving)
            dim.misplaced += free
        sliced.append(free)
    return sliced


def _extended_move(plan: CollectivePlan, d: int) -> tuple[int, list[AxisRef]]:
    """Return the target and the axes of an all-to-all from dimension `d` that brings axes into their final position.

    The axes are a suffix of `d`, followed by free axes. There are none unless `d` wants no axes, the target dimension
    has no misplaced axes, all axes of `d` that the target wants are in this suffix, in order, and the shard of `d` is
    divisible by the free axes.
    """
    dim = plan.dims[d]
    destinations = plan.destinations()
    if not dim.misplaced or dim.wanted or dim.misplaced[-1] not in destinations:
        return d, []
    to, last = destinations[dim.misplaced[-1]]
    wanted = plan.dims[to].wanted
    free = list(takewhile(plan.is_free, wanted[last + 1 :]))
    held = _common_suffix(dim.misplaced, wanted[: last + 1])
    elsewhere = dim.misplaced[: len(dim.misplaced) - len(held)]
    splits = plan.size((*dim.placed, *dim.misplaced, *free))
    if plan.dims[to].misplaced or any(axis in wanted for axis in elsewhere) or plan.shape[d] % splits:
        return d, []
    return to, held + free


def _common_suffix(first: Sequence[AxisRef], second: Sequence[AxisRef]) -> list[AxisRef]:
    length = 0
    while length < min(len(first), len(second)) and first[-1 - length] == second[-1 - length]:
        length += 1
    return list(first[len(first) - length :])
