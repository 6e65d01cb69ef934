"""`sdy-split-triangular-solves`: shard triangular solves along the independent columns of the right-hand side."""

from dataclasses import replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.attributes import SHARDING_RULE, OpShardingRuleAttr
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.shapes import shape_of
from sdy.ir.walking import operations_of
from sdy.rules.builder import NEED_REPLICATION, RuleBuilder
from sdy.rules.registry import sharding_rule
from sdy.stablehlo.custom_call import TRIANGULAR_SOLVES, CustomCallOp, is_on_left
from sdy.stablehlo.linear_algebra import TriangularSolveOp


class SplitTriangularSolvesPass(AnalysisPreservingPass):
    """Make the columns of the right-hand side a pass-through factor of triangular solves.

    If the triangular matrix is on the right, the rows are the independent dimension. Neither Shardy's rule for the
    operation nor JAX's rule for the LAPACK call has this factor, so each device would gather the full right-hand side.
    Before::

        %0 = stablehlo.custom_call @lapack_strsm_ffi(%a, %b) {sdy.sharding_rule =
          #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=8, j=8, k=8, l=4, m=8, n=4}, custom>, ...}

    After::

        %0 = stablehlo.custom_call @lapack_strsm_ffi(%a, %b) {sdy.sharding_rule =
          #sdy.op_sharding_rule<([j, k], [l, i])->([m, i]) {i=4, j=8, k=8, l=8, m=8}
          need_replication={j, k, l, m}, custom>, ...}

    Operations with a sharding rule attribute keep it.
    """

    name = "sdy-split-triangular-solves"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        split_triangular_solves(op)


def split_triangular_solves(module: ModuleOp) -> None:
    """Annotate the triangular solves of `module` with rules whose independent dimension is a factor."""
    for solve in operations_of(module, TriangularSolveOp):
        if SHARDING_RULE not in solve.attributes and sharding_rule(solve) is not None:
            solve.attributes[SHARDING_RULE] = _rule(solve, bool(solve.left_side.value.data))
    for call in operations_of(module, CustomCallOp):
        if call.call_target_name.data in TRIANGULAR_SOLVES and SHARDING_RULE in call.attributes:
            call.attributes[SHARDING_RULE] = _rule(call, is_on_left(call))


def _rule(op: TriangularSolveOp | CustomCallOp, is_left: bool) -> OpShardingRuleAttr:
    """Build a rule with pass-through batch and independent dimensions; all others need replication."""
    shape = shape_of(op.results[0])
    rows, columns = len(shape) - 2, len(shape) - 1
    solved, independent = (rows, columns) if is_left else (columns, rows)
    rule = RuleBuilder.of(op)
    rule.add_pointwise(shape[:rows])
    rule.add(shape[independent], {1: independent}, {0: independent})
    for operands, results in (({0: rows}, {}), ({0: columns}, {}), ({1: solved}, {}), ({}, {0: solved})):
        rule.add(shape[solved], operands, results, NEED_REPLICATION)
    return OpShardingRuleAttr(replace(rule.build(), is_custom=True))
