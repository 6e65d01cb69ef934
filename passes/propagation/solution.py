"""What solving a snapshot comes to: a value that can be compared, explained, and applied to the module."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from sdy.passes.propagation.snapshot import Snapshot
from sdy.passes.propagation.step import Occasion, OperationKind, Outcome, Steps
from sdy.sharding import TensorSharding

SIGNATURE = -1
"""In place of an operation's number: the main function's signature, which ties returned values to results."""

LogEntry = tuple[int, OperationKind, Outcome]
"""A visit that set something: of an operation, by its number, or of the return of value n as `~n`."""


class Change(NamedTuple):
    """A visit that set shardings: all that it takes to take its step once more."""

    operation: int
    """The number of the operation, or `SIGNATURE`."""
    tensors: Sequence[int]
    """The nodes of its tensors."""
    kind: OperationKind
    occasion: Occasion


@dataclass(frozen=True)
class Solution:
    """The sharding of each node of a snapshot, and how it came to be; equal to one with the same shardings."""

    snapshot: Snapshot
    shardings: tuple[TensorSharding | None, ...]
    """Sharding by node."""
    erased: tuple[int, ...]
    """The operations that are trivially dead and erased, in order; those in another one before it."""
    given: Mapping[int, TensorSharding]
    """The shardings that nodes had to begin with."""
    steps: Steps = field(compare=False, repr=False)
    """What the log refers to."""
    log: tuple[LogEntry, ...] = field(compare=False, repr=False)
    """The visits that set something, in order."""
    milestones: "tuple[tuple[int, Solution], ...]" = field(default=(), compare=False, repr=False)
    """What it was when the shardings of each priority but the last had been propagated, by priority."""

    @cached_property
    def changes(self) -> Sequence[Change]:
        """The visits that set something, in order."""
        tensors, returns = self.snapshot.tensors, self.snapshot.returns
        return [
            Change(number, tensors[number], kind, occasion)
            if number >= 0
            else Change(SIGNATURE, returns[~number].tensors, kind, occasion)
            for number, kind, (_, _, occasion) in self.log
        ]
