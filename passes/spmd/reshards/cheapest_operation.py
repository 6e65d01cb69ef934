"""Choosing how an operation runs where it can run in several ways, each with its own reshards.

*A contraction whose operands disagree.* With the axis "x" of 4 devices, a replicated left operand and a right operand
that is split along the contracted dimension,

    tensor<64x8xf32> [{}, {}] . tensor<8x8xf32> [{"x"}, {}] -> tensor<64x8xf32> [{}, {}]

the left operand can be sliced too and the partial results, of 512 elements each, all-reduced; or the 64 elements of the
right operand are all-gathered, and each device computes the whole product.

*A loop-invariant operand that is needed whole.* Each iteration takes one of the slices

    tensor<6x8x8xf32> [{"x"}, {}, {}] -> tensor<1x8x8xf32> [{}, {}, {}]

The operand can be split along another dimension instead, for which less is sent than to gather it, but then each slice
has to be gathered; or all of it is gathered once, before the loop.
"""

import math
from dataclasses import replace

from xdsl.ir import Operation, SSAValue

from sdy.axes import total_size
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import shape
from sdy.mesh import Mesh
from sdy.passes.spmd.reshards.collective_cost import local_elements
from sdy.passes.spmd.reshards.operation_plan import Meshes, OperationShardings, Tensors, plan_operation, summed_axes
from sdy.passes.spmd.reshards.reshard_cost import elements_over_iterations, iterations, iterations_of_operand
from sdy.sharding import TensorSharding

_WORK = 1000
"""So many products a device adds up in about the time in which it receives an element."""


def cheapest_operation(
    op: Operation, tensors: Tensors, mesh_name: str | Mesh, meshes: Meshes, reshapes: bool
) -> OperationShardings:
    """The plan of `plan_operation`, or one that costs less.

    In that one, reduction factors are not split, or the axes of factors that must be whole are not moved to others.
    `tensors` are those of `op`.
    """
    mesh, rule = meshes[mesh_name], tensors.rule
    plan = plan_operation(tensors, mesh_name, meshes, reshapes)
    if not any(plan.shardings):
        return plan
    plans = [plan]
    if plan.reduction_axes and summed_axes(tensors, mesh_name, mesh) is None:
        whole_sums = replace(tensors, rule=rule.with_whole(rule.reduction))
        plans.append(plan_operation(whole_sums, mesh_name, meshes, reshapes))
    if rule.need_replication and _gathers_before_a_loop(op, plan):
        plans.append(plan_operation(tensors, mesh_name, meshes, reshapes, moves_axes=False))
    return plan if len(plans) == 1 else min(plans, key=lambda each: _cost(op, tensors, each, mesh))


def _gathers_before_a_loop(op: Operation, plan: OperationShardings) -> bool:
    """Whether an operand that is resharded for `op` changes less often than `op` runs."""
    often = iterations(op)
    operands = dict.fromkeys(value for value, new in zip(op.operands, plan.shardings, strict=False) if new is not None)
    return often > 1 and any(iterations_of_operand(op, value) < often for value in operands)


def _cost(op: Operation, tensors: Tensors, plan: OperationShardings, mesh: Mesh) -> float:
    """The elements that all devices receive, and as many as they could receive in the time in which they compute."""
    shardings = [new or old for new, old in zip(plan.shardings, tensors.shardings, strict=True)]
    summed = sum(
        _received_in_sum(*each, plan, mesh) for each in zip(op.results, shardings[len(op.operands) :], strict=True)
    )
    devices = mesh.size / total_size((axis for axes in plan.axes_per_factor for axis in axes), mesh)
    work = devices * math.prod(tensors.rule.factor_sizes) / _WORK
    return elements_over_iterations(op, shardings) + iterations(op) * (summed + work)


def _received_in_sum(result: SSAValue, sharding: TensorSharding | None, plan: OperationShardings, mesh: Mesh) -> float:
    """The elements that all devices receive in the all-reduce; half as many where a reduce-scatter is enough."""
    sizes, wanted = shape(result.type), get_sharding(result)
    local = local_elements(sharding.dim_axes, sizes, mesh) if sharding else math.prod(sizes)
    needed = local_elements(wanted.dim_axes, sizes, mesh) if wanted else math.prod(sizes)
    parts = total_size(plan.reduction_axes, mesh)
    return (1 if needed * parts <= local else 2) * local * mesh.size * (parts - 1) / parts
