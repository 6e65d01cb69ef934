"""Temporaries in the buffers of results: a result's buffer is free before the result is computed.

As in XLA's `BufferAssigner` (`buffer_assignment.cc`), the largest temporaries come first, and each takes the smallest
buffer that is large enough and free whenever the temporary is in use.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from sdy.passes.spmd.costs.buffers import Allocation, Buffer, LiveRange


def outside_results(allocation: Allocation, bytes_of: Callable[[SSAValue], int]) -> list[Buffer]:
    """Return the temporary buffers that fit in no buffer of a result."""
    slots: dict[int, list[Buffer]] = defaultdict(list)
    for each in (*allocation.results, *allocation.aliased):
        slots[each.size(bytes_of)].append(each)
    sizes = sorted(slots)
    sized_slots = [_Slots(slots[size], len(allocation.operations)) for size in sizes]
    outside: list[Buffer] = []
    sized = [(buffer.size(bytes_of), buffer) for buffer in allocation.temporaries]
    for size, buffer in sorted(sized, key=lambda each: -each[0]):
        fitting = sized_slots[bisect_left(sizes, size) :] if size else ()
        if not any(slots.take(buffer) for slots in fitting):
            outside.append(buffer)
    return outside


class _Slots:
    """The buffers of results of one size, and the times at which each is in use.

    A training step has thousands of temporaries and hundreds of such buffers, so that the buffers in use are a set of
    bits, in a segment tree over the times: one search answers for all buffers.

    Args:
        buffers: The buffers.
        num_times: The number of times.
    """

    def __init__(self, buffers: Sequence[Buffer], num_times: int) -> None:
        self._all = (1 << len(buffers)) - 1
        self._bits = {buffer: 1 << index for index, buffer in enumerate(buffers)}
        self._succeeded: dict[Buffer, int] = {}
        """The buffers of the temporaries that others succeed, by these others."""
        self._leaves = num_times
        self._in_all = [0] * (2 * num_times)
        """The buffers that are in use at all times of each node, and not of the node above it."""
        self._in_some = [0] * (2 * num_times)
        """The buffers that are in use at some time of each node, and not at all times of a node above it."""
        for buffer, bit in self._bits.items():
            self._use(bit, buffer.ranges)

    def take(self, temporary: Buffer) -> bool:
        """Use the first buffer that is free whenever `temporary` is in use; return whether one was.

        Its successor, and the buffers that it succeeds, need not be free at the time when both are in use.
        """
        ranges = temporary.ranges
        free = self._free(ranges)
        if temporary.successor is not None and (bit := self._bits.get(temporary.successor)):
            *before, last = ranges
            if last.end > last.begin:
                before.append(replace(last, end=last.end - 1))
            free |= self._free(before) & bit
        if taken := self._succeeded.pop(temporary, 0):
            first, *after = ranges
            if first.end > first.begin:
                after.append(replace(first, begin=first.begin + 1))
            free |= self._free(after) & taken
        bit = free & -free
        self._use(bit, ranges)
        if temporary.successor is not None:
            self._succeeded[temporary.successor] = self._succeeded.get(temporary.successor, 0) | bit
        return bool(free)

    def _free(self, ranges: Sequence[LiveRange]) -> int:
        """Return the buffers that are free during all `ranges`."""
        in_use = 0
        for node in self._nodes(ranges):
            in_use |= self._in_some[node]
            while node := node // 2:
                in_use |= self._in_all[node]
        return self._all & ~in_use

    def _use(self, buffer: int, ranges: Sequence[LiveRange]) -> None:
        """Let a buffer, which is one bit, be in use during `ranges`."""
        for node in self._nodes(ranges) if buffer else ():
            self._in_all[node] |= buffer
            self._in_some[node] |= buffer
            while node := node // 2:
                self._in_some[node] |= buffer

    def _nodes(self, ranges: Sequence[LiveRange]) -> Iterator[int]:
        """Yield the nodes that have the times of `ranges` and no others."""
        for each in ranges:
            begin, end = each.begin + self._leaves, each.end + 1 + self._leaves
            while begin < end:
                if begin % 2:
                    yield begin
                    begin += 1
                if end % 2:
                    end -= 1
                    yield end
                begin, end = begin // 2, end // 2
