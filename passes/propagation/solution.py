"""The result of propagation: a value that can be compared, explained, and written to the module."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from sdy.passes.propagation.snapshot import Snapshot
from sdy.passes.propagation.step import OperationKind, Outcome, StepInputs, Steps
from sdy.sharding import TensorSharding

SIGNATURE = -1
"""The operation number of the main function's signature, which ties returned values to function results."""

LogEntry = tuple[int, OperationKind, Outcome]
"""A visit that changed shardings: the operation's number, or `~n` for returned value n; its kind; the outcome."""


class Change(NamedTuple):
    """A visit that changed shardings, with everything needed to repeat its step."""

    operation: int
    """The number of the operation, or `SIGNATURE`."""
    tensors: Sequence[int]
    """The nodes of the operation's tensors."""
    kind: OperationKind
    inputs: StepInputs


@dataclass(frozen=True)
class Solution:
    """The sharding of each node of a snapshot, and the log of the steps; the log does not count in comparisons."""

    snapshot: Snapshot
    shardings: tuple[TensorSharding | None, ...]
    """Sharding by node."""
    erased: tuple[int, ...]
    """The erased operations, which were trivially dead, in order; nested operations before their parents."""
    initial: Mapping[int, TensorSharding]
    """The initial shardings of nodes."""
    steps: Steps = field(compare=False, repr=False)
    """The memoized steps that the log refers to."""
    log: tuple[LogEntry, ...] = field(compare=False, repr=False)
    """The visits that changed shardings, in order."""
    milestones: "tuple[tuple[int, Solution], ...]" = field(default=(), compare=False, repr=False)
    """Each user priority but the last, with the solution after its shardings were propagated."""

    @cached_property
    def changes(self) -> Sequence[Change]:
        """The visits that changed shardings, in order."""
        tensors, returns = self.snapshot.tensors, self.snapshot.returns
        return [
            Change(number, tensors[number], kind, inputs)
            if number >= 0
            else Change(SIGNATURE, returns[~number].tensors, kind, inputs)
            for number, kind, (_, _, inputs) in self.log
        ]
