"""Kernels that copy operands: XLA for CPUs runs them as soon as the operands are there.

The copies have other orders of dimensions, or are f32 instead of a narrow float. Operations share the latter.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from xdsl.ir import Block, Operation, SSAValue

from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.in_place import is_reshaped_for
from sdy.passes.spmd.costs.kernels import Copy, Kernel, can_be_computed_again, source, uses_of
from sdy.passes.spmd.costs.layout_copies import layout_copies
from sdy.passes.spmd.costs.widening import WIDTH, is_widened, is_written_wide, widened_in_loop


def with_copies(kernels: Sequence[Kernel]) -> Iterator[Kernel]:
    """Yield the kernels of a block, and before each one those that copy its operands."""
    kernel_of: dict[Operation | Block, Kernel] = {kernel.operation: kernel for kernel in kernels}
    widened: dict[SSAValue, Copy] = {}
    for kernel in kernels:
        copies: list[Copy] = []
        reordered = {*layout_copies(kernel.operation, Backend.CPU)}
        for operand, scale in _copied(kernel, reordered):
            copy = None if operand in reordered else widened.get(source(operand))
            if copy is None:
                copy = Copy(operand, scale)
                yield _copying(copy, kernel.operation, kernel_of)
            if operand not in reordered:
                widened[source(operand)] = copy
            copies.append(copy)
        yield _reading(kernel, copies) if copies else kernel


def _copied(kernel: Kernel, reordered: set[SSAValue]) -> Iterator[tuple[SSAValue, int]]:
    """Yield the operands of a kernel that are copied, and the bytes of each copy relative to those of the operand."""
    op = kernel.operation
    for operand in dict.fromkeys(op.operands):
        if source(operand) not in kernel.reads:
            continue
        is_wide = is_widened(op, operand)
        if operand in reordered or (is_wide and not is_written_wide(operand)):
            yield operand, WIDTH if is_wide else 1
    yield from ((operand, WIDTH) for operand in widened_in_loop(op))


def _copying(copy: Copy, op: Operation, kernel_of: Mapping[Operation | Block, Kernel]) -> Kernel:
    """Return the kernel that makes a copy for `op`.

    An elementwise operation is computed again if all that reads it needs another shape, as XLA then fuses the operation
    with the copy as well as with the reshapes.
    """
    value = source(copy.operand)
    first = kernel_of.get(value.owner)
    if first is None or not can_be_computed_again(first.operation):
        return Kernel(op, [value], (), makes=copy)
    if not all(is_reshaped_for(use.operation, value) for use in uses_of(value)):
        return Kernel(op, [value], (), makes=copy)
    return Kernel(op, first.reads, (), first.follows, makes=copy)


def _reading(kernel: Kernel, copies: Sequence[Copy]) -> Kernel:
    """Return a kernel that reads copies instead of the operands."""
    copied = {copy.operand for copy in copies}
    uncopied = {source(operand) for operand in kernel.operation.operands if operand not in copied}
    unread = {*map(source, copied)} - uncopied
    return replace(kernel, reads=[value for value in kernel.reads if value not in unread], copies=copies)
