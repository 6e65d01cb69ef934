"""The order in which XLA runs the kernels of a block.

On CPUs, XLA runs them breadth-first: what becomes ready first runs first (`BFScheduler` in
`hlo_memory_scheduler.cc`), which computes more at the same time and needs more memory.

On other devices, and on CPUs for a program with ordering barriers, the order is that of a depth-first search from the
results. The inputs of a kernel with the most other users come first, then those that need the most memory, as in
`DFSMemoryScheduler`. A kernel that reads through an ordering barrier runs after the kernels that compute the operands
of the barrier; with such barriers, the order of a list scheduler is taken if it needs less memory, as in
`DefaultMemoryScheduler`.

Combined all-reduces run one after the other, and keep their operands until all have run.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.attributes import ORDERS
from sdy.ir.walking import operations_of
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.combined_reductions import combined_reductions
from sdy.passes.spmd.costs.kernel_dependences import inputs_of, users_of_kernels
from sdy.passes.spmd.costs.kernels import Kernel
from sdy.passes.spmd.costs.layout_copies import layout_copies
from sdy.passes.spmd.costs.list_order import by_freed_memory, peak_of
from sdy.stablehlo.control_flow import OptimizationBarrierOp


def scheduled(kernels: Sequence[Kernel], backend: Backend) -> list[Kernel]:
    """Return the kernels of a block in the order in which they run.

    Args:
        kernels: The kernels, the last one being the terminator.
        backend: The back end that compiles them.
    """
    inputs = inputs_of(kernels)
    combined, waits = _combined(kernels, inputs)
    if backend is Backend.CPU:
        return _in_order(_breadth_first(waits), kernels, combined)
    users = [*map(len, users_of_kernels(inputs))]
    roots = [*(index for index in range(len(kernels) - 1) if not users[index]), *range(len(kernels))[-1:]]
    priority = _priorities(kernels, inputs, users)
    depth_first = _in_order(_depth_first(roots, waits, priority), kernels, combined)
    if not any(kernel.follows for kernel in kernels):
        return depth_first
    return min(depth_first, _in_order(by_freed_memory(kernels, waits), kernels, combined), key=peak_of)


def _combined(
    kernels: Sequence[Kernel], inputs: Sequence[Sequence[int]]
) -> tuple[dict[int, Sequence[int]], Sequence[Sequence[int]]]:
    """Return the combined all-reduces that each one is part of, and the kernels that each kernel then waits for."""
    combined: dict[int, Sequence[int]] = {}
    waits = [*inputs]
    for group in combined_reductions(kernels, inputs):
        together = [*dict.fromkeys(each for index in group for each in waits[index])]
        for index in group:
            combined[index], waits[index] = group, together
    return combined, waits


def has_ordering_barriers(module: ModuleOp) -> bool:
    """Return whether `module` has barriers that say in which order its kernels run."""
    return any(ORDERS in op.attributes for op in operations_of(module, OptimizationBarrierOp))


def _breadth_first(inputs: Sequence[Sequence[int]]) -> Iterable[int]:
    """Yield the indices of the kernels in the order in which they become ready, the terminator last."""
    users = users_of_kernels(inputs)
    missing = [len(each) for each in inputs]
    terminator = len(inputs) - 1
    ready = deque(index for index in range(terminator) if not missing[index])
    while ready:
        yield (index := ready.popleft())
        for user in users[index]:
            missing[user] -= 1
            if not missing[user] and user != terminator:
                ready.append(user)
    yield terminator


def _depth_first(
    roots: Sequence[int], inputs: Sequence[Sequence[int]], priority: Sequence[tuple[int, int, int]]
) -> Iterable[int]:
    """Yield the indices of the kernels that lead to `roots`, in postorder; inputs of higher priority come first."""
    visited = [False] * len(inputs)
    pending = [(index, False) for index in reversed(roots)]
    while pending:
        index, is_ready = pending.pop()
        if is_ready:
            yield index
        elif not visited[index]:
            visited[index] = True
            pending.append((index, True))
            pending += [(each, False) for each in sorted(inputs[index], key=priority.__getitem__)]


def _in_order(order: Iterable[int], kernels: Sequence[Kernel], combined: Mapping[int, Sequence[int]]) -> list[Kernel]:
    """Return the kernels in an order, all of a combined collective where the first one is."""
    ordered: list[Kernel] = []
    done: set[int] = set()
    for index in order:
        if index not in done:
            group = combined.get(index, (index,))
            done.update(group)
            ordered += _at_once([kernels[each] for each in group]) if len(group) > 1 else [kernels[index]]
    return ordered


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
