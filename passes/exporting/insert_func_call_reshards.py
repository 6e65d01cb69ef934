"""`sdy-insert-func-call-reshards`: reshard the results of calls from the shardings of the called function."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint

from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding, has_result_shardings, set_result_shardings
from sdy.ir.editing import AnalysisPreservingPass, insert_for_other_uses
from sdy.passes.common.call_graph import callee, calls_in
from sdy.passes.common.function_shardings import function_result_shardings
from sdy.passes.common.symbols import Symbols
from sdy.sharding import TensorSharding, equivalent


class InsertFuncCallReshardsPass(AnalysisPreservingPass):
    """Give each call the result shardings of its function, and reshard its results to the call's own shardings.

    Before::

        %0 = call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
            : (tensor<8xf32>) -> tensor<8xf32>
        ...
        func.func private @f(%arg0: tensor<8xf32>)
            -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>})

    After::

        %0 = call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>}
            : (tensor<8xf32>) -> tensor<8xf32>
        %1 = sdy.reshard %0 <@mesh, [{"x"}]> : tensor<8xf32>
    """

    name = "sdy-insert-func-call-reshards"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        symbols = Symbols(op)
        for call in tuple(calls_in(op)):
            sources = function_result_shardings(callee(call, symbols))
            targets = [get_sharding(result) for result in call.results]
            if sources is None:
                if not has_result_shardings(call):
                    continue
                sources = [TensorSharding.replicated_closed(target.mesh, target.rank) for target in targets if target]
            for result, source, target in zip(call.results, sources, targets, strict=True):
                if not equivalent(source, target):
                    target = target or TensorSharding.replicated_closed(source.mesh, source.rank)
                    insert_for_other_uses(result, ReshardOp(result, target), InsertPoint.after(call))
            set_result_shardings(call, sources)
