"""Choosing how an operation runs that could add up partial results, though its operands disagree on that.

With the axis "x" of 4 devices, where each has all of the left operand and a part of the right one,

    tensor<64x8xf32> [{}, {}] . tensor<8x8xf32> [{"x"}, {}] -> tensor<64x8xf32> [{}, {}]

it can take its part of the left operand too, and all add up what they have of the 512 elements of the result; or gather
the 64 elements of the right operand, and do all of the work instead of a part.
"""

import math
from dataclasses import replace

from xdsl.ir import Operation, SSAValue

from sdy.axes import total_size
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import shape
from sdy.mesh import Mesh
from sdy.passes.spmd.reshards.collective_cost import local_elements
from sdy.passes.spmd.reshards.operation_plan import Meshes, Plan, Tensors, plan_operation, summed_axes
from sdy.passes.spmd.reshards.reshard_cost import elements_around
from sdy.sharding import TensorSharding

_WORK = 1000
"""So many products a device adds up in about the time in which it receives an element."""


def cheapest_operation(op: Operation, tensors: Tensors, mesh_name: str | Mesh, meshes: Meshes, reshapes: bool) -> Plan:
    """As `plan_operation`; or where operands disagree on what is summed over, without to split it, if that costs less.

    `tensors` are those of `op`.
    """
    plan, mesh, rule = plan_operation(tensors, mesh_name, meshes, reshapes), meshes[mesh_name], tensors.rule
    if not plan.reduction_axes or not any(plan.shardings) or summed_axes(tensors, mesh_name, mesh) is not None:
        return plan
    other = plan_operation(replace(tensors, rule=rule.with_whole(rule.reduction)), mesh_name, meshes, reshapes)
    return min(plan, other, key=lambda each: _cost(op, tensors, each, mesh))


def _cost(op: Operation, tensors: Tensors, plan: Plan, mesh: Mesh) -> float:
    """The elements that all devices receive, and those that they could receive while they compute."""
    shardings = [new or old for new, old in zip(plan.shardings, tensors.shardings, strict=True)]
    summed = sum(
        _received_in_sum(*each, plan, mesh) for each in zip(op.results, shardings[len(op.operands) :], strict=True)
    )
    devices = mesh.size / total_size((axis for axes in plan.axes_per_factor for axis in axes), mesh)
    return elements_around(op, shardings) + summed + devices * math.prod(tensors.rule.factor_sizes) / _WORK


def _received_in_sum(result: SSAValue, sharding: TensorSharding | None, plan: Plan, mesh: Mesh) -> float:
    """The elements that all devices receive where partial results are added up: half where each needs a part only."""
    sizes, wanted = shape(result.type), get_sharding(result)
    local = local_elements(sharding.dim_axes, sizes, mesh) if sharding else math.prod(sizes)
    needed = local_elements(wanted.dim_axes, sizes, mesh) if wanted else math.prod(sizes)
    parts = total_size(plan.reduction_axes, mesh)
    return (1 if needed * parts <= local else 2) * local * mesh.size * (parts - 1) / parts
