"""What rounds over the same kinds of operations have in common, whatever shardings there are.

A snapshot that is solved many times goes through the same few rounds each time; what is found out here is then found
out once.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from sdy.passes.propagation.step import OperationKind, Outcomes, Steps, Strategy


class Round(NamedTuple):
    """What decides what the steps of a round do, beside the shardings."""

    strategy: Strategy
    stages: int
    """How many are open."""


class Rounds:
    """The rounds over operations of these kinds."""

    def __init__(self, steps: Steps, kinds: Sequence[OperationKind | None]) -> None:
        self.steps = steps
        self._kinds = kinds
        self._woken: dict[tuple[Round, Round], Sequence[int]] = {}
        self._outcomes: dict[Round, dict[OperationKind, Outcomes]] = defaultdict(dict)

    @cached_property
    def _numbers_of_kinds(self) -> Mapping[OperationKind, Sequence[int]]:
        found = defaultdict[OperationKind, list[int]](list)
        for number, kind in enumerate(self._kinds):
            if kind is not None:
                found[kind].append(number)
        return found

    def woken(self, before: Round, now: Round) -> Sequence[int]:
        """The operations that the round `now` is not like the one `before` to."""
        found = self._woken.get((before, now))
        if found is None:
            found = self._woken[before, now] = [
                number
                for kind, numbers in self._numbers_of_kinds.items()
                if now.strategy != before.strategy or kind.directions[now.stages] != kind.directions[before.stages]
                for number in numbers
            ]
        return found

    def outcomes(self, now: Round) -> dict[OperationKind, Outcomes]:
        """The steps taken in such a round, at each kind of operation that was met in one."""
        return self._outcomes[now]
