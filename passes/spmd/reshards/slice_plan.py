"""The first step of a plan of collectives: an all-slice, for which nothing is sent."""

import math
from collections.abc import Sequence
from itertools import takewhile

from sdy.axes import AxisRef
from sdy.passes.spmd.reshards.collective_state import CollectivePlan
from sdy.passes.spmd.reshards.collective_steps import AllSlice


def all_slice(plan: CollectivePlan) -> None:
    """Slice along free axes that are wanted, where they are wanted or else on any dimension that may be split further.

    A dimension is split no further than the target splits it, as another collective would have to undo that. An axis
    sliced elsewhere than it is wanted makes the all-to-alls that follow smaller.
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
    """Slice where an all-to-all will start, for axes that are wanted right behind those it is going to move.

    Moving "x" from dimension 0 to dimension 1, which wants {"x", "y"}, is best done after slicing "y" behind "x"
    on dimension 0: both then move at once, where slicing "y" on dimension 1 would leave the two in wrong order.
    Both count among what dimension 1 may be split further.
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
    """A dimension, and the axes that an all-to-all from dimension `d` to it can bring straight into place.

    The first of them stand at the end of `d`, the others are free. There are none unless `d` wants nothing else,
    nothing is misplaced on the other dimension, all that `d` has for it stands at its end, in order, and the
    free axes divide what is left of dimension `d`.
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
