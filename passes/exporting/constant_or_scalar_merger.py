"""`sdy-constant-or-scalar-merger`: constants that ended up with the same sharding are one again."""

from collections.abc import Hashable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import ConstantLike

from sdy.dialect.ops import ConstantOp
from sdy.ir.editing import AnalysisPreservingPass, replace
from sdy.ir.fields import operands_of, type_of
from sdy.ir.shapes import is_scalar
from sdy.ir.walking import operations_of, operations_with
from sdy.stablehlo.broadcast import BroadcastInDimOp


class ConstantOrScalarMergerPass(AnalysisPreservingPass):
    """Merge equal constants, and equal broadcasts of one scalar, within a region where their attributes agree.

    A `stablehlo.constant` may be merged with an equal `sdy.constant`: the first of them stays.

    Before::

        %0 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0> : tensor<8xf32>
        %1 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0> : tensor<8xf32>
        %2 = stablehlo.add %0, %1 : tensor<8xf32>

    After::

        %0 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0> : tensor<8xf32>
        %1 = stablehlo.add %0, %0 : tensor<8xf32>

    This takes back what `sdy-constant-or-scalar-splitter` did where propagation made no use of it.
    """

    name = "sdy-constant-or-scalar-merger"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        other_classes = {constant.__class__ for constant in operations_with(op, ConstantLike)}
        constants = operations_of(op, ConstantOp, *other_classes)
        broadcasts = [broadcast for broadcast in operations_of(op, BroadcastInDimOp) if is_scalar(broadcast.operand)]
        first_of: dict[Hashable, Operation] = {}
        first_of_same: dict[Hashable, Operation] = {}
        for operation in (*constants, *broadcasts):
            # To hash attributes takes long, and most that are equal are the same.
            same = _same(operation)
            first = first_of_same.get(same)
            if first is None:
                first = first_of_same[same] = first_of.setdefault(_equal(operation), operation)
            if first is not operation:
                replace(operation, first.results)


def _same(operation: Operation) -> Hashable:
    """What two operations that are surely one have in common, as addresses."""
    properties, attributes = operation.properties, operation.attributes
    objects = (operation.parent_region(), type_of(operation.results[0]), *properties.values(), *attributes.values())
    return *properties, *attributes, *map(id, operands_of(operation)), *map(id, objects)


def _equal(operation: Operation) -> Hashable:
    """What two operations that may be one have in common."""
    attributes = frozenset({**operation.properties, **operation.attributes}.items())
    return operation.parent_region(), tuple(operation.operands), tuple(operation.result_types), attributes
