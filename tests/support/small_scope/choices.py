"""A case as a sequence of choices: the same function makes all cases there are, or some at random."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from random import Random
from typing import TypeVar

T = TypeVar("T")


class NoCaseError(Exception):
    """The choices made so far lead to no case."""


class Choices:
    """Makes each choice by a number below the number of options."""

    def __init__(self, choose: Callable[[int], int]):
        self._choose = choose

    def of(self, options: Sequence[T]) -> T:
        """One of `options`. Raises NoCaseError where there are none."""
        if not options:
            raise NoCaseError
        return options[self._choose(len(options))]

    def below(self, end: int) -> int:
        """A number from 0 on that is below `end`."""
        return self.of(range(end))


def every(make: Callable[[Choices], T]) -> Iterator[T]:
    """All cases that `make` can make, those first whose last choices differ."""
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
    """Cases at random, without end; `seed` says which."""
    random = Random(seed)
    while True:
        try:
            yield make(Choices(random.randrange))
        except NoCaseError:
            continue
