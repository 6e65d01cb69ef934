"""Second step of the greedy reshard planner: a collective-permute, in which each device sends its shard to another."""

from itertools import chain

from sdy.axes import AxisRef
from sdy.passes.spmd.reshard.collective_state import CollectivePlan, DimAxes, divide
from sdy.passes.spmd.reshard.collective_steps import CollectivePermute


def collective_permute(plan: CollectivePlan) -> None:
    """Permute if that replaces misplaced axes by wanted ones, or orders them such that all-to-alls can move them."""
    permuted = _should_permute(plan) and _permute(plan)
    if not permuted and not plan.reorder_devices:
        return
    plan.reorder_devices = False
    plan.steps.append(CollectivePermute(plan.current()))


def _should_permute(plan: CollectivePlan) -> bool:
    destinations = plan.destinations()
    if any(_has_replacement(plan, dim) or _is_tangled(plan, d, destinations) for d, dim in enumerate(plan.dims)):
        return True
    # A permute can replace an axis that would be gathered by one that would be sliced.
    incoming = [axis for dim in plan.dims for axis in dim.wanted if plan.is_free(axis)]
    outgoing = [axis for dim in plan.dims for axis in dim.misplaced if axis not in destinations]
    return bool(incoming and outgoing) and divide(incoming[-1].size_in(plan.mesh), outgoing[-1].size_in(plan.mesh))


def _has_replacement(plan: CollectivePlan, dim: DimAxes) -> bool:
    """Return whether the sizes of the first misplaced and the first wanted axis allow replacing one by the other."""
    if not dim.misplaced or not dim.wanted:
        return False
    return divide(dim.misplaced[0].size_in(plan.mesh), dim.wanted[0].size_in(plan.mesh))


def _is_tangled(plan: CollectivePlan, d: int, destinations: dict[AxisRef, tuple[int, int]]) -> bool:
    """Return whether no sequence of all-to-alls can move the misplaced axes of dimension `d` to their places.

    All-to-alls move suffixes, and keep the order of their axes.
    """
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
    """Choose new axes in place of the misplaced ones, with the same number of shards in each dimension.

    The axes that a dimension wants come first. The axes that another dimension wants go to the end, from where
    all-to-alls can move them. The axes to be gathered fill the rest, in between, and stay in their dimension if
    possible.

    Returns:
        Whether there is such a choice; otherwise `plan` is unchanged.
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
