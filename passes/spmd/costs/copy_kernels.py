"""Kernels that copy operands: XLA for CPUs runs them as soon as the operands are there.

The copies have other orders of dimensions, or take more memory. Operations share equal copies.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from xdsl.ir import Block, Operation, SSAValue

from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.in_place import is_reshaped_for
from sdy.passes.spmd.costs.kernels import Copy, Kernel, can_be_computed_again, source, uses_of
from sdy.passes.spmd.costs.layout_copies import layout_copies, order_of_copy
from sdy.passes.spmd.costs.widening import WIDTH, widened_in_loop, width_for, written_width


def with_copies(kernels: Sequence[Kernel]) -> Iterator[Kernel]:
    """Yield the kernels of a block, and before each one those that copy its operands."""
    kernel_of: dict[Operation | Block, Kernel] = {kernel.operation: kernel for kernel in kernels}
    made: dict[tuple[SSAValue, Hashable, int], Copy] = {}
    for kernel in kernels:
        op, copies = kernel.operation, list[Copy]()
        reordered = {*layout_copies(op, Backend.CPU)}
        for operand, scale in _copied(kernel, reordered):
            order = order_of_copy(op, operand) if operand in reordered else None
            key = source(operand), order, scale
            if key not in made:
                made[key] = Copy(operand, scale)
                yield _copying(made[key], op, kernel_of)
            copies.append(made[key])
        yield _reading(kernel, copies) if copies else kernel


def _copied(kernel: Kernel, reordered: set[SSAValue]) -> Iterator[tuple[SSAValue, int]]:
    """Yield the operands of a kernel that are copied, and the bytes of each copy relative to those of the operand."""
    op = kernel.operation
    for operand in dict.fromkeys(op.operands):
        if source(operand) not in kernel.reads:
            continue
        width = width_for(op, operand)
        if operand in reordered or width > written_width(operand):
            yield operand, width
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
