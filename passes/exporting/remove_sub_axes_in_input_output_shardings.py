"""`sdy-remove-sub-axes-in-input-output-shardings`: remove sub-axes from the shardings of inputs and outputs."""

from dataclasses import replace
from itertools import takewhile

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.ir.editing import AnalysisPreservingPass
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.function_shardings import change_input_output_shardings
from sdy.sharding import DimSharding


class RemoveSubAxesInInputOutputShardingsPass(AnalysisPreservingPass):
    """Truncate each open dimension of the main function's inputs and outputs before its first sub-axis.

    Before::

        func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y":(1)2, ?}, {"z":(1)2}]>})

    After::

        func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {"z":(1)2}]>})

    Closed dimensions are the user's and are kept.

    Raises:
        DiagnosticError: The module has several functions and none is `@main`.
    """

    name = "sdy-remove-sub-axes-in-input-output-shardings"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        change_input_output_shardings(main_function(op), lambda sharding, _: sharding.map_dims(_truncate_at_sub_axis))


def _truncate_at_sub_axis(dim: DimSharding) -> DimSharding:
    if dim.is_closed or all(axis.is_full for axis in dim.axes):
        return dim
    return replace(dim, axes=tuple(takewhile(lambda axis: axis.is_full, dim.axes)))
