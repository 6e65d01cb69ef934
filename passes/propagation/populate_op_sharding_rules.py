"""`sdy-populate-op-sharding-rules`: attach each operation's sharding rule as an attribute."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sdy.dialect.attributes import SHARDING_RULE
from sdy.ir.walking import operations
from sdy.rules import sharding_rules


@dataclass(frozen=True)
class PopulateOpShardingRulesPass(ModulePass):
    """Attach each operation's sharding rule as an attribute, for inspection: propagation does not need the attribute.

    Before::

        %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>

    After::

        %0 = stablehlo.transpose %arg0, dims = [1, 0] {sdy.sharding_rule =
               #sdy.op_sharding_rule<([j, i])->([i, j]) {i=4, j=8}>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
    """

    name = "sdy-populate-op-sharding-rules"

    conservative_propagation: bool = False
    """Build rules that do not propagate an axis to a dimension whose size it does not divide."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for operation, rule in sharding_rules(operations(op), self.conservative_propagation):
            operation.attributes[SHARDING_RULE] = rule
