"""`sdy-remove-all-gather-reduce-scatter-for-cmv1`: remove the collectives around dot products that XLA inserts."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from sdy.dialect.collectives import AllGatherOp, ReduceScatterOp
from sdy.dialect.shardings import get_sharding, set_result_shardings
from sdy.ir.walking import operations_of
from sdy.stablehlo.dot import DotGeneralOp, DotOp


class RemoveAllGatherReduceScatterForCmv1Pass(ModulePass):
    """Remove the all-gathers before a dot product, or, if it has none, the reduce-scatter after it.

    Before::

        %0 = sdy.all_gather [{"x"}, {}] %arg1 out_sharding=<@mesh, [{}, {}]> : tensor<16x32xf32>
        %1 = stablehlo.dot %arg0, %0 : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>

    After::

        %0 = stablehlo.dot %arg0, %arg1 : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>

    The first version of XLA's collective matmul (CMv1) inserts these collectives itself, to overlap them with the
    multiplication. An all-gather is removed only if the dot product is its only user; a reduce-scatter only if it is
    the only user of the dot product, and the dot product has no unreduced axes.
    """

    name = "sdy-remove-all-gather-reduce-scatter-for-cmv1"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for dot in operations_of(op, DotOp, DotGeneralOp):
            if not _remove_all_gathers(dot):
                _remove_reduce_scatter(dot)


def _remove_all_gathers(dot: DotOp | DotGeneralOp) -> bool:
    """Remove the all-gathers of operands that only `dot` uses, and return whether there were any."""
    gathers = [value.owner for value in dot.operands if isinstance(value.owner, AllGatherOp) and value.has_one_use()]
    for gather in gathers:
        Rewriter.replace_op(gather, (), (gather.operands[0],))
    return bool(gathers)


def _remove_reduce_scatter(dot: DotOp | DotGeneralOp) -> None:
    """Remove the only user of `dot` if it is a reduce-scatter, and give its sharding to `dot`."""
    scatter = dot.results[0].get_user_of_unique_use()
    sharding = get_sharding(dot.results[0])
    if isinstance(scatter, ReduceScatterOp) and not (sharding and sharding.unreduced):
        set_result_shardings(dot, [scatter.out_sharding.data])
        Rewriter.replace_op(scatter, (), (dot.results[0],))
