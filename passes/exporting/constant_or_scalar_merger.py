"""`sdy-constant-or-scalar-merger`: merge equal constants with equal shardings."""

from collections.abc import Hashable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import ConstantLike

from sdy.dialect.ops import ConstantOp
from sdy.ir.editing import AnalysisPreservingPass, replace
from sdy.ir.fast_access import operands_of, type_of
from sdy.ir.shapes import is_scalar
from sdy.ir.walking import operations_of, operations_with
from sdy.stablehlo.broadcast import BroadcastInDimOp


class ConstantOrScalarMergerPass(AnalysisPreservingPass):
    """Merge equal constants, and equal broadcasts of one scalar, within a region if their attributes are equal.

    A `stablehlo.constant` may be merged with an equal `sdy.constant`: the first of them is kept.

    Before::

        %0 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0> : tensor<8xf32>
        %1 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0> : tensor<8xf32>
        %2 = stablehlo.add %0, %1 : tensor<8xf32>

    After::

        %0 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0> : tensor<8xf32>
        %1 = stablehlo.add %0, %0 : tensor<8xf32>

    The pass merges the copies that `sdy-constant-or-scalar-splitter` created, unless propagation sharded them
    differently.
    """

    name = "sdy-constant-or-scalar-merger"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        other_classes = {constant.__class__ for constant in operations_with(op, ConstantLike)}
        constants = operations_of(op, ConstantOp, *other_classes)
        broadcasts = [broadcast for broadcast in operations_of(op, BroadcastInDimOp) if is_scalar(broadcast.operand)]
        first_of: dict[Hashable, Operation] = {}
        first_of_identical: dict[Hashable, Operation] = {}
        for operation in (*constants, *broadcasts):
            # Hashing attributes is slow, and most equal attributes are the same object.
            identity_key = _identity_key(operation)
            first = first_of_identical.get(identity_key)
            if first is None:
                first = first_of_identical[identity_key] = first_of.setdefault(_equality_key(operation), operation)
            if first is not operation:
                replace(operation, first.results)


def _identity_key(operation: Operation) -> Hashable:
    """Return a key of object ids: operations with the same key are equal."""
    properties, attributes = operation.properties, operation.attributes
    objects = (operation.parent_region(), type_of(operation.results[0]), *properties.values(), *attributes.values())
    return *properties, *attributes, *map(id, operands_of(operation)), *map(id, objects)


def _equality_key(operation: Operation) -> Hashable:
    """Return a key that equal operations in the same region share."""
    attributes = frozenset({**operation.properties, **operation.attributes}.items())
    return operation.parent_region(), tuple(operation.operands), tuple(operation.result_types), attributes
