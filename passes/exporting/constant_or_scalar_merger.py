"""`sdy-constant-or-scalar-merger`: constants that ended up with the same sharding are one again."""

from collections.abc import Callable, Hashable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.traits import ConstantLike

from sdy.dialect.ops import ConstantOp
from sdy.dialect.walk import operations_of, operations_with
from sdy.passes.common.editing import TellingPass, replace
from sdy.passes.common.tensors import is_scalar
from sdy.stablehlo.broadcast import BroadcastInDimOp


class ConstantOrScalarMergerPass(TellingPass):
    """Merge equal constants, and equal broadcasts of one scalar, within a region where their attributes agree.

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
        constants = [*operations_of(op, ConstantOp), *operations_with(op, ConstantLike)]
        broadcasts = [broadcast for broadcast in operations_of(op, BroadcastInDimOp) if is_scalar(broadcast.operand)]
        first_of: dict[Hashable, Operation] = {}
        first_of_same: dict[Hashable, Operation] = {}
        for operation in (*constants, *broadcasts):
            # To hash attributes takes long, and most that are equal are the same.
            same = _key(operation, id)
            first = first_of_same.get(same)
            if first is None:
                first = first_of_same[same] = first_of.setdefault(_key(operation, _itself), operation)
            if first is not operation:
                replace(operation, first.results)


def _key(operation: Operation, key_of: Callable[[Attribute], Hashable]) -> Hashable:
    """What two operations have in common that may be one, as far as `key_of` tells attributes apart."""
    items = [*operation.properties.items(), *operation.attributes.items()]
    return (
        operation.__class__,
        operation.parent_region(),
        tuple(operation.operands),
        tuple([key_of(result.type) for result in operation.results]),
        frozenset([(name, key_of(attribute)) for name, attribute in items]),
    )


def _itself(attribute: Attribute) -> Attribute:
    return attribute
