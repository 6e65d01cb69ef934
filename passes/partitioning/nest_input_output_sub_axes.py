"""`sdy-nest-input-output-sub-axes`: one way to cut each axis where a program meets the world."""

from dataclasses import replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from sdy.axes import AxisRef
from sdy.dialect.shardings import (
    func_arg_sharding,
    func_result_sharding,
    set_func_arg_shardings,
    set_func_result_shardings,
)
from sdy.dialect.walk import operations_of
from sdy.passes.common.editing import TellingPass
from sdy.sharding import DimSharding, TensorSharding


class NestInputOutputSubAxesPass(TellingPass):
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
            cuts: set[AxisRef] = set()
            for types, get, set_all in (
                (function.function_type.inputs, func_arg_sharding, set_func_arg_shardings),
                (function.function_type.outputs, func_result_sharding, set_func_result_shardings),
            ):
                shardings = [get(function, index) for index in range(len(types))]
                set_all(function, [sharding and _nested(sharding, cuts) for sharding in shardings])


def _nested(sharding: TensorSharding, cuts: set[AxisRef]) -> TensorSharding:
    """The part of `sharding` that goes with the sub-axes in `cuts`, to which it adds its own."""
    return replace(sharding, dims=tuple(_nested_dim(dim, cuts) for dim in sharding.dims))


def _nested_dim(dim: DimSharding, cuts: set[AxisRef]) -> DimSharding:
    kept: list[AxisRef] = []
    for axis in dim.axes:
        if not all(axis.can_coexist(cut) for cut in cuts):
            return replace(dim, axes=tuple(kept))
        kept.append(axis)
        if not axis.is_full:
            cuts.add(axis)
    return dim
