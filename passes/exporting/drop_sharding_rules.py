"""`sdy-drop-sharding-rules`: remove sharding rules that can be rebuilt."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.walking import operations
from sdy.rules import remove_sharding_rules


class DropShardingRulesPass(AnalysisPreservingPass):
    """Remove the sharding rule of each operation, unless it is a custom rule, which the user wrote.

    Before::

        %0 = stablehlo.negate %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}>} : tensor<8xf32>

    After::

        %0 = stablehlo.negate %arg0 : tensor<8xf32>
    """

    name = "sdy-drop-sharding-rules"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        remove_sharding_rules(operations(op))
