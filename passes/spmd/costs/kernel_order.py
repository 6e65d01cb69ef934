"""The order in which XLA runs the kernels of a block: a depth-first search from the results.

The inputs of a kernel with the most other users come first, then those that need the most memory, as in XLA's
`DFSMemoryScheduler` (`hlo_memory_scheduler.cc`). XLA on CPU by default takes a breadth-first order instead, which
computes more at the same time and needs more memory, unless `--xla_cpu_enable_concurrency_optimized_scheduler=false`.
A kernel that reads through an ordering barrier runs after the kernels that compute the operands of the barrier.
Combined all-reduces run one after the other, and keep their operands until all have run.
"""

from collections.abc import Sequence
from dataclasses import replace

from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.combined_reductions import combined_reductions
from sdy.passes.spmd.costs.kernel_dependences import inputs_of
from sdy.passes.spmd.costs.kernels import Kernel
from sdy.passes.spmd.costs.layout_copies import layout_copies


def scheduled(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Return the kernels of a block, the last one being the terminator, in the order in which they run."""
    inputs = inputs_of(kernels)
    users = [0] * len(kernels)
    for index in (index for each in inputs for index in each):
        users[index] += 1
    priority = _priorities(kernels, inputs, users)
    combined: dict[int, Sequence[int]] = {}
    for group in combined_reductions(kernels, inputs):
        together = [*dict.fromkeys(each for index in group for each in inputs[index])]
        for index in group:
            combined[index], inputs[index] = group, together
    order: list[Kernel] = []
    visited = [False] * len(kernels)
    unused = [index for index in range(len(kernels) - 1) if not users[index]]
    pending = [(index, False) for index in reversed([*unused, *range(len(kernels))[-1:]])]
    while pending:
        index, is_ready = pending.pop()
        if is_ready:
            group = combined.get(index)
            order += [kernels[index]] if group is None else _at_once([kernels[each] for each in group])
            for each in group or ():
                visited[each] = True
        elif not visited[index]:
            visited[index] = True
            pending.append((index, True))
            pending += [(each, False) for each in sorted(inputs[index], key=priority.__getitem__)]
    return order


def _at_once(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Return kernels that run as one: all wait for what one of them reads, and the last one reads it too."""
    reads = [*dict.fromkeys(value for kernel in kernels for value in kernel.reads)]
    waiting = [replace(kernel, follows=[*kernel.follows, *reads]) for kernel in kernels]
    return [*waiting[:-1], replace(waiting[-1], reads=reads)]


def _priorities(
    kernels: Sequence[Kernel], inputs: Sequence[Sequence[int]], users: Sequence[int]
) -> list[tuple[int, int, int]]:
    """Return for each kernel the other users, and the bytes, of everything that leads to it; the largest runs first."""
    priorities: list[tuple[int, int, int]] = []
    total = 0
    for index, kernel in enumerate(kernels):
        size = sum(map(value_bytes, (*kernel.operation.results, *layout_copies(kernel.operation))))
        total += size
        others = max(users[index] - 1, 0) + sum(priorities[each][0] for each in inputs[index])
        size += sum(priorities[each][1] for each in inputs[index])
        priorities.append((min(others, len(kernels)), min(size, total), -index))
    return priorities
