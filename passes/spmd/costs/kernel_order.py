"""The order in which XLA runs the kernels of a block: a depth-first search from the results.

The inputs of a kernel with the most other users come first, then those that need the most memory, as in XLA's
`DFSMemoryScheduler` (`hlo_memory_scheduler.cc`). XLA on CPU by default takes a breadth-first order instead, which
computes more at the same time and needs more memory, unless `--xla_cpu_enable_concurrency_optimized_scheduler=false`.
A kernel that reads through an ordering barrier runs after the kernels that compute the operands of the barrier.
"""

from collections.abc import Sequence

from xdsl.ir import Operation

from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.kernels import Kernel


def scheduled(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Return the kernels of a block, the last one being the terminator, in the order in which they run."""
    number = {kernel.operation: index for index, kernel in enumerate(kernels)}
    inputs = [_inputs(kernel, number) for kernel in kernels]
    users = [0] * len(kernels)
    for index in (index for each in inputs for index in each):
        users[index] += 1
    priority = _priorities(kernels, inputs, users)
    order: list[Kernel] = []
    visited = [False] * len(kernels)
    unused = [index for index in range(len(kernels) - 1) if not users[index]]
    pending = [(index, False) for index in reversed([*unused, *range(len(kernels))[-1:]])]
    while pending:
        index, is_ready = pending.pop()
        if is_ready:
            order.append(kernels[index])
        elif not visited[index]:
            visited[index] = True
            pending.append((index, True))
            pending += [(each, False) for each in sorted(inputs[index], key=priority.__getitem__)]
    return order


def _inputs(kernel: Kernel, number: dict[Operation, int]) -> list[int]:
    """Return the numbers of the kernels that run before `kernel`."""
    owners = [value.owner for value in (*kernel.reads, *kernel.follows)]
    return [*dict.fromkeys(number[owner] for owner in owners if isinstance(owner, Operation) and owner in number)]


def _priorities(
    kernels: Sequence[Kernel], inputs: Sequence[Sequence[int]], users: Sequence[int]
) -> list[tuple[int, int, int]]:
    """Return for each kernel the other users, and the bytes, of everything that leads to it; the largest runs first."""
    priorities: list[tuple[int, int, int]] = []
    total = 0
    for index, kernel in enumerate(kernels):
        size = sum(map(value_bytes, kernel.operation.results))
        total += size
        others = max(users[index] - 1, 0) + sum(priorities[each][0] for each in inputs[index])
        size += sum(priorities[each][1] for each in inputs[index])
        priorities.append((min(others, len(kernels)), min(size, total), -index))
    return priorities
