"""`sdy-expand-split-operations`: a sharding that ended at what is made of other operations goes on."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from sdy.dialect.shardings import get_sharding
from sdy.ir.editing import AnalysisPreservingPass
from sdy.passes.importing.expand_operations import ExpandOperationsPass, expandable_operations
from sdy.passes.pipelines import PropagationPipeline


class ExpandSplitOperationsPass(AnalysisPreservingPass):
    """Expand composites and batch normalisations if one of them has a tensor that is split, and propagate once more.

    Shardings that values have stay, and others get those that come through what was expanded. Where nothing is split,
    composites stay too, so that a compiler can have a kernel for them. Before::

        %0 = stablehlo.composite "my.f" %arg0 {decomposition = @f} : (tensor<8xf32>) -> tensor<8xf32>

    After, %arg0 being split by "x"::

        %0 = call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : ...
    """

    name = "sdy-expand-split-operations"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(map(_is_split, expandable_operations(op))):
            ExpandOperationsPass().apply(ctx, op)
            PropagationPipeline().apply(ctx, op)


def _is_split(op: Operation) -> bool:
    shardings = map(get_sharding, (*op.operands, *op.results))
    return any(sharding is not None and not sharding.is_fully_replicated for sharding in shardings)
