"""`sdy-remove-sharding-groups`: remove the sharding groups, which only guide propagation."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.ops import ShardingGroupOp
from sdy.ir.editing import AnalysisPreservingPass, erase
from sdy.ir.walking import operations_of


class RemoveShardingGroupsPass(AnalysisPreservingPass):
    """Remove every `sdy.sharding_group`.

    Before::

        %0 = stablehlo.negate %arg0 : tensor<8xf32>
        sdy.sharding_group %0 group_id=0 : tensor<8xf32>

    After::

        %0 = stablehlo.negate %arg0 : tensor<8xf32>
    """

    name = "sdy-remove-sharding-groups"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for group in operations_of(op, ShardingGroupOp):
            erase(group)
