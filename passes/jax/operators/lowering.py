"""Lowering of calls of annotated operators to StableHLO operations, which XLA alone can run too.

For several devices, the operation is a custom call with a sharding rule; XLA's partitioner calls back for the function
of one device. For one device, it is a composite, which XLA inlines. Both have the call as attribute `sdy.operator`, and
the rule. A function that calls Python is lowered inline.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import jax
from jax.experimental.custom_partitioning import custom_partitioning
from jax.interpreters import mlir
from jax.sharding import NamedSharding, PartitionSpec
from jaxlib.mlir import ir

from sdy.axes import AxisRef
from sdy.diagnostics import ComputedWholeWarning, warn
from sdy.dialect.attributes import OPERATOR, SHARDING_RULE
from sdy.dialect.rule_syntax import rule_text
from sdy.mesh import Mesh
from sdy.operators.call import OperatorCall
from sdy.operators.rules import OperatorRule
from sdy.passes.common.replication_cost import LocalBytes
from sdy.passes.jax.operators.constants import with_constants
from sdy.passes.jax.operators.on_device import on_device
from sdy.passes.jax.operators.traced import ArrayOperator, traced_call
from sdy.passes.spmd.plan.common_sharding import uneven_factors
from sdy.passes.spmd.plan.operation_plan import Tensors, plan_operation
from sdy.passes.spmd.plan.operator_parts import OperatorParts, evenly_split, factor_axes, summed_axes_of_results
from sdy.sharding import DimSharding, TensorSharding


def lower(
    ctx: mlir.LoweringRuleContext, *operands: ir.Value, operator: ArrayOperator, call: OperatorCall
) -> Sequence[ir.Value]:
    """Lower a call, as the lowering rule of the operator primitive."""
    if traced_call(operator, call, tuple(ctx.avals_in)).calls_python:
        return mlir.lower_fun(on_each_device(operator.function(call)), multiple_results=True)(ctx, *operands)
    inputs, outputs = ([aval.shape for aval in avals] for avals in (ctx.avals_in, ctx.avals_out))
    rule = operator.rule(call, inputs, outputs)
    if getattr(ctx.module_context.axis_context, "num_devices", None) == 1:
        run = jax.lax.composite(with_constants(operator.function(call)), f"sdy.{call.operator}")
    else:
        run = _partitioned(operator, call, rule)

    def compute(*arrays: jax.Array) -> Any:
        return run(*arrays)

    results = mlir.lower_fun(compute, multiple_results=True)(ctx, *operands)
    if operands and results:
        attributes = results[0].owner.attributes
        attributes[OPERATOR] = ir.StringAttr.get(str(call))
        attributes[SHARDING_RULE] = ir.Attribute.parse(f"#sdy.op_sharding_rule{rule_text(rule.rule)}")
    return results


def on_each_device(function: Callable[..., tuple[jax.Array, ...]]) -> Callable[..., tuple[jax.Array, ...]]:
    """Return `function` with an optimization barrier on its results, so that they are on every device.

    Otherwise, XLA keeps the result of a callback on the device that called it if the program returns the result.
    """
    return lambda *operands: jax.lax.optimization_barrier(function(*operands))


def _partitioned(operator: ArrayOperator, call: OperatorCall, rule: OperatorRule) -> custom_partitioning:
    """Return the call as a `custom_partitioning` function, which gives XLA's partitioner the function of one device."""

    def partition(mesh: jax.sharding.Mesh, arguments: Sequence[Any], results: Sequence[Any]) -> tuple[Any, ...]:
        tensors = [*arguments, *results]
        own_mesh = Mesh.of(mesh)
        given = tuple(_sharding(tensor, own_mesh) for tensor in tensors)
        sizes = tuple(tensor.size for tensor in tensors)
        even = evenly_split(rule.rule, given, own_mesh)
        plan = plan_operation(Tensors(even, given, sizes), own_mesh, {own_mesh: own_mesh}, reshapes=False)
        planned = [new or old for new, old in zip(plan.shardings, given, strict=True)]
        axes = factor_axes(rule, planned, own_mesh)
        parts = OperatorParts.least_padded(operator, call, rule, (), axes, own_mesh)
        local = with_constants(operator.function(call.with_sizes(parts.sizes)))
        _warn_of_replication(call, rule, tensors, given, planned, own_mesh, len(arguments))
        partial = [tuple(axis.name for axis in axes) for axes in summed_axes_of_results(rule, axes)]

        def run(*operands: jax.Array) -> tuple[jax.Array, ...]:
            outputs = zip(local(*operands), partial, strict=True)
            return tuple(jax.lax.psum(output, names) if names else output for output, names in outputs)

        named = [
            NamedSharding(mesh, PartitionSpec(*(tuple(axis.name for axis in dim) for dim in sharding.dim_axes)))
            for sharding in planned
        ]
        return mesh, on_device(run), tuple(named[len(arguments) :]), tuple(named[: len(arguments)])

    function = custom_partitioning(with_constants(operator.function(call)))
    function.def_partition(partition)
    return function


def _warn_of_replication(
    call: OperatorCall,
    rule: OperatorRule,
    tensors: Sequence[Any],
    given: Sequence[TensorSharding],
    planned: Sequence[TensorSharding],
    mesh: Mesh,
    num_operands: int,
) -> None:
    """Warn if XLA replicates an operator along identifiers that the axes of the shardings do not divide."""
    uneven = uneven_factors(rule.rule, given, mesh)
    names = ", ".join(
        f"`{name}` of size {rule.fitted.sizes[name]}" for name in rule.factors if rule.factors[name] in uneven
    )
    before, after = (
        LocalBytes(sum(held[:num_operands]), sum(held[num_operands:]))
        for held in (
            [_bytes(*each, mesh) for each in zip(tensors, shardings, strict=True)] for shardings in (given, planned)
        )
    )
    if names and (cost := before.describe_increase(after)):
        problem = f"is split into fewer shards along {names}, which its axes do not divide"
        advice = "compile with sdy.jit, which pads it, or pad the arrays"
        warn(None, f"operator '{call.name}' {problem} ({cost}); {advice}", category=ComputedWholeWarning)


def _bytes(tensor: Any, sharding: TensorSharding, mesh: Mesh) -> int:
    """Return the bytes of a device's shard of a tensor."""
    return prod(sharding.local_shape(tensor.shape, mesh)) * tensor.dtype.itemsize


def _sharding(tensor: Any, mesh: Mesh) -> TensorSharding:
    """Convert the sharding that XLA's partitioner passes for a tensor."""
    spec = tensor.sharding.spec
    entries = (*spec, *[None] * (len(tensor.shape) - len(spec)))
    names = [(entry,) if isinstance(entry, str) else entry or () for entry in entries]
    return TensorSharding(mesh, tuple(DimSharding(tuple(map(AxisRef, axes))) for axes in names))
