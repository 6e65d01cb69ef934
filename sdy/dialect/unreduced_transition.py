"""Which unreduced axes an operation may add to its results, and which of its operands it may drop."""

from collections.abc import Sequence

from sdy.axes import AxisRef, subtract
from sdy.mesh import Mesh
from sdy.sharding import Reduction, TensorSharding


def transition_problem(
    operands: Sequence[TensorSharding],
    results: Sequence[TensorSharding],
    mesh: Mesh,
    introduces: Reduction | None,
    removes: Reduction | None,
) -> str | None:
    """What is wrong with the unreduced axes of an operation whose shardings, all over `mesh`, are these.

    The operation may leave partial results of the kind `introduces`, and combine those of the kind `removes`; None for
    neither. Returns None if nothing is wrong.
    """
    before = [axis for sharding in operands for axis in sharding.unreduced]
    after = [axis for sharding in results for axis in sharding.unreduced]

    if added := subtract(after, before, mesh):
        if introduces is None:
            return f"cannot add new unreduced axis '{added[0].name}'."
        if other := _other_reduction(results, added, introduces):
            return f"cannot introduce '{other}' unreduced axes. Expected '{introduces}'."

    if dropped := subtract(before, after, mesh):
        if removes is None:
            return (
                f"dropped unreduced axis '{dropped[0].name}' without a blessed operation (e.g., sdy.reshard). "
                "This is an invalid transition from unreduced to reduced."
            )
        if other := _other_reduction(operands, dropped, removes):
            return f"cannot reduce '{other}' unreduced axes. Expected '{removes}'."

    for result in results:
        for operand in operands:
            if operand.reduction != result.reduction and _overlap(operand.unreduced, result.unreduced):
                return (
                    "cannot change the reduction operator of kept unreduced axes "
                    f"from {operand.reduction} to {result.reduction}."
                )
    return None


def _other_reduction(
    shardings: Sequence[TensorSharding], axes: Sequence[AxisRef], expected: Reduction
) -> Reduction | None:
    """The reduction, other than the expected one, that some sharding names for any of `axes`."""
    for sharding in shardings:
        if sharding.reduction != expected and _overlap(sharding.unreduced, axes):
            return sharding.reduction
    return None


def _overlap(first: Sequence[AxisRef], second: Sequence[AxisRef]) -> bool:
    return any(a.overlaps(b) for a in first for b in second)
