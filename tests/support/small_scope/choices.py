"""Nondeterministic choices: one function generates all cases, or random ones."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from random import Random
from typing import TypeVar

T = TypeVar("T")


class NoCaseError(Exception):
    """The choices made so far lead to no case."""


class Choices:
    """Source of choices, which picks indices below the number of options."""

    def __init__(self, choose: Callable[[int], int]):
        self._choose = choose

    def of(self, options: Sequence[T]) -> T:
        """Return one of `options`. Raises NoCaseError if empty."""
        if not options:
            raise NoCaseError
        return options[self._choose(len(options))]

    def below(self, end: int) -> int:
        """Return an integer in [0, end)."""
        return self.of(range(end))


def every(make: Callable[[Choices], T]) -> Iterator[T]:
    """Enumerate all cases that `make` can return, varying the last choice fastest."""
    taken: list[int] = []
    counts: list[int] = []

    def choose(count: int) -> int:
        if len(counts) == len(taken):
            taken.append(0)
        counts.append(count)
        return taken[len(counts) - 1]

    while True:
        counts.clear()
        with suppress(NoCaseError):
            yield make(Choices(choose))
        while taken and taken[-1] + 1 == counts[len(taken) - 1]:
            taken.pop()
        if not taken:
            return
        taken[-1] += 1


def some(make: Callable[[Choices], T], seed: int | str) -> Iterator[T]:
    """Yield random cases of `seed`, without end."""
    random = Random(seed)
    while True:
        try:
            yield make(Choices(random.randrange))
        except NoCaseError:
            continue
