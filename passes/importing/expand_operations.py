"""`sdy-expand-operations`: decompose operations without a sharding rule into operations that have one."""

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.dialect.attributes import SHARDING_RULE
from sdy.dialect.ops import ShardingConstraintOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.editing import AnalysisPreservingPass, insert, replace
from sdy.ir.walking import operations_of
from sdy.passes.common.batch_norm import expand_gradient, expand_training
from sdy.stablehlo.batch_norm import BatchNormGradOp, BatchNormTrainingOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.composite import CompositeOp


class ExpandOperationsPass(AnalysisPreservingPass):
    """Replace composites by calls of their decompositions, and batch normalizations by reductions.

    Shardings then propagate through them, and each device computes its shard. Before::

        %0 = stablehlo.composite "my.f" %arg0 {decomposition = @f} : (tensor<8xf32>) -> tensor<8xf32>

    After::

        %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>

    Operations with a sharding rule attribute are kept, as are batch normalizations with quantized elements or dynamic
    shapes.
    """

    name = "sdy-expand-operations"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        expand_operations(op)


def expand_operations(module: ModuleOp) -> None:
    """Replace the operations of `module` that are composed of others; their shardings become constraints."""
    for op in expandable_operations(module):
        shardings = [get_sharding(result) for result in op.results]
        values = _EXPANSIONS[type(op)](op)
        for index, (value, sharding) in enumerate(zip(values, shardings, strict=True)):
            if sharding is not None:
                constraint = ShardingConstraintOp(value, sharding)
                constraint.location = op.location
                insert(constraint, InsertPoint.before(op))
                values[index] = constraint.result
        replace(op, values)


def expandable_operations(module: ModuleOp) -> Sequence[Operation]:
    """Return the operations that `sdy-expand-operations` replaces."""
    return [
        op
        for op in operations_of(module, *_EXPANSIONS)
        if SHARDING_RULE not in op.attributes and (isinstance(op, CompositeOp) or _has_static_float_operands(op))
    ]


def _has_static_float_operands(op: Operation) -> bool:
    types = map(tensor_type, op.operands)
    return all(type_.has_static_shape() and isinstance(type_.element_type, AnyFloat) for type_ in types)


def _call(op: CompositeOp) -> list[SSAValue]:
    call = CallOp(op.decomposition, op.operands, op.result_types)
    call.location = op.location
    insert(call, InsertPoint.before(op))
    return list(call.results)


_EXPANSIONS: dict[type[Operation], Callable[[Any], list[SSAValue]]] = {
    BatchNormGradOp: expand_gradient,
    BatchNormTrainingOp: expand_training,
    CompositeOp: _call,
}
"""Functions that insert the decomposition before an operation and return the values of its results."""
