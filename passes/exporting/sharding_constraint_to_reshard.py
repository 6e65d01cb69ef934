"""`sdy-sharding-constraint-to-reshard`: replace sharding constraints by reshards."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.ops import ReshardOp, ShardingConstraintOp
from sdy.ir.editing import AnalysisPreservingPass, replace
from sdy.ir.walking import operations_of
from sdy.passes.propagation.provenance.history import succeed


class ShardingConstraintToReshardPass(AnalysisPreservingPass):
    """Replace every `sdy.sharding_constraint` by an `sdy.reshard` to the same sharding.

    Before::

        %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}]> : tensor<8xf32>

    After::

        %0 = sdy.reshard %arg0 <@mesh, [{"x"}]> : tensor<8xf32>
    """

    name = "sdy-sharding-constraint-to-reshard"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for constraint in operations_of(op, ShardingConstraintOp):
            reshard = ReshardOp(constraint.input, constraint.sharding.data)
            reshard.attributes = constraint.attributes.copy()
            reshard.location = constraint.location
            replace(constraint, reshard)
            succeed(op, reshard, constraint)
