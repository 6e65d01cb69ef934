"""Cost of the plan of one operation: the bytes that all devices receive, and its compute time.

*Two convolutions of one image.* The gradient of the kernel of a convolution needs the image again:

    tensor<1x16x8xf32> [{}, {}, {"x"}], kernel tensor<4x8x8xf32> -> tensor<1x16x8xf32> [{}, {}, {"x"}]

Alone, either convolution is cheapest if it reduces partial sums. If both are considered, one all-gather of the image is
cheaper: the first is charged for it only what the second does not save.
"""

import math
from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from sdy.axes import total_size
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import rank, shape
from sdy.mesh import Mesh
from sdy.passes.common.properties import element_bytes
from sdy.passes.spmd.plan.alternative_plans import alternatives
from sdy.passes.spmd.plan.exchange_cost import (
    EXCHANGING,
    elements_exchanged,
    elements_exchanged_in_reshape,
    elements_exchanged_in_windows,
)
from sdy.passes.spmd.plan.operation_plan import OperationShardings, Tensors, plan_operation
from sdy.passes.spmd.plan.rematerialize import bytes_received, least_bytes_received
from sdy.passes.spmd.plan.reshard_cost import (
    before_reshards,
    elements_behind,
    elements_resharded,
    iterations,
    iterations_of_operand,
    least_elements_behind,
    shardings_of_uses,
)
from sdy.passes.spmd.plan.sharded_operation import ShardedOperation, shardings_around
from sdy.passes.spmd.plan.shared_reshards import charge, joins, num_sharing
from sdy.passes.spmd.plan.special_rules import rule_of_convolution
from sdy.passes.spmd.reshard.collective_cost import local_elements
from sdy.passes.spmd.shards.layout import Layout
from sdy.sharding import TensorSharding
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.shape import ReshapeOp
from sdy.stablehlo.slicing import SliceOp
from sdy.stablehlo.windows import ReduceWindowOp

_WORK = 1000
"""Multiply-adds that a device computes in about the time that it takes to receive one element."""

Copies = Mapping[SSAValue, TensorSharding]
"""A sharding in which a value is available, beside its own."""


def plan_cost(
    op: Operation, tensors: Tensors, plan: OperationShardings, mesh: Mesh, copies: Copies | None = None
) -> float:
    """Return the cost of a plan in bytes: those that all devices receive, plus the compute time as bytes received.

    Args:
        op: The operation.
        tensors: Its sharding rule, shardings and sizes.
        plan: The plan.
        mesh: The mesh of all layouts.
        copies: Further shardings in which operands are available at no cost. If it is given, the reshards of operands
            are not shared with other operations.
    """
    shardings = [new or old for new, old in zip(plan.shardings, tensors.shardings, strict=True)]
    summed = sum(
        _received_in_sum(*each, plan, mesh) for each in zip(op.results, shardings[len(op.operands) :], strict=True)
    )
    summed += _received_in_exchange(op, tensors, plan, mesh)
    if isinstance(op, ConvolutionOp | ReduceWindowOp):
        layouts = _layouts((*op.operands, *op.results), shardings, mesh)
        summed += elements_exchanged_in_windows(op, layouts) * element_bytes(op.operands[0].type)
    if isinstance(op, ReshapeOp):
        summed += received_in_reshape(op, shardings, mesh)
    work = _work_of_plan(op, tensors, plan, mesh)
    return _received_in_reshards(op, shardings, mesh, copies) + iterations(op) * (summed + work)


def least_reshape_cost(op: ReshapeOp, tensors: Tensors, plan: OperationShardings, mesh: Mesh) -> float:
    """Return a lower bound of the cost of a plan, without the search for its reshards."""
    before, behind = (new or old for new, old in zip(plan.shardings, tensors.shardings, strict=True))
    received = least_elements_behind(op.result, behind) * element_bytes(op.result.type)
    operand = 0.0 if before is None else least_bytes_received(before_reshards(op.operand), before, op)
    return operand + iterations(op) * (received + _work_of_plan(op, tensors, plan, mesh))


def plan_received(op: Operation, tensors: Tensors, plan: OperationShardings, mesh: Mesh) -> float:
    """Return the bytes that all devices receive in the reshards of a plan, and in the exchange of rows of a slice."""
    shardings = [new or old for new, old in zip(plan.shardings, tensors.shardings, strict=True)]
    return _received_in_reshards(op, shardings, mesh, None) + iterations(op) * _received_in_exchange(
        op, tensors, plan, mesh
    )


def received_in_reshape(op: ReshapeOp, shardings: Sequence[TensorSharding | None], mesh: Mesh) -> int:
    """Return the bytes that all devices receive in a reshape whose operand and result have `shardings`."""
    before, after = _layouts((op.operand, op.result), shardings, mesh)
    return elements_exchanged_in_reshape(before, after) * element_bytes(op.result.type)


