"""Scans: loops that read a row of each of some arrays, and write a row of each of others, in each iteration.

`lax.scan` is lowered to a loop that counts, slices its arrays at the counter, and updates its results there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from sdy.dialect.constants import constant_number
from sdy.ir.shapes import shape
from sdy.passes.common.loops import carried_unchanged, loop_trips
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.elementwise import SubtractOp
from sdy.stablehlo.slicing import DynamicSliceOp, DynamicUpdateSliceOp


@dataclass(frozen=True)
class Scan:
    """The rows that a loop reads and writes: the first one in its first iteration, or the last one if `is_reversed`."""

    trips: int
    reads: Sequence[DynamicSliceOp]
    """The slices of arrays around the loop."""
    writes: Mapping[int, DynamicUpdateSliceOp]
    """The updates of carried arrays that the loop does not read, by their index among the carried values."""
    indices: Sequence[SSAValue]
    """The values that are the index of the row; empty if only `reads` and `writes` use it."""
    counting: Sequence[Operation]
    """The operations that only compute the counter and `indices`."""
    is_reversed: bool


def find_scan(loop: WhileOp, counters: Sequence[int]) -> Scan | None:
    """Return the rows of a loop whose carried values `counters` count up by one; None if it reads and writes none.

    Every row is read or written, so that the initial values of the written arrays are not needed.
    """
    trips, returns = loop_trips(loop), loop.body.block.last_op
    if not trips or returns is None or constant_number(loop.operands[counters[0]]) != 0:
        return None
    counts = [loop.body.block.args[counter] for counter in counters]
    increments = [returns.operands[counter].owner for counter in counters]
    counting = [step for step in increments if isinstance(step, Operation) and _uses(step) == [returns]]
    forward = _scan(loop, trips, counts, counting)
    if forward is not None or len(counting) < len(counters):
        return forward
    others = [(count, use.operation) for count in counts for use in count.uses if use.operation not in increments]
    steps = [_subtraction_steps(op, count, trips) for count, op in others]
    if not all(steps):
        return None
    indices = [end.results[0] for _, *ends in steps for end in ends]
    return _scan(loop, trips, indices, [*counting, *chain.from_iterable(steps)], is_reversed=True)


def _scan(
    loop: WhileOp, trips: int, indices: Sequence[SSAValue], counting: Sequence[Operation], *, is_reversed: bool = False
) -> Scan | None:
    body = loop.body.block
    reads = [op for op in body.ops if isinstance(op, DynamicSliceOp) and _reads_row(op, loop, trips, indices)]
    writes = {
        argument.index: write
        for argument in body.args
        if (write := _only_write(argument, loop)) is not None and _is_row(write, write.update, trips, indices)
    }
    if not reads and not writes:
        return None
    known = {*reads, *writes.values(), *counting}
    is_used = any(use.operation not in known for index in indices for use in index.uses)
    return Scan(trips, reads, writes, indices if is_used else [], counting, is_reversed)


def _subtraction_steps(op: Operation, count: SSAValue, trips: int) -> list[Operation]:
    """Return the steps of `trips - count - 1`: `op`, if it is the first one, and the operations that subtract 1."""
    if not isinstance(op, SubtractOp) or op.rhs is not count or constant_number(op.lhs) != trips:
        return []
    ends = _uses(op)
    is_last = [isinstance(end, SubtractOp) and constant_number(end.rhs) == 1 for end in ends]
    return [op, *ends] if all(is_last) else []


def _uses(op: Operation) -> list[Operation]:
    return [use.operation for use in op.results[0].uses]


def _reads_row(op: DynamicSliceOp, loop: WhileOp, trips: int, indices: Sequence[SSAValue]) -> bool:
    body = loop.body.block
    array = carried_unchanged(loop).get(op.operand, op.operand)
    return _block_of(array) is not body and _is_row(op, op.result, trips, indices)


def _only_write(argument: BlockArgument, loop: WhileOp) -> DynamicUpdateSliceOp | None:
    """Return the update of a carried array whose result is carried on, if nothing else reads either of the two."""
    returns = loop.body.block.last_op
    uses = [use.operation for use in argument.uses]
    if len(uses) != 1 or not isinstance(uses[0], DynamicUpdateSliceOp) or uses[0].operand is not argument:
        return None
    after = [(use.operation, use.index) for use in uses[0].result.uses]
    is_tested = loop.cond.block.args[argument.index].first_use is not None
    return uses[0] if after == [(returns, argument.index)] and not is_tested else None


def _is_row(op: DynamicSliceOp | DynamicUpdateSliceOp, row: SSAValue, trips: int, indices: Sequence[SSAValue]) -> bool:
    """Return whether `op` accesses the row at one of `indices`, of an array with as many rows as there are trips."""
    dims = shape(op.operand.type)
    starts = [*op.start_indices]
    return (
        len(starts) > 0
        and starts[0] in indices
        and all(constant_number(start) == 0 for start in starts[1:])
        and dims[0] == trips
        and shape(row.type) == (1, *dims[1:])
    )


def _block_of(value: SSAValue) -> Block | None:
    return value.owner if isinstance(value.owner, Block) else value.owner.parent
