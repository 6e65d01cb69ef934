"""Temporaries in the buffers of results: a result's buffer is free before the result is computed.

As in XLA's `BufferAssigner` (`buffer_assignment.cc`), the largest temporaries come first, and each takes the smallest
buffer that is large enough and free whenever the temporary is in use.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from sdy.passes.spmd.costs.buffers import Allocation, Buffer, LiveRange

_MANY = 16
"""Slots of one size for which the number in use is counted; for fewer it costs as much as to look at each."""


def outside_results(allocation: Allocation, bytes_of: Callable[[SSAValue], int]) -> list[Buffer]:
    """Return the temporary buffers that fit in no buffer of a result."""
    slots: dict[int, list[_Slot]] = defaultdict(list)
    for each in (*allocation.results, *allocation.aliased):
        slots[bytes_of(each.value)].append(_Slot(each.ranges))
    sizes = sorted(slots)
    sized_slots = [_Slots(slots[size], len(allocation.operations)) for size in sizes]
    outside: list[Buffer] = []
    sized = [(bytes_of(buffer.value), buffer) for buffer in allocation.temporaries]
    for size, buffer in sorted(sized, key=lambda each: -each[0]):
        fitting = sized_slots[bisect_left(sizes, size) :] if size else ()
        if not any(slots.take(buffer.ranges) for slots in fitting):
            outside.append(buffer)
    return outside


class _Slots:
    """The buffers of results of one size.

    Of the thousands of temporaries of a training step, most fit in no slot: an array of the number of
    slots in use at each time excludes all slots at once.
    """

    def __init__(self, slots: Sequence["_Slot"], num_times: int) -> None:
        self._slots = slots
        self._in_use = np.zeros(num_times + 1, np.int32) if len(slots) >= _MANY else None
        for slot in slots:
            self._count(slot.ranges)

    def take(self, ranges: Sequence[LiveRange]) -> bool:
        """Use the first slot that is free during all `ranges`; return whether one was."""
        if self._are_in_use(ranges) or not any(slot.take(ranges) for slot in self._slots):
            return False
        self._count(ranges)
        return True

    def _are_in_use(self, ranges: Iterable[LiveRange]) -> bool:
        """Return whether all slots are known to be in use at one of the times."""
        counts = self._in_use
        return counts is not None and any(
            counts[each.begin : each.end + 1].max() == len(self._slots) for each in ranges
        )

    def _count(self, ranges: Iterable[LiveRange]) -> None:
        if self._in_use is not None:
            for each in ranges:
                self._in_use[each.begin : each.end + 1] += 1


class _Slot:
    """The buffer of a result, with the times at which it is in use."""

    def __init__(self, ranges: Sequence[LiveRange]) -> None:
        self.ranges = ranges
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
