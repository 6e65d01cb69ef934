"""Detection of consecutive repetitions in a sequence, such as the layers of a model."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sdy.box import Ints

_MOST_PERIODS = 32
"""Number of periods that are tried, those at which the most items recur."""


class Repeat(NamedTuple):
    """A repetition: from index `start`, `period` items occur `times` times in a row."""

    start: int
    period: int
    times: int

    @property
    def end(self) -> int:
        """The index after the last item."""
        return self.start + self.period * self.times

    @property
    def spared(self) -> int:
        """The number of items after the first period."""
        return self.period * (self.times - 1)


def repeats(sequence: Sequence[int], least: int = 4) -> list[Repeat]:
    """Return disjoint repetitions in a sequence, in order, with periods of at least `least` items.

    Of overlapping repetitions, the one that spares more items is selected; of those, the one with the shorter period.
    """
    items = np.array(sequence, np.int64)
    candidates = [repeat for period in _periods(items, least) for repeat in _with_period(items, period)]
    selected: list[Repeat] = []
    covered = np.zeros(len(items), bool)
    for repeat in sorted(candidates, key=lambda repeat: (-repeat.spared, repeat.period)):
        if not covered[repeat.start : repeat.end].any():
            covered[repeat.start : repeat.end] = True
            selected.append(repeat)
    return sorted(selected)


def _periods(items: Ints, least: int) -> list[int]:
    """Return the distances at which the most items recur."""
    order = np.argsort(items, kind="stable")
    distances = np.diff(order)[np.diff(items[order]) == 0]
    periods, counts = np.unique(distances[distances >= least], return_counts=True)
    return periods[np.argsort(-counts * periods, kind="stable")][:_MOST_PERIODS].tolist()


def _with_period(items: Ints, period: int) -> Iterator[Repeat]:
    same = np.concatenate(([False], items[:-period] == items[period:], [False]))
    changes = np.flatnonzero(np.diff(same))
    for start, end in zip(changes[::2].tolist(), changes[1::2].tolist(), strict=True):
        if times := (end - start) // period:
            yield Repeat(start, period, times + 1)
