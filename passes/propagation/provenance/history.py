"""History of a module, as side tables of the module and its clones.

The history has the propagations and the candidate layouts of the module. The lineage has the value that each value
replaced: passes that replace operations record it, so that explanations can trace values to the source.
"""

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
from sdy.passes.propagation.snapshot import UNSHARDABLE
from sdy.passes.propagation.solution import Change, Solution


@dataclass(frozen=True, slots=True)
class CandidateLayout:
    """The layout from propagating one form of a module, with the predicted costs of the partitioned program."""

    form: str
    """The form that was propagated, for example "as written"."""
    bytes_received: float
    """The bytes that a device receives on average, in all collectives of a run."""
    peak_bytes: int
    """The peak memory of a device in bytes."""


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """The selected layout and the rejected ones."""

    best: CandidateLayout
    others: tuple[CandidateLayout, ...]

    def __str__(self) -> str:
        clauses = [f"{self.best.form}: a device receives {self.best.bytes_received:,.0f} bytes"]
        clauses += [f"{layout.form} it would receive {layout.bytes_received:,.0f}" for layout in self.others]
        return "; ".join(clauses)


class Arrival(NamedTuple):
    """The arrival of an axis at a node in a step."""

    step: int
    change: Change
    move: Move

    @property
    def source(self) -> int:
        """The node that the axis came from."""
        return self.change.tensors[self.move.source]


@dataclass(frozen=True, eq=False)
class PropagationRun:
    """One propagation: its solution, and the binding of the solution's numbers to the module."""

    solution: Solution
    binding: Binding

    @cached_property
    def arrivals(self) -> dict[int, list[Arrival]]:
        """The arrivals at each node, in order; computed on first access by repeating all steps."""
        arrivals: dict[int, list[Arrival]] = {}
        for node, arrival in self._arrivals():
            if node != UNSHARDABLE:
                arrivals.setdefault(node, []).append(arrival)
        return arrivals

    def _arrivals(self) -> Iterator[tuple[int, Arrival]]:
        # Equal layers share the kinds of operations and the inputs of steps, so that few of the steps are repeated.
        repeated: dict[tuple[int, int], list[Move]] = {}
        for step, change in enumerate(self.solution.changes):
            key = id(change.kind), id(change.inputs)
            if key not in repeated:
                repeated[key] = self.solution.steps.moves(change.kind, change.inputs)
            for move in repeated[key]:
                for node in self.solution.snapshot.group(change.tensors[move.target]):
                    yield node, Arrival(step, change, move)

    @cached_property
    def values(self) -> dict[int, list[SSAValue]]:
        """The values whose sharding each node holds."""
        values: dict[int, list[SSAValue]] = {}
        binding = self.binding
        for value in (*binding.values, *binding.joined):
            if value is not None:
                values.setdefault(binding.nodes[id(value)], []).append(value)
        return values

    def pieces(self, node: int, axis: AxisRef, before: float = math.inf) -> list[AxisRef | Arrival]:
        """Return from where `node` got `axis`, before the step numbered `before`.

        Returns:
            The axis of the initial sharding, or the arrival, that contains `axis`; if none does, those that overlap
            it, major to minor.
        """
        initial = self.solution.initial.get(node)
        pieces: list[tuple[AxisRef, AxisRef | Arrival]]
        pieces = [(part, part) for dim in initial.dims for part in dim.axes] if initial else []
        pieces += [(arrival.move.axis, arrival) for arrival in self.arrivals.get(node, ()) if arrival.step < before]
        for part, piece in pieces:
            if part.contains(axis):
                return [piece]
        pieces.sort(key=lambda pair: pair[0].start)
        return [piece for part, piece in pieces if axis.overlaps(part)]

    def owner(self, node: int) -> SSAValue:
        """Return a value whose sharding `node` holds; for a data-flow edge, the owner of the edge."""
        values = self.values[node]
        return next((value for value in values if not isinstance(value.owner, DataFlowEdgeOp)), values[0])


@dataclass
class History:
    """The propagations of a module."""

    runs: list[PropagationRun] = field(default_factory=list[PropagationRun])
    """The propagations, in order."""
    choice: LayoutChoice | None = None
    """The layout that was selected, if there were several candidates."""
    applied: dict[SSAValue, Operation] = field(default_factory=dict[SSAValue, Operation])
    """The constraint or manual computation whose sharding was applied to a value before propagation."""

    def copied(self, copies: Copies) -> "History":
        """Return the history for a copy of the module."""
        runs = [PropagationRun(run.solution, run.binding.copied(copies)) for run in self.runs]
        return History(runs, self.choice, {copies.of(value): copies.of(op) for value, op in self.applied.items()})


def history_of(module: ModuleOp) -> History:
    """Return the history of `module`, creating an empty one on first access."""
    return companion(module, History)


@dataclass
class Lineage:
    """The predecessor of each value that replaced another."""

    predecessors: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def copied(self, copies: Copies) -> "Lineage":
        """Return the lineage of a copy of the module."""
        return Lineage({copies.of(new): copies.of(old) for new, old in self.predecessors.items()})


def succeed(module: ModuleOp, new: Operation, old: Operation) -> None:
    """Record that the results of `new` replace those of `old`."""
    companion(module, Lineage).predecessors.update(zip(new.results, old.results, strict=True))


def lineage_of(module: ModuleOp) -> Lineage:
    """Return the lineage of the values of `module`."""
    return companion(module, Lineage)
