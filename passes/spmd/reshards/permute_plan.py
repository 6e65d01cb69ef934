"""The second step of a plan of collectives: a permute, in which each device sends what it has to one other."""

from itertools import chain

from sdy.axes import AxisRef
from sdy.passes.spmd.reshards.collective_state import CollectivePlan, DimAxes, divide
from sdy.passes.spmd.reshards.collective_steps import CollectivePermute


def collective_permute(plan: CollectivePlan) -> None:
    """Replace what is misplaced by what is wanted, or bring it in an order in which it can be moved on."""
    permuted = _should_permute(plan) and _permute(plan)
    if not permuted and not plan.reorder_devices:
        return
    plan.reorder_devices = False
    plan.steps.append(CollectivePermute(plan.current()))


def _should_permute(plan: CollectivePlan) -> bool:
    destinations = plan.destinations()
    if any(_has_replacement(plan, dim) or _is_tangled(plan, d, destinations) for d, dim in enumerate(plan.dims)):
        return True
    # An axis to be gathered can give way to one that is still to be sliced.
    incoming = [axis for dim in plan.dims for axis in dim.wanted if plan.is_free(axis)]
    outgoing = [axis for dim in plan.dims for axis in dim.misplaced if axis not in destinations]
    return bool(incoming and outgoing) and divide(incoming[-1].size_in(plan.mesh), outgoing[-1].size_in(plan.mesh))


def _has_replacement(plan: CollectivePlan, dim: DimAxes) -> bool:
    """Whether the first misplaced axis can be replaced by the first one wanted, or by a part of it."""
    if not dim.misplaced or not dim.wanted:
        return False
    return divide(dim.misplaced[0].size_in(plan.mesh), dim.wanted[0].size_in(plan.mesh))


def _is_tangled(plan: CollectivePlan, d: int, destinations: dict[AxisRef, tuple[int, int]]) -> bool:
    """Whether the misplaced axes of dimension `d` cannot leave it from the end, in groups that stay in order."""
    dim = plan.dims[d]
    seen: set[int] = set()
    previous: tuple[int, int] | None = None
    for axis in dim.misplaced:
        place = destinations.get(axis)
        if place is None:
            if previous is not None and not dim.wanted:
                return True
        else:
            to, index = place
            if to == d or (to in seen and previous != (to, index - 1)):
                return True
            seen.add(to)
        previous = place
    return False


def _permute(plan: CollectivePlan) -> bool:
    """Choose new axes for what is misplaced, each dimension staying as split as it is; False where none do.

    Axes that a dimension wants come first, in place. Axes wanted elsewhere go to the end of any dimension that is
    not split enough yet, from where all-to-alls can move them. Axes to be gathered fill what is left, in front of
    those, and stay where they were as far as possible.
    """
    before = [dim.copy() for dim in plan.dims]
    was_wanted = set(chain(*(dim.wanted for dim in plan.dims)))
    splits_left: list[int] = []
    unwanted: list[list[AxisRef]] = []
    for dim in plan.dims:
        splits = plan.size(dim.misplaced)
        taken = plan.take(dim.wanted, splits, in_order=True)
        dim.placed += taken
        splits_left.append(splits // plan.size(taken))
        leaving = [axis for axis in dim.misplaced if axis not in was_wanted]
        replaced = plan.take(leaving, plan.size(taken), in_order=True)
        unwanted.append(leaving + replaced)
        dim.misplaced = []

    wanted = list(chain(*(dim.wanted for dim in plan.dims)))
    for dim, axes in zip(plan.dims, plan.spread(wanted, splits_left), strict=True):
        dim.misplaced = axes
    for d, dim in enumerate(plan.dims):
        taken = plan.take(unwanted[d], splits_left[d])
        dim.misplaced = taken + dim.misplaced
        splits_left[d] //= plan.size(taken)
    for dim, axes in zip(plan.dims, plan.spread(list(chain(*unwanted)), splits_left), strict=True):
        dim.misplaced = axes + dim.misplaced
        dim.settle()
    if any(splits > 1 for splits in splits_left):
        plan.dims = before
        return False
    return True
