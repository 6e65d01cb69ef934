"""Memoized results of propagation rounds that do not depend on the initial shardings.

A snapshot that is solved many times goes through the same few rounds each time.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from sdy.passes.propagation.step import OperationKind, Outcomes, Steps, Strategy


class Round(NamedTuple):
    """The parameters of a round, which determine its steps together with the shardings."""

    strategy: Strategy
    stages: int
    """The number of open stages."""


class Rounds:
    """The memoized results of the rounds over operations of these kinds."""

    def __init__(self, steps: Steps, kinds: Sequence[OperationKind | None]) -> None:
        self.steps = steps
        self._kinds = kinds
        self._woken: dict[tuple[Round, Round], Sequence[int]] = {}
        self._outcomes: dict[Round, dict[OperationKind, Outcomes]] = defaultdict(dict)

    @cached_property
    def _numbers_of_kinds(self) -> Mapping[OperationKind, Sequence[int]]:
        numbers = defaultdict[OperationKind, list[int]](list)
        for number, kind in enumerate(self._kinds):
            if kind is not None:
                numbers[kind].append(number)
        return numbers

    def woken(self, before: Round, now: Round) -> Sequence[int]:
        """Return the operations whose steps can set shardings in `now` and not in `before`."""
        woken = self._woken.get((before, now))
        if woken is None:
            woken = self._woken[before, now] = [
                number
                for kind, numbers in self._numbers_of_kinds.items()
                if any(kind.directions[now.stages])
                and (now.strategy != before.strategy or kind.directions[now.stages] != kind.directions[before.stages])
                for number in numbers
            ]
        return woken

    def outcomes(self, now: Round) -> dict[OperationKind, Outcomes]:
        """Return the memoized outcomes of steps in a round, by the kind of operation."""
        return self._outcomes[now]
