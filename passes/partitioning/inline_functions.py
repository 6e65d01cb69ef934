"""`sdy-inline-functions`: inlining of calls, so that uneven tensors keep their shardings across functions."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.passes.common.inline import inline_calls
from sdy.passes.common.symbol_dce import erase_dead_symbols
from sdy.passes.exporting.update_non_divisible_input_output_shardings import divisible_part
from sdy.sharding import equivalent


class InlineFunctionsPass(ModulePass):
    """Inline each call, keeping the shardings of the values in the function.

    Arguments and results of functions cannot be uneven, so that a tensor that its axes do not divide would be gathered
    before and after a call. A reshard that only does this is removed. Before::

        %r = sdy.reshard %x <@mesh, [{}]> : tensor<5xf32>
        %0 = call @f(%r) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<5xf32>) -> tensor<5xf32>
        ...
        func.func private @f(%arg0: tensor<5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<5xf32> {
          %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<5xf32>

    After::

        %0 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<5xf32>

    Calls that the `inline` pass does not inline are unchanged.
    """

    name = "sdy-inline-functions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inline_calls(op, _undo_divisible_arguments)
        erase_dead_symbols(op)


def _undo_divisible_arguments(call: CallOp, function: FuncOp) -> None:
    """Remove the reshards of the operands of `call` that only make an uneven sharding even."""
    for operand in dict.fromkeys(call.operands):
        reshard = operand.owner
        if not isinstance(reshard, ReshardOp) or any(use.operation is not call for use in operand.uses):
            continue
        source, target = get_sharding(reshard.input), reshard.sharding.data
        if source is not None and equivalent(divisible_part(source, operand.type, call), target):
            Rewriter.replace_op(reshard, [], [reshard.input])
