"""Small all-reduces that can take place at the same time, as one."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from sdy.ir.shapes import num_elements
from sdy.ir.walking import operations, operations_of
from sdy.passes.spmd.device_collectives import COLLECTIVES
from sdy.passes.spmd.reshards.reduction_kinds import region_reduction
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp
from sdy.stablehlo.emitter import before
from sdy.stablehlo.reducing_collectives import AllReduceOp

_SMALL = 16
"""All that is taken together is at most the largest tensor over this, so that copies of it take next to no memory."""

_HELD = (*COLLECTIVES, DotGeneralOp, ConvolutionOp)
"""What has its operands and its results in memory; of other operations XLA may make them element by element."""


def combine_small_reductions(module: ModuleOp) -> None:
    """Let devices reduce small tensors together where none waits for a sum that another gives, in place.

    XLA combines all-reduces too, but one with whatever is next in its order, which may wait for far more: what the
    first is needed for waits as well then, and all that it uses is kept. Before::

        %2 = "stablehlo.all_reduce"(%0) ({add}) : (tensor<8xf32>) -> tensor<8xf32>
        %3 = "stablehlo.all_reduce"(%1) ({add}) : (tensor<4x2xf32>) -> tensor<4x2xf32>

    After, `%3` being a reshape of the second slice::

        %4 = stablehlo.concatenate %0, reshape(%1), dim = 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
        %5 = "stablehlo.all_reduce"(%4) ({add}) : (tensor<16xf32>) -> tensor<16xf32>
        %2 = stablehlo.slice %5 [0:8] : (tensor<16xf32>) -> tensor<8xf32>
    """
    for block in dict.fromkeys(op.parent for op in operations_of(module, AllReduceOp)):
        assert block is not None
        _erase_dead(block)
        for group in _groups(block):
            if len(group) > 1:
                _combine([op for op in block.ops if op in group])


def _erase_dead(block: Block) -> None:
    """Erase what nothing needs, all-reduces too: together with others they would be taken nevertheless."""
    for op in [*reversed(block.ops)]:
        unused = not any(result.first_use for result in op.results)
        if is_trivially_dead(op) or (unused and isinstance(op, AllReduceOp)):
            Rewriter.erase_op(op)


def _groups(block: Block) -> Sequence[Collection[Operation]]:
    """Small all-reduces of the same devices and of one kind, each of which waits for as many others.

    Where all of a kind do, XLA makes the same of them, without copies, and fuses nothing into them.
    """
    waits: dict[SSAValue, int] = {}
    largest = 0
    kinds: dict[Hashable, dict[int, list[AllReduceOp]]] = defaultdict(lambda: defaultdict(list))
    for op in block.ops:
        count = max((waits.get(operand, 0) for operand in _used(op)), default=0)
        if op.__class__ in _HELD:
            largest = max(largest, *(num_elements(value) for value in (*op.operands, *op.results)))
        if type(op) is AllReduceOp:
            kind = region_reduction(op.computation)
            if kind is not None and len(op.operands) == 1 and num_elements(op.operands[0]):
                kinds[kind, tensor_type(op.operands[0]).element_type, op.replica_groups][count].append(op)
            count += 1
        waits.update(dict.fromkeys(op.results, count))
    several = [group for groups in kinds.values() if len(groups) > 1 for group in groups.values()]
    return [set(_smallest(group, largest // _SMALL)) for group in several]


def _smallest(group: Iterable[AllReduceOp], limit: int) -> Iterator[Operation]:
    """As many of the smallest ones as have at most `limit` elements together."""
    for op in sorted(group, key=lambda op: num_elements(op.operands[0])):
        limit -= num_elements(op.operands[0])
        if limit < 0:
            return
        yield op


def _combine(group: Sequence[Operation]) -> None:
    """Replace these, which are in the order of their block, by one in the place of the last."""
    first, last = group[0], group[-1]
    emit = before(last)
    sizes = [num_elements(op.operands[0]) for op in group]
    together = emit.concatenate(
        [emit.reshape(op.operands[0], (size,)) for op, size in zip(group, sizes, strict=True)], 0
    )
    _move_behind(last, first, {result for op in group for result in op.results})
    reduced = emit.insert(
        AllReduceOp.create(
            operands=[together],
            properties=first.properties,
            attributes=first.attributes,
            result_types=[together.type],
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
    """Move what uses `values` between `first` and `place`, and what uses that in turn, behind `place`."""
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
    """What `op` uses, and what its regions do."""
    for each in operations(op) if op.regions else [op]:
        yield from each.operands
