"""Split a matrix product over unused axes if that needs no additional communication.

With axes "x" of size 2 and "y" of size 4, and a product that must all-gather its right operand along "x",

    [{"x"}, {}] . [{"x"}, {}] -> [{"x"}, {}]

devices that differ only along "y" would gather the same rows and do the same computation. Instead, each device can
slice its columns of the right operand, gather and compute a quarter, and all-gather the columns of the result:

    [{"x"}, {}] . [{}, {"y"}] -> [{"x"}, {"y"}]

In an all-gather of n shards, a device receives n-1 of them. With 64 x 64 elements, it receives the same fraction of
them, 1/8 + 3/8 instead of 1/2, and never holds the full right operand.
"""

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue

from sdy.axes import Axes, total_size
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import shape
from sdy.mesh import Mesh
from sdy.passes.spmd.plan.operation_plan import OperationShardings, Tensors, plan_with_axes
from sdy.passes.spmd.plan.reshard_cost import elements_around
from sdy.passes.spmd.reshard.collective_cost import local_elements
from sdy.sharding import TensorSharding


def spread(
    op: Operation, tensors: Tensors, plan: OperationShardings, mesh_name: str | Mesh, mesh: Mesh, free: Axes
) -> OperationShardings:
    """Return the cheapest of `plan` and the plans that split one factor of the result over the unused axes as well.

    Args:
        op: The matrix product.
        tensors: Its sharding rule, shardings and sizes.
        plan: The plan to improve, which is returned unchanged if it reshards no operand.
        mesh_name: The mesh of the planned shardings.
        mesh: The mesh itself.
        free: The axes that are not manual at `op`.
    """
    if not any(plan.shardings[: len(op.operands)]):
        return plan
    others = tuple(_spread_plans(free, tensors, plan, mesh_name, mesh))
    return min((*others, plan), key=lambda each: _received(op, tensors, each, mesh)) if others else plan


def _received(op: Operation, tensors: Tensors, plan: OperationShardings, mesh: Mesh) -> float:
    """Return the elements that all devices receive in reshards and in the all-reduce of partial sums."""
    shardings = [new or old for new, old in zip(plan.shardings, tensors.shardings, strict=True)]
    return elements_around(op, shardings) + _received_in_sum(op.results[0], shardings[-1], plan.reduction_axes, mesh)


def _received_in_sum(result: SSAValue, sharding: TensorSharding | None, axes: Axes, mesh: Mesh) -> float:
    """Return the elements that all devices receive in the all-reduce of `result` over `axes`.

    A reduce-scatter, if the wanted sharding splits a dimension over these axes next, receives half.
    """
    wanted, sizes = get_sharding(result), shape(result.type)
    before = sharding.dim_axes if sharding else ((),) * len(sizes)
    after = wanted.dim_axes if wanted else before
    scattered = any(
        last[: len(first) + len(axes)] == (*first, *axes) for first, last in zip(before, after, strict=True)
    )
    parts = total_size(axes, mesh)
    return (1 if scattered else 2) * local_elements(before, sizes, mesh) * mesh.size * (parts - 1) / parts


def _spread_plans(
    free: Axes, tensors: Tensors, plan: OperationShardings, mesh_name: str | Mesh, mesh: Mesh
) -> Iterator[OperationShardings]:
    """Yield plans in which one factor of the result is split over all the `free` axes that `plan` leaves unused."""
    used = [axis for axes in plan.axes_per_factor for axis in axes]
    unused = tuple(axis for axis in free if not any(axis.overlaps(other) for other in used))
    parts = total_size(unused, mesh)
    if parts == 1:
        return
    [result] = tensors.rule.results
    for factor in sorted(factor for factors in result for factor in factors):
        axes = plan.axes_per_factor[factor]
        if tensors.rule.factor_sizes[factor] % (total_size(axes, mesh) * parts) == 0:
            spread_axes = (*plan.axes_per_factor[:factor], (*axes, *unused), *plan.axes_per_factor[factor + 1 :])
            yield plan_with_axes(tensors, spread_axes, mesh_name, mesh)
