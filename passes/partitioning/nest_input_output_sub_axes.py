"""`sdy-nest-input-output-sub-axes`: compatible sub-axes in the shardings of a program's inputs and outputs."""

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
    """Shorten the shardings of a function's inputs and outputs so that all sub-axes of an axis can coexist.

    Before::

        sdy.mesh @mesh = <["x"=6]>
        func.func @main(%arg0: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>},
                        %arg1: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)3}]>})

    After::

        func.func @main(%arg0: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>},
                        %arg1: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>})

    The arrays that JAX passes in and out are sharded over one mesh whose axes are the sub-axes, and six devices are
    either 2x3 or 3x2. Earlier inputs take precedence over later ones, and inputs over outputs.
    """

    name = "sdy-nest-input-output-sub-axes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in operations_of(op, FuncOp):
            change_input_output_shardings(function, partial(_nested, set[AxisRef]()))


def _nested(cuts: set[AxisRef], sharding: TensorSharding, _: Attribute) -> TensorSharding:
    """Return the part of `sharding` that can coexist with the sub-axes in `cuts`, and add its sub-axes to them."""
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
