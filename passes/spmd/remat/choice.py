"""Choice of the values to recompute or offload, so that the memory of a program stays below a limit.

A value can be recomputed if it is in memory at the time of the peak, but not in use then: it has been written, and
perhaps read, before, and is read again later. Its kernel is then computed again at the first later read, from values
that are in memory at that time; those that are not are computed again as well. A value that is computed again for
several reads is kept between them where memory allows, or else computed once for each.

    memory    | x = ... | y = tanh(x) | ...  peak ... | dx = f(y) |                y is kept over the peak
    memory    | x = ... | y = tanh(x) | ...  peak ... | y' = tanh(x) | dx = f(y')  y is recomputed from x

On hardware with a link to the host, a value can also be moved to host memory before the peak, and back before it is
read; `host_link.py` has the times and the cost. Of both ways, the cheaper one is taken.

Values are chosen greedily by the bytes that they free at the peak for each second. This is the rematerialization of
XLA's `HloRematerialization` with the chains of operations of Chen et al., "Training Deep Nets with Sublinear Memory
Cost" (2016).
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
from xdsl.ir import BlockArgument, Operation, SSAValue

from sdy.box import Ints
from sdy.passes.common.properties import is_pure, value_bytes
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.local_module import COLLECTIVES
from sdy.passes.spmd.remat.host_link import HostLink, Transfer
from sdy.passes.spmd.remat.kernel_timeline import KernelTimeline
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.random import RngOp

_NEVER = CustomCallOp | RngOp
"""Operations that are not computed again although they declare no side effect: callbacks, and random numbers."""


@dataclass(slots=True, eq=False)
class Copy:
    """A kernel that is computed again or whose result is on the host, and the times at which its results are in memory.

    A result on the host is moved back to the device instead of being computed.
    """

    kernel: int
    """The time of the kernel that is computed again."""
    begin: int
    """The time of the first read, before which the copy is computed, or moved back."""
    end: int
    """The time of the last read."""
    transfer: Transfer | None = None
    """The transfers of the result; None if it is computed."""


class Dropped(NamedTuple):
    """A value that is recomputed or offloaded instead of kept.

    Attributes:
        value: The value.
        end: The time of the last read before the peak: all later reads are of copies.
        seconds: The estimated time of the kernels that are computed again for it, or of its exposed transfers.
        is_offloaded: True if it is moved to the host and back.
    """

    value: SSAValue
    end: int
    seconds: float
    is_offloaded: bool = False


@dataclass
class Recomputation:
    """The values that are recomputed or offloaded, and the kernels that are computed again for them."""

    dropped: dict[SSAValue, Dropped] = field(default_factory=dict[SSAValue, Dropped])
    copies: defaultdict[int, list[Copy]] = field(default_factory=lambda: defaultdict[int, list[Copy]](list))
    """The copies of each kernel, by its time."""

    def is_kept(self, value: SSAValue, time: int, timeline: KernelTimeline) -> bool:
        """Return whether `value` is in memory at `time`, or the value or the copy that it is a view of."""
        dropped = self.dropped.get(timeline.viewed(value))
        is_in_memory = dropped is None or time <= dropped.end or timeline.number[value.owner] > dropped.end
        return is_in_memory and timeline.is_kept(value, time)

    def copy_at(self, kernel: int, time: int) -> Copy | None:
        """Return the copy of a kernel whose results are in memory at `time`."""
        return next((copy for copy in self.copies[kernel] if copy.begin <= time <= copy.end), None)


@dataclass
class _Draft:
    """The changes with which a value would be recomputed or offloaded."""

    seconds: float = 0.0
    transfer: Transfer | None = None
    """The transfers of the value; None if it would be recomputed."""
    computed: list[int] = field(default_factory=list[int])
    """The kernels that would be computed again."""
    moved: list[tuple[Copy, int, int]] = field(default_factory=list[tuple[Copy, int, int]])
    """The copies that would begin or end at other times."""


def recomputation(
    timeline: KernelTimeline, seconds: Sequence[float], limit: int, hardware: Hardware
) -> Recomputation | None:
    """Choose values to recompute or offload until the temporaries need at most `limit` bytes; None if no value helps.

    Args:
        timeline: The memory of the program over time.
        seconds: The time of each kernel.
        limit: The most bytes that temporaries may take.
        hardware: The hardware; values are offloaded if it has a link to the host.
    """
    link = HostLink(hardware, seconds) if hardware.host is not None else None
    return _Chooser(timeline, seconds, limit, link).chosen()


class _Chooser:
    def __init__(self, timeline: KernelTimeline, seconds: Sequence[float], limit: int, link: HostLink | None) -> None:
        self._timeline = timeline
        self._seconds = seconds
        self._limit = limit
        self._link = link
        self._bytes: Ints = timeline.bytes.copy()
        """The bytes of the temporaries, copies included, while each kernel runs."""
        self._own: Ints = timeline.own_bytes.copy()
        self._excess: Ints = np.zeros_like(self._bytes)
        """The bytes by which copies that are computed before a kernel take more than the kernel itself."""
        self._plan = Recomputation()
        self._reads: defaultdict[SSAValue, list[int]] = defaultdict(list)
        """The times at which each value is read, by kernels and by copies, in ascending order."""
        for time, kernel in enumerate(timeline.kernels):
            for value in kernel.reads:
                self._reads[value].append(time)
        self._can_copy = [self._is_copyable(time) for time in range(len(timeline.kernels))]

    def chosen(self) -> Recomputation | None:
        while (needed := self._bytes + self._excess).max(initial=0) > self._limit:
            if not self._lower(int(needed.argmax())):
                return None
        return self._plan

    def _lower(self, peak: int) -> bool:
        """Drop values until the memory at `peak` is at most the limit; return whether this succeeds."""
        while self._needed(peak) > self._limit:
            if not self._drop_cheapest(peak):
                return False
        return True

    def _drop_cheapest(self, peak: int) -> bool:
        """Drop values in the order of their price until the memory at `peak` is at most the limit.

        Returns whether a value was dropped. Afterwards, others may fit that did not before.
        """
        queue: list[tuple[float, int, SSAValue]] = []
        for number, (value, end) in enumerate(self._timeline.ends.items()):
            if end > peak and value not in self._plan.dropped and self._can_be_dropped(value):
                gap = self._gap(value, peak)
                if gap is not None:
                    queue.append((0.0, number, value))
        heapify(queue)
        was_dropped = False
        while self._needed(peak) > self._limit and queue:
            price, number, value = heappop(queue)
            gap = self._gap(value, peak)
            if gap is None:
                continue
            drafts = [self._draft(value, gap[1], peak), self._offloaded(value, gap, peak)]
            draft = min((each for each in drafts if each is not None), key=lambda each: each.seconds, default=None)
            if draft is None:
                continue
            now = draft.seconds / value_bytes(value)
            if queue and now > max(price, queue[0][0]):
                heappush(queue, (now, number, value))
                continue
            self._drop(value, gap, draft)
            was_dropped = True
        return was_dropped

    def _can_be_dropped(self, value: SSAValue) -> bool:
        return self._can_copy[self._timeline.number[value.owner]] or self._can_be_offloaded(value)

    def _can_be_offloaded(self, value: SSAValue) -> bool:
        owner = value.owner
        return self._link is not None and isinstance(owner, Operation) and len(owner.results) == 1

    def _offloaded(self, value: SSAValue, gap: tuple[int, int], peak: int) -> _Draft | None:
        """Return the changes with which `value` would be offloaded over `peak`; None if that is impossible."""
        if self._link is None or not self._can_be_offloaded(value):
            return None
        begin, read = gap
        return self._draft(value, read, peak, self._link.transfer(value_bytes(value), begin, peak, read))

    def _draft(self, value: SSAValue, time: int, peak: int, transfer: Transfer | None = None) -> _Draft | None:
        """Return the changes with which `value` would be recomputed at `time`, or moved back from the host until then.

        Returns None if that is impossible.
        """
        draft = _Draft(transfer=transfer)
        needed, visited = [*self._read_from(value, time)], set[int]()
        if transfer is not None:
            draft.seconds = transfer.seconds
            visited.add(self._timeline.number[value.owner])
        while needed:
            kernel = needed.pop()
            if kernel in visited:
                continue
            visited.add(kernel)
            if self._shares(kernel, time, draft):
                continue
            if not self._can_copy[kernel]:
                return None
            if not any(copy for copy, begin, _ in draft.moved if copy.kernel == kernel and begin == time):
                draft.computed.append(kernel)
                draft.seconds += self._seconds[kernel]
            for read in self._timeline.kernels[kernel].reads:
                if self._timeline.viewed(read) is value or not self._is_kept(read, time):
                    if isinstance(read, BlockArgument):
                        return None
                    needed.append(self._timeline.number[read.owner])
        excess = 0 if transfer else self._excess_of(draft, value, time)
        most = max(self._limit, self._needed(peak))
        return draft if self._bytes[time] + excess <= most else None

    def _gap(self, value: SSAValue, time: int) -> tuple[int, int] | None:
        """Return the times of the last write or read of `value` before `time` and of the first read after it.

        Returns None if `value` is not in memory at `time`, or written or read then.
        """
        begin = self._timeline.number[value.owner]
        reads = sorted({read for each in self._timeline.names_of(value) for read in self._reads[each]})
        index = bisect_left(reads, time)
        if not begin < time or index == len(reads) or reads[index] == time:
            return None
        return max(begin, reads[index - 1]) if index else begin, reads[index]

    def _read_from(self, value: SSAValue, time: int) -> dict[int, int]:
        """Return the kernels of `value` and its views that are read from `time` on, with the last times.

        A view that is computed later is read with them.
        """
        names = self._timeline.names_of(value)
        last = {self._timeline.number[each.owner]: max(self._reads[each], default=-1) for each in names}
        of_later = max((read for kernel, read in last.items() if kernel >= time), default=-1)
        return {kernel: max(read, of_later) for kernel, read in last.items() if kernel < time <= read}

    def _shares(self, kernel: int, time: int, draft: _Draft) -> bool:
        """Return whether a copy of `kernel` is in memory at `time`, or may be kept until then.

        A later copy may also be computed at `time` already, if the values that it reads can.
        """
        for copy in self._plan.copies[kernel]:
            if copy.begin <= time <= copy.end:
                return True
            if copy.end < time and self._has_room(kernel, copy.end + 1, time, draft):
                draft.moved.append((copy, copy.begin, time))
                return True
            if copy.transfer is None and time < copy.begin and self._has_room(kernel, time, copy.begin - 1, draft):
                draft.moved.append((copy, time, copy.end))
                return False
        return False

    def _has_room(self, kernel: int, begin: int, end: int, draft: _Draft) -> bool:
        """Return whether memory allows the results of `kernel` from `begin` to `end`, besides the copies of `draft`."""
        needed = (self._bytes + self._excess)[begin : end + 1]
        for copy, first, last in draft.moved:
            size = self._result_bytes(copy.kernel)
            for start, stop in ((first, copy.begin), (copy.end + 1, last + 1)):
                needed[max(start - begin, 0) : max(stop - begin, 0)] += size
        return int(needed.max()) + self._result_bytes(kernel) <= self._limit

    def _result_bytes(self, kernel: int) -> int:
        return sum(map(value_bytes, self._timeline.kernels[kernel].operation.results))

    def _drop(self, value: SSAValue, gap: tuple[int, int], draft: _Draft) -> None:
        before, read = gap
        size, transfer = value_bytes(value), draft.transfer
        gone, back = (before + 1, read) if transfer is None else (transfer.gone, transfer.back)
        self._bytes[gone:back] -= size
        for copy, begin, end in draft.moved:
            of_copy = self._result_bytes(copy.kernel)
            self._bytes[begin : copy.begin] += of_copy
            self._bytes[copy.end + 1 : end + 1] += of_copy
            if begin < copy.begin:
                self._read(copy.kernel, begin)
            copy.begin, copy.end = begin, end
        last = self._read_from(value, read)
        for kernel in draft.computed:
            self._read(kernel, read)
            self._plan.copies[kernel].append(Copy(kernel, read, last.get(kernel, read)))
        if transfer is None:
            self._excess[read] = self._excess_of(draft, value, read)
            if last.get(self._timeline.number[value.owner]) == read and self._timeline.is_reordered(value, read):
                self._bytes[read] -= size
                self._own[read] -= size
        else:
            assert self._link is not None
            self._link.reserve(size, transfer)
            own = self._timeline.number[value.owner]
            self._plan.copies[own].append(Copy(own, back, last.get(own, read), transfer))
        self._plan.dropped[value] = Dropped(value, before, draft.seconds, transfer is not None)

    def _read(self, kernel: int, time: int) -> None:
        """Record that a copy of `kernel` reads at `time`."""
        for value in self._timeline.kernels[kernel].reads:
            insort(self._reads[value], time)

    def _needed(self, time: int) -> int:
        """Return the bytes of the temporaries before and while the kernel at `time` runs."""
        return int(self._bytes[time] + self._excess[time])

    def _excess_of(self, draft: _Draft, value: SSAValue, time: int) -> int:
        """Return the bytes by which the copies before `time` take more than the kernel, those of a draft included."""
        more = self._held(draft.computed) - value_bytes(value)
        return max(more - int(self._own[time]), int(self._excess[time]))

    def _held(self, kernels: Sequence[int]) -> int:
        """Return the most bytes of the results of `kernels`, computed in order, each kept until its last reader."""
        last: dict[SSAValue, int] = {}
        ordered = sorted(kernels)
        for kernel in ordered:
            for read in self._timeline.kernels[kernel].reads:
                last[read] = kernel
        held = most = 0
        for kernel in ordered:
            held += self._result_bytes(kernel)
            most = max(most, held)
            held -= sum(
                value_bytes(read)
                for read in self._timeline.kernels[kernel].reads
                if last[read] == kernel and self._timeline.number.get(read.owner) in kernels
            )
        return most

    def _is_kept(self, value: SSAValue, time: int) -> bool:
        return self._plan.is_kept(value, time, self._timeline)

    def _is_copyable(self, time: int) -> bool:
        return all(is_repeatable(op) for op in self._timeline.operations_of(time))


def is_repeatable(op: Operation) -> bool:
    """Return whether `op` computes the same results again, without side effects.

    Collectives inside of loops and branches are left alone.
    """
    nested = [inner for inner in op.walk() if inner is not op]
    is_copyable = is_pure(op) or isinstance(op, COLLECTIVES)
    return is_copyable and all(map(is_pure, nested)) and not any(isinstance(each, _NEVER) for each in (op, *nested))
