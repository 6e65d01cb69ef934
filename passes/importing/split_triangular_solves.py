"""`sdy-split-triangular-solves`: the columns of a triangular solve's right side are solved apart, so may be split."""

from dataclasses import replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.attributes import SHARDING_RULE, OpShardingRuleAttr
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.shapes import shape_of
from sdy.ir.walking import operations_of
from sdy.rules.builder import NEED_REPLICATION, RuleBuilder
from sdy.rules.registry import sharding_rule
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.lapack import TRIANGULAR_SOLVES, is_on_left
from sdy.stablehlo.linear_algebra import TriangularSolveOp


class SplitTriangularSolvesPass(AnalysisPreservingPass):
    """Let the columns of the right side pass through triangular solves; the rows, where the matrix is on the right.

    Neither Shardy's rule for the operation nor JAX's for the call of LAPACK lets them, so that each device receives the
    whole right side. Before::

        %0 = stablehlo.custom_call @lapack_strsm_ffi(%a, %b) {sdy.sharding_rule =
          #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=8, j=8, k=8, l=4, m=8, n=4}, custom>, ...}

    After::

        %0 = stablehlo.custom_call @lapack_strsm_ffi(%a, %b) {sdy.sharding_rule =
          #sdy.op_sharding_rule<([j, k], [l, i])->([m, i]) {i=4, j=8, k=8, l=8, m=8}
          need_replication={j, k, l, m}, custom>, ...}

    An operation to which a rule was given keeps it.
    """

    name = "sdy-split-triangular-solves"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for solve in operations_of(op, TriangularSolveOp):
            if SHARDING_RULE not in solve.attributes and sharding_rule(solve) is not None:
                solve.attributes[SHARDING_RULE] = _rule(solve, bool(solve.left_side.value.data))
        for call in operations_of(op, CustomCallOp):
            if call.call_target_name.data in TRIANGULAR_SOLVES and SHARDING_RULE in call.attributes:
                call.attributes[SHARDING_RULE] = _rule(call, is_on_left(call))


def _rule(op: TriangularSolveOp | CustomCallOp, is_left: bool) -> OpShardingRuleAttr:
    """Batches and what is solved apart pass through; the rest is needed whole, and nothing is propagated along it."""
    shape = shape_of(op.results[0])
    rows, columns = len(shape) - 2, len(shape) - 1
    solved, apart = (rows, columns) if is_left else (columns, rows)
    rule = RuleBuilder.of(op)
    rule.add_pointwise(shape[:rows])
    rule.add(shape[apart], {1: apart}, {0: apart})
    for operands, results in (({0: rows}, {}), ({0: columns}, {}), ({1: solved}, {}), ({}, {0: solved})):
        rule.add(shape[solved], operands, results, NEED_REPLICATION)
    return OpShardingRuleAttr(replace(rule.build(), is_custom=True))
