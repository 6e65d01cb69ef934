"""Deciding whether the result of a matrix product is better resharded than its operands."""

from functools import lru_cache

from sdy.axes import AxisRef
from sdy.factors import project, unproject
from sdy.mesh import Mesh
from sdy.passes.spmd.reshards.operation_plan import Tensors, closed_if_missing
from sdy.sharding import TensorSharding


@lru_cache(maxsize=2**12)
def plan_dot_result(tensors: Tensors, mesh_name: str | Mesh, mesh: Mesh) -> TensorSharding | None:
    """The sharding that a dot product should give its result, to be resharded after it; None to leave all as it is.

    `tensors` are the left operand, the right operand and the result, which has a sharding. With axes "x" and "y" and

        [{}, {"x"}] . [{"x"}, {"y"}] -> [{}, {"x"}]

    each device has a partial product along "x", and the result is split by "x" in a dimension that the right operand
    splits by "y". The product can run with result [{}, {"y"}], which needs no reshard of the operand; the smaller
    result is resharded instead. This pays if

     - the operands agree, and use no axis twice;
     - the result differs from them in exactly one factor, which the operand does split, and is no larger than it;
     - what splits the result there are the contracted axes, in order.
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
