"""Optimization barriers that make XLA run the kernels of a program segment by segment.

    segment 1     %y = dot %x, %w
                  %0:3 = optimization_barrier %y, %x, %v
    segment 2     %z = dot %0#0, %0#2        follows %y; no transposed copy of %v is shared with other segments
                  %1 = tanh %0#1             follows %y, and is not merged with an equal operation of segment 1

The barrier before a segment has the values that the segment before it leaves for later, and those that the segment
reads. XLA would otherwise merge equal operations on them, such as the transposes of operands of products, and keep the
results from the first segment to the last. `jax.checkpoint` orders and protects what it recomputes so.
"""

from collections.abc import Iterator, Mapping, Sequence, Set

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.dialect.attributes import ORDERS
from sdy.ir.editing import insert
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.host_memory import leaves_device
from sdy.passes.spmd.costs.in_place import is_placement
from sdy.passes.spmd.costs.kernels import Kernel, kernels_of, source
from sdy.passes.spmd.local_module import COLLECTIVES
from sdy.passes.spmd.remat.kernel_editor import KernelEditor
from sdy.stablehlo.control_flow import OptimizationBarrierOp


def order(
    editor: KernelEditor, block: Block, starts: Set[Operation], length: int, most_beside: int | None = None
) -> None:
    """Insert barriers between the segments of the kernels of `block`, in the order of its operations.

    Args:
        editor: The editor of the block.
        block: The block of the main function.
        starts: The operations whose kernels start a segment; of several consecutive ones, the first.
        length: The most kernels of a segment.
        most_beside: The number of segments beside which a collective runs, and all that depends on it, at most; None
            for no limit.
    """
    kernels = kernels_of([*block.ops], Backend.ACCELERATOR)
    segments = _segments(kernels[:-1], starts, length)
    number: dict[Operation | Block, int] = {
        kernel.operation: index for index, segment in enumerate(segments) for kernel in segment
    }
    number[kernels[-1].operation] = len(segments)
    last_read = {value: number[kernel.operation] for kernel in kernels for value in kernel.reads}
    returned = {*map(source, kernels[-1].operation.operands)}
    beside = _beside(segments, returned)
    for index, segment in enumerate(segments[1:], 1):
        passed = dict.fromkeys(_left(segments[index - 1], index, last_read, beside))
        if most_beside is not None and index > most_beside:
            before = [result for kernel in segments[index - 1 - most_beside] for result in kernel.operation.results]
            passed |= dict.fromkeys(each for each in before if last_read.get(each, -1) >= index)
        if not passed:
            continue
        for kernel in segment:
            if not leaves_device(kernel.operation):
                is_update = not returned.isdisjoint(kernel.operation.results)
                reads = (read for read in kernel.reads if not (is_update and read in beside))
                passed |= dict.fromkeys(read for read in reads if number.get(read.owner) != index)
        _insert(editor, segment, [*passed])


def _beside(segments: Sequence[Sequence[Kernel]], returned: Set[SSAValue]) -> set[SSAValue]:
    """Return the values for which no barrier waits, so that they are computed beside later segments.

    They are results of collectives, values that are moved from the host, and those that depend on them: in the same
    segment, or as results of the program, such as updated parameters.
    """
    beside: set[SSAValue] = set()
    for segment in segments:
        of_segment: set[SSAValue] = set()
        for kernel in segment:
            op = kernel.operation
            is_transfer = isinstance(op, COLLECTIVES) or (is_placement(op) and not leaves_device(op))
            depends = not of_segment.isdisjoint(kernel.reads)
            is_update = not returned.isdisjoint(op.results) and not beside.isdisjoint(kernel.reads)
            if is_transfer or depends or is_update:
                of_segment.update(op.results)
        beside |= of_segment
    return beside


def _left(
    segment: Sequence[Kernel], end: int, last_read: Mapping[SSAValue, int], beside: Set[SSAValue]
) -> Iterator[SSAValue]:
    """Yield the results of `segment` but those in `beside` that are read from segment `end` on, or by those.

    A value that is moved to the host is among them, which frees its memory.
    """
    computed = [result for kernel in segment for result in kernel.operation.results if result not in beside]
    for_collectives = {
        read for kernel in segment if not beside.isdisjoint(kernel.operation.results) for read in kernel.reads
    }
    for result in computed:
        if last_read.get(result, -1) >= end or result in for_collectives:
            yield result


def _segments(kernels: list[Kernel], starts: Set[Operation], length: int) -> list[list[Kernel]]:
    segments: list[list[Kernel]] = [[]]
    was_start = False
    for kernel in kernels:
        is_start = kernel.operation in starts
        if segments[-1] and ((is_start and not was_start) or len(segments[-1]) >= length):
            segments.append([])
        segments[-1].append(kernel)
        was_start = is_start
    return segments


def _insert(editor: KernelEditor, segment: list[Kernel], passed: list[SSAValue]) -> None:
    first = segment[0].operation
    barrier = OptimizationBarrierOp.create(
        operands=passed,
        result_types=[value.type for value in passed],
        attributes={ORDERS: UnitAttr()},
        location=first.location,
    )
    insert(barrier, InsertPoint.before(first))
    new = dict(zip(passed, barrier.results, strict=True))
    for kernel in segment:
        # No barrier delays the transfer of a value to the host.
        if leaves_device(kernel.operation):
            continue
        if replaced := {value: result for value, result in new.items() if value in kernel.reads}:
            editor.replace(kernel, replaced)
