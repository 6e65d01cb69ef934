"""`sdy-constant-or-scalar-merger`: constants that ended up with the same sharding are one again."""

from collections.abc import Hashable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import ConstantLike

from sdy.dialect.ops import ConstantOp
from sdy.dialect.traits import has_trait
from sdy.dialect.walk import operations_inside_out
from sdy.passes.common.tensors import is_scalar
from sdy.stablehlo.broadcast import BroadcastInDimOp


class ConstantOrScalarMergerPass(ModulePass):
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
        first_of: dict[Hashable, Operation] = {}
        for operation in operations_inside_out(op):
            if _is_mergeable(operation):
                first = first_of.setdefault(_key(operation), operation)
                if first is not operation:
                    Rewriter.replace_op(operation, [], first.results)


def _is_mergeable(operation: Operation) -> bool:
    if isinstance(operation, BroadcastInDimOp):
        return is_scalar(operation.operand)
    return isinstance(operation, ConstantOp) or has_trait(operation, ConstantLike)


def _key(operation: Operation) -> Hashable:
    attributes = frozenset({**operation.properties, **operation.attributes}.items())
    return operation.parent_region(), tuple(operation.operands), tuple(operation.result_types), attributes