def _layouts(values: Sequence[SSAValue], shardings: Sequence[TensorSharding | None], mesh: Mesh) -> list[Layout]:
    return [
        Layout(value.type, sharding or TensorSharding.replicated_closed(mesh, rank(value.type)), mesh)
        for value, sharding in zip(values, shardings, strict=True)
    ]


def _received_in_exchange(op: Operation, tensors: Tensors, plan: OperationShardings, mesh: Mesh) -> float:
    """Return the bytes that all devices receive in the exchange of rows of a slice or a pad; 0 for others."""
    if not isinstance(op, SliceOp | PadOp):
        return 0
    axes_per_dim = tuple(
        tuple(axis for factor in dim for axis in plan.axes_per_factor[factor]) for dim in tensors.rule.operands[0]
    )
    return elements_exchanged(op, axes_per_dim, mesh) * element_bytes(op.result.type)


def _work_of_plan(op: Operation, tensors: Tensors, plan: OperationShardings, mesh: Mesh) -> float:
    """Return the compute time of all devices as bytes received."""
    devices = mesh.size / plan.num_parts(mesh)
    return devices * math.prod(tensors.rule.factor_sizes) * _widest(op) / _WORK


def _received_in_reshards(
    op: Operation, shardings: Sequence[TensorSharding | None], mesh: Mesh, copies: Copies | None
) -> float:
    """Return the bytes that all devices receive in reshards around `op`, in all iterations of the enclosing loops.

    The reshard of a loop-invariant operand counts once, because `sdy-hoist-invariant-collectives` hoists it. Operations
    that share the reshards of their operands count an equal part of them each, if the results keep their shardings.
    """
    results = [*zip(op.results, shardings[len(op.operands) :], strict=True)]
    is_shared = all(sharding == get_sharding(result) for result, sharding in results)
    before = sum(
        iterations_of_operand(op, value)
        * _received_in_reshard(op, before_reshards(value), sharding, mesh, copies)
        / (num_sharing(op, value) if is_shared else 1)
        for value, sharding in dict.fromkeys(zip(op.operands, shardings, strict=False))
        if sharding is not None
    )
    behind = sum(elements_behind(value, sharding) * element_bytes(value.type) for value, sharding in results)
    if behind and joins(op, shardings[-1], mesh):
        behind = 0
    return before + iterations(op) * behind


def _received_in_reshard(
    op: Operation, value: SSAValue, sharding: TensorSharding, mesh: Mesh, copies: Copies | None
) -> float:
    received = bytes_received(value, sharding, op)
    if copies is not None:
        if value in copies:
            from_copy = elements_resharded(value, copies[value], sharding, op) * element_bytes(value.type)
            received = min(received, from_copy)
        return received
    if not received or not isinstance(op, EXCHANGING):
        return received
    if isinstance(op, ConvolutionOp):
        users = dict.fromkeys(use.operation for use in value.uses)
        later = [user for user in users if isinstance(user, ConvolutionOp) and op.is_before_in_block(user)]
        received -= sum(_saved_in_convolution(user, value, sharding) for user in later)
    return charge(received, value, sharding, op, mesh) if received > 0 else 0.0


def _saved_in_convolution(op: ConvolutionOp, value: SSAValue, sharding: TensorSharding) -> float:
    """Return the bytes that all devices save around `op` if its operand `value` is available in `sharding` as well."""
    operation = ShardedOperation.of(op, shardings_around(op))
    if operation is None or operation.reduction is None:
        return 0.0
    mesh_name, meshes, mesh = operation.mesh_name, operation.meshes, operation.mesh
    rule = rule_of_convolution(op, operation.rule, operation.shardings, mesh)
    tensors = operation.tensors(rule)
    plan = plan_operation(tensors, mesh_name, meshes, reshapes=False)
    plans = alternatives(op, tensors, plan, mesh_name, meshes, reshapes=False)
    here, there = (
        min(plan_cost(op, tensors, plan, mesh, copies) for plan in plans) for copies in ({}, {value: sharding})
    )
    return here - there


def _widest(op: Operation) -> int:
    return max(element_bytes(value.type) for value in (*op.operands, *op.results))


def _received_in_sum(result: SSAValue, sharding: TensorSharding | None, plan: OperationShardings, mesh: Mesh) -> float:
    """Return the bytes that all devices receive in the all-reduce, or in the reduce-scatter if all uses are split."""
    sizes = shape(result.type)
    local = local_elements(sharding.dim_axes, sizes, mesh) if sharding else math.prod(sizes)
    uses = set(shardings_of_uses(result)) or {get_sharding(result)}
    needed = max(local_elements(use.dim_axes, sizes, mesh) if use and use.dims else math.prod(sizes) for use in uses)
    parts = total_size(plan.reduction_axes, mesh)
    received = (parts - 1) * min(2 * local / parts, max(needed, local / parts))
    return received * mesh.size * element_bytes(result.type)
