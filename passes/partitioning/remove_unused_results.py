"""`sdy-remove-unused-results`: removal of operations and collectives without uses, and of unused operands of sorts."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from sdy.dialect.attributes import SHARDING_RULE
from sdy.dialect.shardings import result_shardings, set_result_shardings
from sdy.ir.editing import AnalysisPreservingPass, erase, insert
from sdy.ir.walking import operations
from sdy.passes.spmd.local_module import COLLECTIVES
from sdy.stablehlo.sort import SortOp


class RemoveUnusedResultsPass(AnalysisPreservingPass):
    """Remove operations and collectives without uses, and operands of sorts whose results have none.

    XLA removes them, too; without the pass, devices are predicted to receive them. Before::

        %0, %1 = chlo.top_k(%arg0, k = 4) : tensor<8x64xf32> -> (tensor<8x4xf32>, tensor<8x4xi32>)
        %2 = "stablehlo.all_gather"(%1) <{...}> : (tensor<8x4xi32>) -> tensor<16x4xi32>
        %3, %4 = "stablehlo.sort"(%0, %1) <{...}> ({compare %0}) : (tensor<8x4xf32>, tensor<8x4xi32>) -> ...
        return %3 : tensor<8x4xf32>

    After::

        %0, %1 = chlo.top_k(%arg0, k = 4) : tensor<8x64xf32> -> (tensor<8x4xf32>, tensor<8x4xi32>)
        %3 = "stablehlo.sort"(%0) <{...}> ({compare %0}) : (tensor<8x4xf32>) -> tensor<8x4xf32>
        return %3 : tensor<8x4xf32>

    The operands that a comparator compares stay, and all of a sort with a custom sharding rule.
    """

    name = "sdy-remove-unused-results"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in reversed(operations(op)[1:]):
            if is_trivially_dead(inner) or (isinstance(inner, COLLECTIVES) and not any(map(_is_used, inner.results))):
                erase(inner)
            elif isinstance(inner, SortOp) and SHARDING_RULE not in inner.attributes:
                _remove_operands(inner)


def _is_used(value: SSAValue) -> bool:
    return value.first_use is not None


def _remove_operands(op: SortOp) -> None:
    """Remove the operands that are neither compared nor used after the sort."""
    compared = op.comparator.block.args
    pairs = zip(op.results, compared[::2], compared[1::2], strict=True)
    kept = [index for index, values in enumerate(pairs) if any(map(_is_used, values))]
    if len(kept) == len(op.operands):
        return
    for index in reversed(range(len(compared))):
        if index // 2 not in kept:
            op.comparator.block.erase_arg(compared[index])
    narrow = SortOp.create(
        operands=[op.operands[index] for index in kept],
        result_types=[op.results[index].type for index in kept],
        properties=op.properties,
        attributes=op.attributes,
        regions=[op.detach_region(op.comparator)],
        location=op.location,
    )
    insert(narrow, InsertPoint.before(op))
    shardings = result_shardings(op)
    set_result_shardings(narrow, [sharding for index in kept if (sharding := shardings[index]) is not None])
    for index, result in zip(kept, narrow.results, strict=True):
        op.results[index].replace_all_uses_with(result)
    erase(op)
