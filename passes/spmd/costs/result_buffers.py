"""Temporaries in the buffers of results: a result's buffer is free before the result is computed.

As in XLA's `BufferAssigner` (`buffer_assignment.cc`), the largest temporaries come first, and each takes the smallest
buffer that is large enough and free whenever the temporary is in use.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from xdsl.ir import SSAValue

from sdy.passes.spmd.costs.buffers import Allocation, Buffer, LiveRange


def outside_results(allocation: Allocation, bytes_of: Callable[[SSAValue], int]) -> list[Buffer]:
    """Return the temporary buffers that fit in no buffer of a result."""
    slots = sorted((_Slot(bytes_of(each.value), each.ranges) for each in _buffers_of_results(allocation)), key=_bytes)
    sizes = [slot.bytes for slot in slots]
    outside: list[Buffer] = []
    sized = [(bytes_of(buffer.value), buffer) for buffer in allocation.temporaries]
    for size, buffer in sorted(sized, key=lambda each: -each[0]):
        fitting = slots[bisect_left(sizes, size) :] if size else ()
        if not any(slot.take(buffer.ranges) for slot in fitting):
            outside.append(buffer)
    return outside


def _buffers_of_results(allocation: Allocation) -> Iterable[Buffer]:
    return (*allocation.results, *allocation.aliased)


class _Slot:
    """The buffer of a result, with the times at which it is in use."""

    def __init__(self, size: int, ranges: Iterable[LiveRange]) -> None:
        self.bytes = size
        self._begins: list[int] = []
        self._ends: list[int] = []
        self._add(ranges)

    def take(self, ranges: Sequence[LiveRange]) -> bool:
        """Use the buffer during all `ranges` if it is free; return whether it was."""
        is_free = all(map(self._is_free, ranges))
        if is_free:
            self._add(ranges)
        return is_free

    def _is_free(self, other: LiveRange) -> bool:
        index = bisect_left(self._ends, other.begin)
        return index == len(self._ends) or other.end < self._begins[index]

    def _add(self, ranges: Iterable[LiveRange]) -> None:
        for each in ranges:
            index = bisect_left(self._begins, each.begin)
            self._begins.insert(index, each.begin)
            self._ends.insert(index, each.end)


def _bytes(slot: _Slot) -> int:
    return slot.bytes
