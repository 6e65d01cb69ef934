"""The order of a list scheduler: of the kernels that are ready, the one that frees the most memory runs next.

XLA's `ListMemoryScheduler` (`hlo_memory_scheduler.cc`) takes the instruction with the largest difference of the bytes
that nothing reads afterwards and the bytes that it writes; of equal ones, that with the most users.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from xdsl.ir import SSAValue

from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.in_place import views
from sdy.passes.spmd.costs.kernel_dependences import users_of_kernels
from sdy.passes.spmd.costs.kernels import Kernel

_Priority = tuple[int, int, int]
"""The bytes that a kernel adds, its users negated, and its index; the smallest runs first."""


def by_freed_memory(kernels: Sequence[Kernel], inputs: Sequence[Sequence[int]]) -> Iterator[int]:
    """Yield the indices of the kernels of a block in the order in which they run, the terminator last.

    Args:
        kernels: The kernels, the last one being the terminator.
        inputs: For each kernel, the indices of those that it waits for.
    """
    reads = ReadsLeft(kernels)
    users = users_of_kernels(inputs)
    missing = [len(each) for each in inputs]
    terminator = len(kernels) - 1
    ready: list[_Priority] = []
    has_run = [False] * terminator + [True]

    def push(index: int) -> None:
        if not missing[index] and not has_run[index]:
            heappush(ready, (reads.added(index), -len(users[index]), index))

    for index in range(terminator):
        push(index)
    while ready:
        index = heappop(ready)[-1]
        if has_run[index]:
            continue
        has_run[index] = True
        yield index
        for user in users[index]:
            missing[user] -= 1
            push(user)
        for reader in reads.run(index):
            push(reader)
    yield terminator


def peak_of(kernels: Sequence[Kernel]) -> int:
    """Return the most bytes that results of `kernels` take at once if they run in this order."""
    reads = ReadsLeft(kernels)
    held = peak = 0
    for index in range(len(kernels)):
        peak = max(peak, held + reads.written(index))
        held += reads.added(index)
        reads.run(index)
    return peak


class ReadsLeft:
    """The kernels that have yet to read each value, those that read views of it included."""

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        viewed: dict[SSAValue, SSAValue] = {}
        for kernel in kernels:
            viewed |= {result: viewed.get(value, value) for value, result in views(kernel)}
        written = [[each for each in kernel.operation.results if each not in viewed] for kernel in kernels]
        self._written = [sum(map(value_bytes, each)) for each in written]
        self._is_temporary = {value for each in written for value in each}
        self._read = [{viewed.get(value, value) for value in kernel.reads} for kernel in kernels]
        self._readers: defaultdict[SSAValue, set[int]] = defaultdict(set)
        for index, values in enumerate(self._read):
            for value in values:
                self._readers[value].add(index)

    def written(self, index: int) -> int:
        """Return the bytes that a kernel writes."""
        return self._written[index]

    def added(self, index: int) -> int:
        """Return the bytes that a kernel writes, less those of the temporaries that it is the last one to read."""
        read = self._is_temporary.intersection(self._read[index])
        return self._written[index] - sum(value_bytes(value) for value in read if self.is_last(index, value))

    def is_last(self, index: int, value: SSAValue) -> bool:
        """Return whether no kernel but `index` has yet to read `value`, which is no view."""
        return self._readers[value] <= {index}

    def run(self, index: int) -> list[int]:
        """Let a kernel read, and return the kernels that are then the last ones to read a value."""
        for value in self._read[index]:
            self._readers[value].remove(index)
        return [reader for v in self._read[index] if len(self._readers[v]) == 1 for reader in self._readers[v]]
