"""An order of kernels in which those that add no memory run as early as possible.

    %g = dot %x, %dy          gradient of a parameter          %g = dot %x, %dy
    ...                       rest of the backward pass        %w' = subtract %w, %g
    %w' = subtract %w, %g     in the buffer of %w              ...

The gradients of all parameters would otherwise be in memory until the step ends.
"""

from collections.abc import Iterator, Sequence, Set

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from sdy.ir.editing import reorder
from sdy.ir.walking import captured_values
from sdy.passes.common.donations import aliases
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.kernel_dependences import inputs_of
from sdy.passes.spmd.costs.kernels import Kernel, kernels_of, source
from sdy.passes.spmd.costs.list_order import ReadsLeft
from sdy.passes.spmd.remat.choice import is_repeatable


def run_early(function: FuncOp) -> Sequence[int]:
    """Move the operations of a function so that its kernels run as soon as they write no more bytes than they free.

    A kernel that overwrites a donated argument runs after all others that read it.

    Returns:
        The times of the kernels before, in the order in which they run afterwards.
    """
    block = function.body.block
    kernels = kernels_of([*block.ops], Backend.ACCELERATOR)
    order = [*_early_order(function, kernels)]
    *roots, end = (kernels[index].operation for index in order)
    reorder(block, [*_with_operands([*roots, *(op for op in block.ops if op is not end), end], {*block.ops})])
    return order


def _early_order(function: FuncOp, kernels: Sequence[Kernel]) -> Iterator[int]:
    inputs = inputs_of(kernels)
    users: list[list[int]] = [[] for _ in kernels]
    for index, each in enumerate(inputs):
        for other in each:
            users[other].append(index)
    left = ReadsLeft(kernels)
    donated: set[SSAValue] = {function.body.block.args[index] for index in aliases(function)}
    returned = {*map(source, kernels[-1].operation.operands)}
    missing = [len(each) for each in inputs]
    has_run = [False] * (len(kernels) - 1) + [True]

    def can_run(index: int) -> bool:
        kernel = kernels[index]
        in_results = sum(value_bytes(each) for each in kernel.operation.results if each in returned)
        overwritten = donated.intersection(kernel.reads)
        return (
            not missing[index]
            and is_repeatable(kernel.operation)
            and left.added(index) <= in_results
            and all(left.is_last(index, each) for each in overwritten)
        )

    for first in range(len(kernels) - 1):
        pending = [first]
        while pending:
            index = pending.pop()
            if has_run[index] or not (index == first or can_run(index)):
                continue
            has_run[index] = True
            yield index
            for user in users[index]:
                missing[user] -= 1
            pending += sorted({*users[index], *left.run(index)}, reverse=True)
    yield len(kernels) - 1


def _with_operands(roots: Sequence[Operation], operations: Set[Operation]) -> Iterator[Operation]:
    """Yield `roots` in this order, each after those of `operations` that compute its operands."""
    visited: set[Operation] = set()
    for root in roots:
        pending = [(root, False)]
        while pending:
            op, is_ready = pending.pop()
            if is_ready:
                yield op
            elif op not in visited and op in operations:
                visited.add(op)
                pending.append((op, True))
                pending += [(value.owner, False) for value in _operands(op) if isinstance(value.owner, Operation)]


def _operands(op: Operation) -> Sequence[SSAValue]:
    return [*op.operands, *captured_values(op)] if op.regions else op.operands
