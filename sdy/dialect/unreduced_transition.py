"""Verification of unreduced axes: which ones an operation may introduce in its results or reduce from its operands."""

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
    """Return the error message for invalid unreduced axes of an operation; None if they are valid.

    Args:
        operands: The shardings of the operands, all over `mesh`.
        results: The shardings of the results, all over `mesh`.
        mesh: The common mesh.
        introduces: The kind of partial results that the operation may produce, None for none.
        removes: The kind of partial results that the operation may combine, None for none.
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
    """Return the reduction, other than the expected one, of a sharding that overlaps `axes`."""
    for sharding in shardings:
        if sharding.reduction != expected and _overlap(sharding.unreduced, axes):
            return sharding.reduction
    return None


def _overlap(first: Sequence[AxisRef], second: Sequence[AxisRef]) -> bool:
    return any(a.overlaps(b) for a in first for b in second)
