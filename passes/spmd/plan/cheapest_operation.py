"""Choose the cheapest shardings for an operation: several candidates, each with its own reshards, are compared."""

from collections.abc import Iterator
from dataclasses import replace

from xdsl.ir import Operation

from sdy.dialect.shardings import get_sharding
from sdy.mesh import Mesh
from sdy.passes.spmd.plan.alternative_plans import alternatives, have_same_devices
from sdy.passes.spmd.plan.candidate_plans import plans_of_exchanged_reshape, plans_of_reshape
from sdy.passes.spmd.plan.operation_plan import Meshes, OperationShardings, Tensors, plan_operation, plan_with_axes
from sdy.passes.spmd.plan.plan_cost import least_reshape_cost, plan_cost, plan_received, received_in_reshape
from sdy.passes.spmd.plan.reshard_cost import before_reshards
from sdy.passes.spmd.plan.shared_reshards import is_elementwise, variables
from sdy.sharding import equivalent
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.shape import ReshapeOp
from sdy.stablehlo.slicing import DynamicSliceOp, SliceOp


def cheapest_operation(
    op: Operation, tensors: Tensors, mesh_name: str | Mesh, meshes: Meshes, reshapes: bool
) -> OperationShardings:
    """Return the cheapest plan: that of `plan_operation` or an alternative.

    Alternatives do not split reduction factors, do not move the axes of need-replication factors to other factors, or
    come from `candidate_plans`.

    Args:
        op: The operation.
        tensors: The sharding rule of `op`, and the shardings and sizes of its operands and results.
        mesh_name: The mesh on which the operation is to run.
        meshes: All meshes that the shardings refer to.
        reshapes: Whether the operation is a reshape; see `plan_operation`.
    """
    mesh = meshes[mesh_name]
    plan = plan_operation(tensors, mesh_name, meshes, reshapes)
    if isinstance(op, ReshapeOp) and have_same_devices(meshes, mesh):
        return _cheapest_reshape(op, tensors, plan, mesh_name, mesh)
    is_partial = isinstance(op, ConvolutionOp) and bool(plan.reduction_axes)
    if any(plan.shardings) or is_partial:
        plans, measure = alternatives(op, tensors, plan, mesh_name, meshes, reshapes), plan_cost
    else:  # The shardings are compatible; without fewer bytes, a constraint stays where the program has it.
        plans, measure = (plan, *_plans_before_reshards(op, tensors, mesh_name, mesh)), plan_received
    best = plan if len(plans) == 1 else min(plans, key=lambda each: measure(op, tensors, each, mesh))
    return replace(best, reduction_axes=()) if isinstance(op, DynamicSliceOp) else best


def _plans_before_reshards(
    op: Operation, tensors: Tensors, mesh_name: str | Mesh, mesh: Mesh
) -> Iterator[OperationShardings]:
    """Yield the plan of an operation in the sharding that all operands have before they are resharded.

    The result is resharded instead. There is no such plan if the operands differ, or if the operation is neither
    elementwise nor a slice of a tensor that only it uses.
    """
    if isinstance(op, SliceOp) and op.operand.has_one_use():
        values, dims = [op.operand], tensors.rule.operands[0]
    elif is_elementwise(op):
        values, dims = variables(op), tensors.rule.results[0]
    else:
        return
    sources = set(map(get_sharding, map(before_reshards, values)))
    source = sources.pop() if len(sources) == 1 else None
    if source is None or source.mesh != mesh_name or equivalent(source, get_sharding(op.results[0])):
        return
    axes = {factor: axes for [factor], axes in zip(dims, source.dim_axes, strict=True)}
    axes_per_factor = tuple(axes.get(factor, ()) for factor in range(tensors.rule.num_factors))
    yield plan_with_axes(tensors, axes_per_factor, mesh_name, mesh)


def _cheapest_reshape(
    op: ReshapeOp, tensors: Tensors, plan: OperationShardings, mesh_name: str | Mesh, mesh: Mesh
) -> OperationShardings:
    """Return the cheapest plan of a reshape: `plan`, one that splits shared factors, or one with an exchange."""
    if not any(plan.shardings) and not received_in_reshape(op, tensors.shardings, mesh):
        return plan
    best, cost = plan, plan_cost(op, tensors, plan, mesh)
    for each in (*plans_of_reshape(tensors, mesh_name, mesh), *plans_of_exchanged_reshape(tensors, mesh_name, mesh)):
        if least_reshape_cost(op, tensors, each, mesh) < cost and (other := plan_cost(op, tensors, each, mesh)) < cost:
            best, cost = each, other
    return best
