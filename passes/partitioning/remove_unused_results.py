"""`sdy-remove-unused-results`: removal of unused operations, collectives, and operands of sorts and reductions."""

from collections.abc import Collection, Iterable, Set

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, OpResult, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from sdy.dialect.attributes import SHARDING_RULE
from sdy.dialect.shardings import result_shardings, set_result_shardings
from sdy.ir.editing import AnalysisPreservingPass, erase, insert
from sdy.ir.walking import captured_values, operations
from sdy.passes.spmd.local_module import COLLECTIVES
from sdy.stablehlo.reduction import ReduceOp
from sdy.stablehlo.sort import SortOp


class RemoveUnusedResultsPass(AnalysisPreservingPass):
    """Remove operations and collectives without uses, and operands of sorts and reductions whose results have none.

    XLA removes them, too; without the pass, devices are predicted to receive them. Before::

        %0, %1 = chlo.top_k(%arg0, k = 4) : tensor<8x64xf32> -> (tensor<8x4xf32>, tensor<8x4xi32>)
        %2 = "stablehlo.all_gather"(%1) <{...}> : (tensor<8x4xi32>) -> tensor<16x4xi32>
        %3, %4 = "stablehlo.sort"(%0, %1) <{...}> ({compare %0}) : (tensor<8x4xf32>, tensor<8x4xi32>) -> ...
        return %3 : tensor<8x4xf32>

    After::

        %0, %1 = chlo.top_k(%arg0, k = 4) : tensor<8x64xf32> -> (tensor<8x4xf32>, tensor<8x4xi32>)
        %3 = "stablehlo.sort"(%0) <{...}> ({compare %0}) : (tensor<8x4xf32>) -> tensor<8x4xf32>
        return %3 : tensor<8x4xf32>

    The operands that a comparator compares stay, as do those on which another result of a reduction depends, and all of
    an operation with a custom sharding rule.
    """

    name = "sdy-remove-unused-results"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in reversed(operations(op)[1:]):
            if is_trivially_dead(inner) or (isinstance(inner, COLLECTIVES) and not any(map(_is_used, inner.results))):
                erase(inner)
            elif isinstance(inner, SortOp | ReduceOp) and SHARDING_RULE not in inner.attributes:
                _remove_operands(inner)


def _is_used(value: SSAValue) -> bool:
    return value.first_use is not None


def _remove_operands(op: SortOp | ReduceOp) -> None:
    """Remove the operands on which no used result depends."""
    if not any(map(_is_used, op.results)):
        return
    block = op.regions[0].block
    kept = _compared_or_used(op) if isinstance(op, SortOp) else _depended_on(op)
    if len(kept) == len(op.results):
        return
    for argument in reversed(block.args):
        number = argument.index // 2 if isinstance(op, SortOp) else argument.index % len(op.results)
        if number not in kept:
            block.erase_arg(argument)
    narrow = type(op).create(
        operands=[value for number, value in enumerate(op.operands) if number % len(op.results) in kept],
        result_types=[op.results[number].type for number in kept],
        properties=op.properties,
        attributes=op.attributes,
        regions=[op.detach_region(0)],
        location=op.location,
    )
    insert(narrow, InsertPoint.before(op))
    shardings = result_shardings(op)
    set_result_shardings(narrow, [sharding for number in kept if (sharding := shardings[number]) is not None])
    for number, result in zip(kept, narrow.results, strict=True):
        op.results[number].replace_all_uses_with(result)
    erase(op)


def _compared_or_used(op: SortOp) -> Collection[int]:
    compared = op.comparator.block.args
    pairs = zip(op.results, compared[::2], compared[1::2], strict=True)
    return [number for number, values in enumerate(pairs) if any(map(_is_used, values))]


def _depended_on(op: ReduceOp) -> Collection[int]:
    """Return the inputs on which a used result depends, and let the body return only their results."""
    block, count = op.body.block, len(op.results)
    end = block.last_op
    assert end is not None
    kept: Set[int] = set[int]()
    needed = {number for number, result in enumerate(op.results) if _is_used(result)}
    while needed != kept:
        kept = needed
        needed = kept | {number % count for number in _arguments_read((end.operands[number] for number in kept), block)}
    if len(kept) < count:
        end.operands = [end.operands[number] for number in sorted(kept)]
        for inner in [*reversed(block.ops)]:
            if is_trivially_dead(inner):
                erase(inner)
    return sorted(kept)


def _arguments_read(values: Iterable[SSAValue], block: Block) -> Set[int]:
    """Return the indices of the arguments of `block` on which `values` depend."""
    reached, pending = set[SSAValue](), [*values]
    while pending:
        value = pending.pop()
        if isinstance(value, OpResult) and value not in reached:
            pending += (*value.op.operands, *(captured_values(value.op) if value.op.regions else ()))
        reached.add(value)
    return {value.index for value in reached if isinstance(value, BlockArgument) and value.block is block}
