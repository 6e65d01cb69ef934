"""`sdy-drop-sharding-rules`: remove sharding rules that can be rebuilt."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.attributes import SHARDING_RULE, OpShardingRuleAttr
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.walking import operations


class DropShardingRulesPass(AnalysisPreservingPass):
    """Remove the sharding rule of each operation, unless it is a custom rule, which the user wrote.

    Before::

        %0 = stablehlo.negate %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}>} : tensor<8xf32>

    After::

        %0 = stablehlo.negate %arg0 : tensor<8xf32>
    """

    name = "sdy-drop-sharding-rules"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        drop_sharding_rules(op)


def drop_sharding_rules(module: ModuleOp) -> None:
    """Erase the sharding rules that propagation attached to operations of `module`; custom rules stay."""
    for op in operations(module):
        rule = op.attributes.get(SHARDING_RULE)
        if rule is not None and isinstance(rule, OpShardingRuleAttr) and not rule.data.is_custom:
            del op.attributes[SHARDING_RULE]
