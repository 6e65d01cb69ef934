"""`sdy-merge-equal-collectives`: of collectives that send equal values, only the first stays."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Set

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from sdy.ir.editing import AnalysisPreservingPass, erase, replace
from sdy.ir.walking import operations, operations_of
from sdy.passes.spmd.device_collectives import COLLECTIVES
from sdy.passes.spmd.value_numbers import ValueNumbers


class MergeEqualCollectivesPass(AnalysisPreservingPass):
    """Keep the first of collectives that send equal values to the same devices, and what nothing uses then goes.

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

    A collective in a region, such as a branch, is merged with one before the region, not moved there. Anything else
    that is computed twice stays: to compute it again may take less than to keep it, as whoever compiles the program
    knows. XLA merges the rest, but no collectives.
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
    """The collectives that stay, by what those that are equal have in common."""
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
            _erase_unused(operands)


def _blocks_around(op: Operation) -> Iterator[Block]:
    """The blocks whose operations before `op` have been run when `op` is."""
    block = op.parent
    while block is not None:
        yield block
        outer = block.parent_op()
        block = None if outer is None else outer.parent


def _erase_unused(values: Iterable[SSAValue]) -> None:
    """Erase the operations of these values, and those before them, as far as nothing needs them."""
    pending = [value.owner for value in values]
    while pending:
        owner = pending.pop()
        if isinstance(owner, Operation) and owner.parent is not None and is_trivially_dead(owner):
            pending += [operand.owner for operand in owner.operands]
            erase(owner)
