"""Decide whether to reshard the result of a matrix product instead of an operand."""

from functools import lru_cache

from sdy.axes import AxisRef
from sdy.factors import project, unproject
from sdy.mesh import Mesh
from sdy.passes.spmd.plan.operation_plan import Tensors, closed_if_missing
from sdy.sharding import TensorSharding


@lru_cache(maxsize=2**12)
def plan_dot_result(tensors: Tensors, mesh_name: str | Mesh, mesh: Mesh) -> TensorSharding | None:
    """Return the sharding in which a dot product should produce its result, to be resharded after it.

    In

        [{}, {"x"}] . [{"x"}, {"y"}] -> [{}, {"x"}]

    each device has a partial sum along "x", and "x" splits a dimension of the result that "y" splits in the right
    operand. If the product has the result [{}, {"y"}], no operand is resharded but the smaller result. This pays if

     - the operands agree on shared factors, and use no axis twice;
     - the result differs from the operands in exactly one factor, which its operand splits, and is no larger than that
       operand;
     - the axes of the result's conflicting factor are the contracted axes, in order.

    Args:
        tensors: The rule, shardings and sizes of the left operand, the right operand and the result, which must have a
            sharding.
        mesh_name: The mesh of the sharding, by name or inlined.
        mesh: The mesh itself.

    Returns:
        The sharding of the result before its reshard, or None to keep the one that it has.
    """
    rule = tensors.rule
    projection = project(rule, closed_if_missing(tensors, mesh_name), mesh)
    lhs, rhs, result = (tensor.factors for tensor in projection.tensors)
    lhs_size, rhs_size, result_size = tensors.sizes

    contracted: list[AxisRef] = []
    used: list[AxisRef] = []
    conflicts: list[tuple[int, tuple[AxisRef, ...], int]] = []
    for factor in range(rule.num_factors):
        sides = [(side[factor].axes, size) for side, size in ((lhs, lhs_size), (rhs, rhs_size)) if factor in side]
        axes, operand_size = sides[0][0], max(size for _, size in sides)
        if len(sides) == 2:
            if sides[0][0] != sides[1][0]:
                return None
            if factor in rule.reduction:
                contracted += axes
                continue
        else:
            if any(axis.overlaps(other) for axis in axes for other in used):
                return None
            used += axes
        if result[factor].axes != axes:
            conflicts.append((factor, axes, operand_size))

    if len(conflicts) != 1:
        return None
    factor, axes, operand_size = conflicts[0]
    if not axes or result_size > operand_size or not contracted or list(result[factor].axes) != contracted:
        return None
    result[factor].axes = axes
    return unproject(projection.results[0], rule.results[0], rule.factor_sizes, mesh_name, mesh)
