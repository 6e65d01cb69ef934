"""Where a sequence repeats itself at once, as the layers of a model do."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sdy.box import Ints

_MOST_PERIODS = 32
"""So many lengths of what may repeat itself are tried: those at which most items come again."""


class Repeat(NamedTuple):
    """From `start` on, `period` items stand so many `times`, one after the other."""

    start: int
    period: int
    times: int

    @property
    def end(self) -> int:
        """The index after the last of them."""
        return self.start + self.period * self.times

    @property
    def spared(self) -> int:
        """How many items are the same as others before."""
        return self.period * (self.times - 1)


def repeats(sequence: Sequence[int], least: int = 4) -> list[Repeat]:
    """What repeats itself in a sequence, in order, each at least `least` items long; where repeats overlap, the one
    that spares more, of equal ones the one with the shorter period."""
    items = np.array(sequence, np.int64)
    found = [repeat for period in _periods(items, least) for repeat in _with_period(items, period)]
    taken: list[Repeat] = []
    covered = np.zeros(len(items), bool)
    for repeat in sorted(found, key=lambda repeat: (-repeat.spared, repeat.period)):
        if not covered[repeat.start : repeat.end].any():
            covered[repeat.start : repeat.end] = True
            taken.append(repeat)
    return sorted(taken)


def _periods(items: Ints, least: int) -> list[int]:
    """The distances after which most items come again."""
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
