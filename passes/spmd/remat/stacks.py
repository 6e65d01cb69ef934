"""Stacks: values that a loop writes to a buffer, an element in each iteration, for a later loop to read.

The gradient of a scan over layers is such a pair of loops: the first one stacks the residuals of the layers, which take
most of the memory. A stack whose elements follow from other values is not written; the later loop computes its elements
again. Or else the stack is in host memory, if the hardware has a link to the host.

    before     loop i:  h = tanh(x @ w[i]); xs[i] = x; hs[i] = h      loop i:  h = hs[n-1-i]; ...
    again      loop i:  h = tanh(x @ w[i]); xs[i] = x                 loop i:  h = tanh(xs[n-1-i] @ w[n-1-i]); ...
    offloaded  loop i:  ...; hs[i] = to_host(h)                       loop i:  h = to_device(hs[n-1-i]); ...
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from sdy.dialect.attributes import RECOMPUTES
from sdy.dialect.constants import constant_number
from sdy.ir.editing import erase, insert, replace
from sdy.ir.shapes import shape_of
from sdy.ir.walking import captured_values, operations_of
from sdy.passes.common.loops import carried_unchanged, carry_only, loop_trips
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.host_memory import DEVICE, HOST, leaves_device, moved_to
from sdy.passes.spmd.local_module import COLLECTIVES, Channels
from sdy.passes.spmd.remat.choice import is_repeatable
from sdy.passes.spmd.remat.host_link import transfer_traffic
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.elementwise import AddOp, SubtractOp
from sdy.stablehlo.emitter import Emitter
from sdy.stablehlo.mixed_elementwise import CompareOp
from sdy.stablehlo.shape import ReshapeOp
from sdy.stablehlo.slicing import DynamicSliceOp, DynamicUpdateSliceOp

_UPDATE = 1
"""The index of the operand of `dynamic_update_slice` that is written."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Elements that a loop writes to a buffer, one in each iteration.

    Attributes:
        writer: The loop.
        index: The index of the buffer in the values that `writer` carries.
        element: The value that an iteration writes, with another shape.
        position: The index at which an iteration writes.
        reads: The reads of elements by a later loop, if that is all that uses the buffer.
    """

    writer: WhileOp
    index: int
    element: SSAValue
    position: SSAValue
    reads: Sequence[DynamicSliceOp]

    @property
    def reader(self) -> WhileOp:
        """The later loop that reads the elements."""
        (use,) = self.buffer.uses
        assert isinstance(use.operation, WhileOp)
        return use.operation

    @property
    def read_index(self) -> int:
        """The index of the buffer in the values that `reader` carries."""
        (use,) = self.buffer.uses
        return use.index

    @property
    def buffer(self) -> SSAValue:
        """The stacked elements."""
        return self.writer.results[self.index]


def stacks_of(module: ModuleOp) -> list[Stack]:
    """Return the stacks of all loops of `module`, in the order of the text."""
    return [stack for loop in operations_of(module, WhileOp) for stack in _stacks_of(loop)]


def _stacks_of(loop: WhileOp) -> Iterator[Stack]:
    body = loop.body.block
    assert body.last_op is not None
    for buffer, returned in zip(body.args, body.last_op.operands, strict=True):
        write = returned.owner
        if (
            isinstance(write, DynamicUpdateSliceOp)
            and write.operand is buffer
            and len([*buffer.uses]) == len([*returned.uses]) == 1
            and _visits(write.start_indices, write.operand, write.update, loop)
        ):
            position = write.start_indices[0]
            reads = _reads(loop.results[buffer.index])
            is_same_type = all(read.start_indices[0].type == position.type for read in reads)
            element = _unreshaped(write.update)
            yield Stack(loop, buffer.index, element, position, reads if is_same_type else ())


def _reads(buffer: SSAValue) -> Sequence[DynamicSliceOp]:
    """Return the reads of the elements of `buffer` by one loop; nothing if it has other uses."""
    uses = [*buffer.uses]
    loop = uses[0].operation if len(uses) == 1 else None
    if not isinstance(loop, WhileOp):
        return ()
    index = uses[0].index
    argument, end = loop.body.block.args[index], loop.body.block.last_op
    if argument not in carried_unchanged(loop) or [*loop.cond.block.args[index].uses] or [*loop.results[index].uses]:
        return ()
    users = [use.operation for use in argument.uses if use.operation is not end]
    reads = [
        op
        for op in users
        if isinstance(op, DynamicSliceOp)
        and op.parent is loop.body.block
        and _visits(op.start_indices, argument, op.result, loop)
    ]
    return reads if len(reads) == len(users) else ()


def _visits(indices: Sequence[SSAValue], buffer: SSAValue, element: SSAValue, loop: WhileOp) -> bool:
    """Return whether the iterations of `loop` access each element along the first dimension of `buffer` once."""
    counter, (size, *rest) = _counter(loop), shape_of(buffer) or (0,)
    line = None if counter is None else _line(indices[0], counter)
    return (
        shape_of(element) == (1, *rest)
        and loop_trips(loop) == size
        and line in ((1, 0), (-1, size - 1))
        and all(constant_number(index) == 0 for index in indices[1:])
    )


def _counter(loop: WhileOp) -> BlockArgument | None:
    """Return the carried value that is the number of the iteration, or None."""
    if loop_trips(loop) is None:
        return None
    test, end = loop.cond.block.last_op, loop.body.block.last_op
    assert test is not None
    assert end is not None
    compare = test.operands[0].owner
    assert isinstance(compare, CompareOp)
    (compared, _) = compare.operands
    assert isinstance(compared, BlockArgument)
    counter = loop.body.block.args[compared.index]
    following = end.operands[counter.index]
    is_counter = constant_number(loop.operands[counter.index]) == 0 and _line(following, counter) == (1, 1)
    return counter if is_counter else None


def _line(value: SSAValue, counter: SSAValue) -> tuple[int, int] | None:
    """Return the integers a and b for which `value` is a * `counter` + b, or None."""
    if value is counter:
        return 1, 0
    number = constant_number(value)
    if isinstance(number, int):
        return 0, number
    if not isinstance(value.owner, AddOp | SubtractOp):
        return None
    lhs, rhs = (_line(operand, counter) for operand in value.owner.operands)
    if lhs is None or rhs is None:
        return None
    sign = 1 if isinstance(value.owner, AddOp) else -1
    return lhs[0] + sign * rhs[0], lhs[1] + sign * rhs[1]


def _unreshaped(value: SSAValue) -> SSAValue:
    """Return the value that `value` reshapes."""
    while isinstance(owner := value.owner, ReshapeOp | BroadcastInDimOp):
        if value_bytes(owner.operands[0]) != value_bytes(value):
            break
        value = owner.operands[0]
    return value


class DroppedStack(NamedTuple):
    """A stack that is not in device memory, and the time that computing its elements again, or moving them, adds."""

    stack: Stack
    seconds: float
    is_offloaded: bool


class Chains:
    """The operations that compute the elements of stacks again, or the transfers of the elements.

    Args:
        stacks: The stacks of a module.
        seconds: The time of each operation in a step.
        hardware: The hardware; stacks are offloaded if it has a link to the host.
    """

    def __init__(self, stacks: Sequence[Stack], seconds: Mapping[Operation, float], hardware: Hardware) -> None:
        self._stacks = stacks
        self._seconds = seconds
        self._hardware = hardware

    def order(self) -> list[DroppedStack]:
        """Return the stacks that can be dropped or offloaded, those that cost the least time for a byte first."""
        order: list[DroppedStack] = []
        left = [stack for stack in self._stacks if stack.reads]
        while True:
            options = [each for stack in left for each in self._options(stack, order)]
            if not options:
                return order
            order.append(min(options, key=lambda each: each.seconds / value_bytes(each.stack.buffer)))
            left = [stack for stack in left if stack is not order[-1].stack]

    def _options(self, stack: Stack, order: Sequence[DroppedStack]) -> Iterator[DroppedStack]:
        """Yield the ways in which the memory of `stack` can be saved after those before it in `order`."""
        dropped = [each.stack for each in order if not each.is_offloaded]
        seconds = self._seconds_again([*dropped, stack])
        if seconds is not None:
            yield DroppedStack(stack, seconds - (self._seconds_again(dropped) or 0.0), is_offloaded=False)
        if self._hardware.host is not None:
            offloaded = [each.stack for each in order if each.is_offloaded]
            yield DroppedStack(stack, self._seconds_moved(stack, offloaded), is_offloaded=True)

    def _seconds_moved(self, stack: Stack, offloaded: Sequence[Stack]) -> float:
        """Return the time of moving the elements of `stack` that its loops cannot hide, beside those of `offloaded`."""
        exposed = 0.0
        for loop in (stack.writer, stack.reader):
            others = sum(self._transfer(each) for each in offloaded if loop in (each.writer, each.reader))
            waits = loop is stack.reader and self._hardware.host_waits
            hidden = 0.0 if waits else sum(self._seconds.get(op, 0.0) for op in loop.walk())
            exposed += max(others + self._transfer(stack) - hidden, 0.0) - max(others - hidden, 0.0)
        return exposed + transfer_traffic(value_bytes(stack.buffer), self._hardware)

    def _transfer(self, stack: Stack) -> float:
        """Return the time in which all elements of `stack` move in one direction."""
        count, size = shape_of(stack.buffer)[0], value_bytes(stack.buffer)
        return count * self._hardware.host_seconds(size / count)

    def _seconds_again(self, dropped: Sequence[Stack]) -> float | None:
        """Return the time of computing the elements of `dropped` again; None if that is impossible."""
        total = 0.0
        for writer in dict.fromkeys(stack.writer for stack in dropped):
            computed = computed_again(writer, dropped, _kept(self._stacks, dropped, writer))
            if computed is None:
                return None
            total += sum(self._seconds.get(op, 0.0) for op in computed)
        return total


def _kept(stacks: Sequence[Stack], dropped: Sequence[Stack], writer: WhileOp) -> dict[SSAValue, Stack]:
    """Return the stacks of `writer` that are not dropped, by their elements."""
    positions = {stack.position for stack in dropped if stack.writer is writer}
    kept = [stack for stack in stacks if stack.writer is writer and stack not in dropped]
    return {stack.element: stack for stack in kept if positions == {stack.position}}


def computed_again(writer: WhileOp, dropped: Sequence[Stack], kept: Mapping[SSAValue, Stack]) -> Set[Operation] | None:
    """Return the operations of `writer` that compute the elements of its `dropped` stacks; None if one is unknown."""
    of_writer = [stack for stack in dropped if stack.writer is writer]
    known = {*carried_unchanged(writer), *kept, _counter(writer), *(stack.position for stack in of_writer)}
    found: set[Operation] = set()
    pending = [stack.element for stack in of_writer]
    while pending:
        value = pending.pop()
        if value in known or value.owner in found or not _is_inside(value, writer):
            continue
        op = value.owner
        if not isinstance(op, Operation) or not is_repeatable(op):
            return None
        found.add(op)
        pending += [*op.operands, *captured_values(op)]
    return found


def _is_inside(value: SSAValue, loop: WhileOp) -> bool:
    block = value.owner.parent if isinstance(value.owner, Operation) else value.owner
    return block is loop.body.block


def drop(stacks: Sequence[Stack], dropped: Sequence[Stack], channels: Channels) -> None:
    """Compute the elements of the `dropped` ones of `stacks` again where they are read, and write no buffers of them.

    Args:
        stacks: The stacks of a module.
        dropped: The stacks to drop.
        channels: The channels of collectives that are computed again.
    """
    unused: defaultdict[WhileOp, set[int]] = defaultdict(set)
    reads: defaultdict[tuple[WhileOp, SSAValue], list[tuple[Stack, DynamicSliceOp]]] = defaultdict(list)
    for stack in dropped:
        unused[stack.writer].add(stack.index)
        unused[stack.reader].add(stack.read_index)
        for read in stack.reads:
            reads[stack.writer, read.start_indices[0]].append((stack, read))
    for (writer, position), each in reads.items():
        _compute_again(writer, position, each, _kept(stacks, dropped, writer), channels)
    for stack in dropped:
        stack.reader.operands[stack.read_index] = stack.writer.operands[stack.index]
    for loop, indices in unused.items():
        _forget(loop, indices)


def _compute_again(
    writer: WhileOp,
    position: SSAValue,
    reads: Sequence[tuple[Stack, DynamicSliceOp]],
    kept: Mapping[SSAValue, Stack],
    channels: Channels,
) -> None:
    """Replace `reads` of elements at one position by copies of the operations of `writer` that compute them."""
    operations = computed_again(writer, [stack for stack, _ in reads], kept)
    assert operations is not None
    block = reads[0][1].parent
    assert block is not None
    slices = {read for _, read in reads}
    first = next(op for op in block.ops if op in slices)
    emit = Emitter(InsertPoint.before(first), first)
    values: dict[SSAValue, SSAValue] = {**carried_unchanged(writer)}
    counter = _counter(writer)
    assert counter is not None
    written_at = reads[0][0].position
    values[counter] = position
    if _line(written_at, counter) != (1, 0):
        last = emit.filled(tensor_type(position), shape_of(reads[0][0].buffer)[0] - 1)
        values[counter] = emit.binary(SubtractOp, last, position)
    values[written_at] = position

    def value_of(value: SSAValue) -> SSAValue:
        """Return the value in the iteration that wrote the elements."""
        if value not in values:
            values[value] = _slice(kept[value], position, emit) if value in kept else value
        return values[value]

    for op in [*writer.body.block.ops]:
        if op not in operations:
            continue
        for value in (*op.operands, *captured_values(op)):
            value_of(value)
        copy = op.clone(values)
        copy.attributes[RECOMPUTES] = UnitAttr()
        for inner in operations_of(copy, *COLLECTIVES):
            inner.properties["channel_handle"] = channels.next()
        insert(copy, InsertPoint.before(first))
    elements = [emit.reshape(value_of(stack.element), shape_of(read.result)) for stack, read in reads]
    for (_, read), element in zip(reads, elements, strict=True):
        replace(read, [element])


def offload(stacks: Sequence[Stack]) -> None:
    """Keep `stacks` in host memory: move their elements there when they are written, and back when they are read.

    Stacks are dropped after others are offloaded, as `drop` replaces loops.
    """
    for stack in stacks:
        write = _write_of(stack)
        move = moved_to(HOST, write.update)
        insert(move, InsertPoint.before(write))
        write.operands[_UPDATE] = move.results[0]
        for read in stack.reads:
            users = [*read.result.uses]
            back = moved_to(DEVICE, read.result)
            insert(back, InsertPoint.after(read))
            for use in users:
                use.operation.operands[use.index] = back.results[0]


def _write_of(stack: Stack) -> DynamicUpdateSliceOp:
    """Return the operation that writes the elements of `stack`."""
    end = stack.writer.body.block.last_op
    assert end is not None
    write = end.operands[stack.index].owner
    assert isinstance(write, DynamicUpdateSliceOp)
    return write


def _slice(stack: Stack, position: SSAValue, emit: Emitter) -> SSAValue:
    """Read the element of `stack` at `position`."""
    sizes = (1, *shape_of(stack.buffer)[1:])
    zero = emit.filled(tensor_type(position), 0)
    element = emit.insert(DynamicSliceOp(stack.buffer, [position, *[zero] * (len(sizes) - 1)], sizes))
    mover = _write_of(stack).update.owner
    if isinstance(mover, Operation) and leaves_device(mover):
        element = emit.insert(moved_to(DEVICE, element))
    return emit.reshape(element, shape_of(stack.element))


def _forget(loop: WhileOp, indices: Set[int]) -> None:
    """Drop the carried values `indices`, which nothing but their own updates needs."""
    body = loop.body.block
    assert body.last_op is not None
    for index in indices:
        body.last_op.operands[index] = body.args[index]
    for op in reversed([*body.ops]):
        if is_trivially_dead(op):
            erase(op)
    initial = [loop.operands[index].owner for index in sorted(indices)]
    carry_only(loop, [index for index in range(len(loop.operands)) if index not in indices])
    for op in dict.fromkeys(initial):
        if isinstance(op, Operation) and is_trivially_dead(op):
            erase(op)
