"""`sdy-expand-split-operations`: expansion of sharded composites and batch normalizations."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from sdy.dialect.shardings import get_sharding
from sdy.ir.editing import AnalysisPreservingPass
from sdy.passes.importing.expand_operations import expand_operations, expandable_operations


class ExpandSplitOperationsPass(AnalysisPreservingPass):
    """Expand composites and batch normalizations if one of them has a sharded operand or result.

    The expanded operations have no shardings yet: run `sdy-propagation-pipeline` next. If none is sharded, composites
    are unchanged, so that a compiler can select a kernel for them. Before::

        %0 = stablehlo.composite "my.f" %arg0 {decomposition = @f} : (tensor<8xf32>) -> tensor<8xf32>

    After this pass and propagation, with %arg0 sharded along "x"::

        %0 = call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : ...
    """

    name = "sdy-expand-split-operations"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if expands(op):
            expand_operations(op)


def expands(module: ModuleOp) -> bool:
    """Return whether `sdy-expand-split-operations` expands operations of `module`."""
    return any(map(_is_split, expandable_operations(module)))


def _is_split(op: Operation) -> bool:
    shardings = map(get_sharding, (*op.operands, *op.results))
    return any(sharding is not None and not sharding.is_fully_replicated for sharding in shardings)
