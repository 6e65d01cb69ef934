"""What was done to the shardings of a module: kept with it and its copies, for as long as they live."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.axes import AxisRef
from sdy.dialect.ops import DataFlowEdgeOp
from sdy.ir.companions import Copies, companion
from sdy.passes.propagation.binding import Binding
from sdy.passes.propagation.moves import Move
from sdy.passes.propagation.provenance.ways import Choice
from sdy.passes.propagation.snapshot import UNSHARDABLE
from sdy.passes.propagation.solution import Change, Solution


class Arrival(NamedTuple):
    """An axis that came to a node in a step."""

    step: int
    change: Change
    move: Move

    @property
    def source(self) -> int:
        """The node that the axis came from."""
        return self.change.tensors[self.move.source]


@dataclass(frozen=True, eq=False)
class PropagationRun:
    """One propagation: its solution, and what the numbers in it stand for in the module."""

    solution: Solution
    binding: Binding

    @cached_property
    def arrivals(self) -> dict[int, list[Arrival]]:
        """What came to each node, in order; found by taking all steps once more, when it is first asked for."""
        found: dict[int, list[Arrival]] = {}
        for node, arrival in self._arrivals():
            if node != UNSHARDABLE:
                found.setdefault(node, []).append(arrival)
        return found

    def _arrivals(self) -> Iterator[tuple[int, Arrival]]:
        for step, change in enumerate(self.solution.changes):
            for move in self.solution.steps.moves(change.kind, change.occasion):
                for node in self.solution.snapshot.group(change.tensors[move.target]):
                    yield node, Arrival(step, change, move)

    @cached_property
    def values(self) -> dict[int, list[SSAValue]]:
        """The values whose sharding each node holds."""
        found: dict[int, list[SSAValue]] = {}
        binding = self.binding
        for value in (*binding.values, *binding.joined):
            if value is not None:
                found.setdefault(binding.nodes[id(value)], []).append(value)
        return found

    def pieces(self, node: int, axis: AxisRef, before: float = math.inf) -> list[AxisRef | Arrival]:
        """What `axis` was at `node` before a step: the given axis or the arrival that has all of it, or its parts."""
        given = self.solution.given.get(node)
        found: list[tuple[AxisRef, AxisRef | Arrival]]
        found = [(part, part) for dim in given.dims for part in dim.axes] if given else []
        found += [(arrival.move.axis, arrival) for arrival in self.arrivals.get(node, ()) if arrival.step < before]
        for part, piece in found:
            if part.contains(axis):
                return [piece]
        found.sort(key=lambda pair: pair[0].start)
        return [piece for part, piece in found if axis.overlaps(part)]

    def owner(self, node: int) -> SSAValue:
        """A value whose sharding `node` holds: the owner of the data-flow edge where it is one."""
        values = self.values[node]
        return next((value for value in values if not isinstance(value.owner, DataFlowEdgeOp)), values[0])


@dataclass
class History:
    """What was done to a module."""

    runs: list[PropagationRun] = field(default_factory=list[PropagationRun])
    """The propagations, in order."""
    choice: Choice | None = None
    """Which of several ways of propagation this one was, where there were several."""
    applied: dict[SSAValue, Operation] = field(default_factory=dict[SSAValue, Operation])
    """The constraint or manual computation that gave a value its sharding before propagation."""

    def copied(self, copies: Copies) -> "History":
        """The history of a copy of the module."""
        runs = [PropagationRun(run.solution, run.binding.copied(copies)) for run in self.runs]
        return History(runs, self.choice, {copies.of(value): copies.of(op) for value, op in self.applied.items()})


def history_of(module: ModuleOp) -> History:
    """The history of `module`, empty to begin with."""
    return companion(module, History)
