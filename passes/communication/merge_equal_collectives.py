"""`sdy-merge-equal-collectives`: common subexpression elimination of collectives."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Set

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from sdy.ir.editing import AnalysisPreservingPass, erase_unused, replace
from sdy.ir.walking import operations, operations_of
from sdy.passes.spmd.local_module import COLLECTIVES
from sdy.passes.spmd.value_numbers import ValueNumbers


class MergeEqualCollectivesPass(AnalysisPreservingPass):
    """Merge collectives of equal operands along the same replica groups, and erase the unused operations that remain.

    Before::

        %0 = stablehlo.add %arg0, %arg1 : tensor<2x8xf32>
        %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups = ...}>
        %2 = stablehlo.add %arg0, %arg1 : tensor<2x8xf32>
        %3 = "stablehlo.all_gather"(%2) <{all_gather_dim = 0 : i64, replica_groups = ...}>
        %4 = stablehlo.dot_general %1, %3, ...

    After::

        %0 = stablehlo.add %arg0, %arg1 : tensor<2x8xf32>
        %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups = ...}>
        %2 = stablehlo.dot_general %1, %1, ...

    A collective in a region, such as a branch, is merged with one before the region, but not hoisted. Other equal
    operations are not merged, because recomputing a value may be cheaper than keeping it in memory; XLA decides that,
    but does not merge collectives.
    """

    name = "sdy-merge-equal-collectives"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in operations_of(op, FuncOp):
            collectives = operations_of(function, *COLLECTIVES)
            if len(collectives) > 1:
                _merge_in(function, {collective.__class__ for collective in collectives})


def _merge_in(function: FuncOp, collectives: Set[type[Operation]]) -> None:
    numbers = ValueNumbers()
    kept: defaultdict[Hashable, list[Operation]] = defaultdict(list)
    """The kept collectives, by value-numbering key."""
    for op in operations(function)[1:]:
        if op.__class__ not in collectives:
            numbers.number(op)
            continue
        equal = kept[numbers.key(op)]
        around = set(_blocks_around(op))
        first = next((other for other in equal if other.parent in around), None)
        if first is None:
            equal.append(op)
        else:
            operands = [*op.operands]
            replace(op, first.results)
            erase_unused(operands)


def _blocks_around(op: Operation) -> Iterator[Block]:
    """Yield the blocks that contain `op`, innermost first."""
    block = op.parent
    while block is not None:
        yield block
        outer = block.parent_op()
        block = None if outer is None else outer.parent
