"""`sdy-inline-functions`: one function, in which every tensor may be split as propagation has decided."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sdy.passes.common.inline import inline_calls
from sdy.passes.common.symbol_dce import SymbolDcePass


class InlineFunctionsPass(ModulePass):
    """Put the body of a function in the place of each call of it, with the shardings that its values have.

    Arguments and results of functions are split evenly only, so that a tensor of a size that its axes do not divide
    would be gathered on its way in and out. Before::

        %0 = call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<5xf32>) -> tensor<5xf32>
        ...
        func.func private @f(%arg0: tensor<5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<5xf32> {
          %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<5xf32>

    After::

        %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<5xf32>

    Calls stay that `inline` leaves.
    """

    name = "sdy-inline-functions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inline_calls(op)
        SymbolDcePass().apply(ctx, op)
