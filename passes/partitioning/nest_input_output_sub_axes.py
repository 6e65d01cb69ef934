"""`sdy-nest-input-output-sub-axes`: one way to cut each axis into sub-axes at a program's inputs and outputs."""

from dataclasses import replace
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from sdy.axes import AxisRef
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.walking import operations_of
from sdy.passes.common.function_shardings import change_input_output_shardings
from sdy.sharding import DimSharding, TensorSharding


class NestInputOutputSubAxesPass(AnalysisPreservingPass):
    """Shorten the shardings of a function's inputs and outputs to sub-axes of which each axis can be made in one way.

    Before::

        sdy.mesh @mesh = <["x"=6]>
        func.func @main(%arg0: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>},
                        %arg1: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)3}]>})

    After::

        func.func @main(%arg0: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>},
                        %arg1: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>})

    The arrays that a person hands in and gets back lie on one mesh of smaller axes, and six devices are either two
    times three or three times two. Inputs come before outputs, and those in front before those behind.
    """

    name = "sdy-nest-input-output-sub-axes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in operations_of(op, FuncOp):
            change_input_output_shardings(function, partial(_nested, set[AxisRef]()))


def _nested(cuts: set[AxisRef], sharding: TensorSharding, _: Attribute) -> TensorSharding:
    """The part of `sharding` that goes with the sub-axes in `cuts`, to which it adds its own."""
    return sharding.map_dims(lambda dim: _nested_dim(dim, cuts))


def _nested_dim(dim: DimSharding, cuts: set[AxisRef]) -> DimSharding:
    kept: list[AxisRef] = []
    for axis in dim.axes:
        if not all(axis.can_coexist(cut) for cut in cuts):
            return replace(dim, axes=tuple(kept))
        kept.append(axis)
        if not axis.is_full:
            cuts.add(axis)
    return dim
