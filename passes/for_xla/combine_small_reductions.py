"""`sdy-combine-small-reductions`: combine small independent all-reduces into one."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from sdy.ir.shapes import num_elements
from sdy.ir.walking import operations, operations_of
from sdy.passes.spmd.local_module import COLLECTIVES
from sdy.passes.spmd.plan.reduction_kinds import region_reduction
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp
from sdy.stablehlo.emitter import before
from sdy.stablehlo.reducing_collectives import AllReduceOp

_SMALL = 16
"""A combined all-reduce has at most 1/16 of the elements of the largest tensor, to bound the memory of its copies."""

_HELD = (*COLLECTIVES, DotGeneralOp, ConvolutionOp)
"""Operations that materialize their operands and results; XLA may fuse all others."""


@dataclass(frozen=True)
class CombineSmallReductionsPass(ModulePass):
    """Combine small all-reduces that do not depend on each other.

    XLA's combiner merges all-reduces that are adjacent in its schedule. The later one may depend on much more, which
    delays the users of the earlier one and extends the live ranges of its operands.

    Before::

        %2 = "stablehlo.all_reduce"(%0) ({add}) : (tensor<8xf32>) -> tensor<8xf32>
        %3 = "stablehlo.all_reduce"(%1) ({add}) : (tensor<4x2xf32>) -> tensor<4x2xf32>

    After, with `%3` as a reshape of the second slice::

        %4 = stablehlo.concatenate %0, reshape(%1), dim = 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
        %5 = "stablehlo.all_reduce"(%4) ({add}) : (tensor<16xf32>) -> tensor<16xf32>
        %2 = stablehlo.slice %5 [0:8] : (tensor<16xf32>) -> tensor<8xf32>
    """

    name = "sdy-combine-small-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in dict.fromkeys(reduction.parent for reduction in operations_of(op, AllReduceOp)):
            assert block is not None
            _erase_dead(block)
            for group in _groups(block):
                if len(group) > 1:
                    _combine([each for each in block.ops if each in group])


def _erase_dead(block: Block) -> None:
    """Erase dead operations and unused all-reduces, which would otherwise be combined with live ones."""
    for op in [*reversed(block.ops)]:
        unused = not any(result.first_use for result in op.results)
        if is_trivially_dead(op) or (unused and isinstance(op, AllReduceOp)):
            Rewriter.erase_op(op)


def _groups(block: Block) -> Sequence[Collection[Operation]]:
    """Return groups of small all-reduces with the same kind, replica groups and depth.

    The depth is the maximal number of all-reduces on a path to the operand. If all of a kind have the same depth, XLA's
    combiner merges them as well, without copies, so they are left to it.
    """
    depths: dict[SSAValue, int] = {}
    largest = 0
    kinds: dict[Hashable, dict[int, list[AllReduceOp]]] = defaultdict(lambda: defaultdict(list))
    for op in block.ops:
        depth = max((depths.get(operand, 0) for operand in _used(op)), default=0)
        if op.__class__ in _HELD:
            largest = max(largest, *(num_elements(value) for value in (*op.operands, *op.results)))
        if type(op) is AllReduceOp:
            kind = region_reduction(op.computation)
            if kind is not None and len(op.operands) == 1 and num_elements(op.operands[0]):
                kinds[kind, tensor_type(op.operands[0]).element_type, op.replica_groups][depth].append(op)
            depth += 1
        depths.update(dict.fromkeys(op.results, depth))
    candidates = [group for groups in kinds.values() if len(groups) > 1 for group in groups.values()]
    return [set(_smallest(group, largest // _SMALL)) for group in candidates]


def _smallest(group: Iterable[AllReduceOp], limit: int) -> Iterator[Operation]:
    """Yield the smallest all-reduces of `group`, with at most `limit` elements in total."""
    for op in sorted(group, key=lambda op: num_elements(op.operands[0])):
        limit -= num_elements(op.operands[0])
        if limit < 0:
            return
        yield op


def _combine(group: Sequence[Operation]) -> None:
    """Replace the all-reduces `group`, in block order, by one at the position of the last."""
    first, last = group[0], group[-1]
    emit = before(last)
    sizes = [num_elements(op.operands[0]) for op in group]
    concatenated = emit.concatenate(
        [emit.reshape(op.operands[0], (size,)) for op, size in zip(group, sizes, strict=True)], 0
    )
    _move_behind(last, first, {result for op in group for result in op.results})
    reduced = emit.insert(
        AllReduceOp.create(
            operands=[concatenated],
            properties=first.properties,
            attributes=first.attributes,
            result_types=[concatenated.type],
            regions=[first.detach_region(0)],
        )
    )
    start = 0
    for op, size in zip(group, sizes, strict=True):
        [result] = op.results
        part = emit.slice(reduced, [start], [start + size])
        result.replace_all_uses_with(emit.reshape(part, tensor_type(result).get_shape()))
        Rewriter.erase_op(op)
        start += size


def _move_behind(place: Operation, first: Operation, values: set[SSAValue]) -> None:
    """Move the operations between `first` and `place` that transitively use `values` behind `place`."""
    op, end = first, place
    while op is not end:
        next_op = op.next_op
        assert next_op is not None
        if any(operand in values for operand in _used(op)):
            values.update(op.results)
            op.detach()
            Rewriter.insert_op(op, InsertPoint.after(place))
            place = op
        op = next_op


def _used(op: Operation) -> Iterator[SSAValue]:
    """Yield the operands of `op` and of the operations in its regions."""
    for each in operations(op) if op.regions else [op]:
        yield from each.operands
