"""What was done to the shardings of a module, kept with the module for as long as it lives."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.axes import AxisRef
from sdy.dialect.ops import DataFlowEdgeOp
from sdy.passes.propagation.fixed_point import Change, FixedPoint
from sdy.passes.propagation.graph import UNSHARDABLE
from sdy.passes.propagation.provenance.moves import Move
from sdy.passes.propagation.provenance.ways import Choice


class Arrival(NamedTuple):
    """An axis that came to a node in a step."""

    step: int
    change: Change
    move: Move

    @property
    def source(self) -> int:
        """The node that the axis came from."""
        return self.change.tensors[self.move.source]


@dataclass
class Run:
    """One propagation."""

    state: FixedPoint

    @cached_property
    def arrivals(self) -> dict[int, list[Arrival]]:
        """What came to each node, in order; found by taking all steps once more, when it is first asked for."""
        found: dict[int, list[Arrival]] = {}
        for node, arrival in self._arrivals():
            if node != UNSHARDABLE:
                found.setdefault(node, []).append(arrival)
        return found

    def _arrivals(self) -> Iterator[tuple[int, Arrival]]:
        for step, change in enumerate(self.state.changes):
            for move in self.state.steps.moves(change.kind, change.occasion):
                for node in self.state.graph.group(change.tensors[move.target]):
                    yield node, Arrival(step, change, move)

    @cached_property
    def values(self) -> dict[int, list[SSAValue]]:
        """The values whose sharding each node holds."""
        found: dict[int, list[SSAValue]] = {}
        graph = self.state.graph
        for value in (*graph.places, *graph.joined):
            if value is not None:
                found.setdefault(graph.nodes[id(value)], []).append(value)
        return found

    def pieces(self, node: int, axis: AxisRef, before: float = math.inf) -> list[AxisRef | Arrival]:
        """What `axis` was at `node` before a step: the given axis or the arrival that has all of it, or its parts."""
        given = self.state.graph.given.get(node)
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

    runs: list[Run] = field(default_factory=list[Run])
    """The propagations, in order."""
    choice: Choice | None = None
    """Which of several ways of propagation this one was, where there were several."""
    applied: dict[SSAValue, Operation] = field(default_factory=dict[SSAValue, Operation])
    """The constraint or manual computation that gave a value its sharding before propagation."""


_ATTRIBUTE = "_sharding_history"


def history_of(module: ModuleOp) -> History:
    """The history of `module`, empty to begin with.

    It is an attribute of the module in Python: a history leads to its module, so that no other place could let go.
    """
    return vars(module).setdefault(_ATTRIBUTE, History())
