"""Why a value has the sharding it has: the way of each axis back to the sharding that the user gave."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, SSAValue

from sdy.axes import AxisRef
from sdy.diagnostics import error, location_of
from sdy.dialect.collectives import CollectiveOp
from sdy.dialect.interfaces import defining_op
from sdy.dialect.ops import ManualComputationOp, ReshardOp
from sdy.dialect.rule_syntax import factor_name
from sdy.dialect.shardings import get_sharding
from sdy.passes.common.lineage import lineage_of
from sdy.passes.propagation.provenance.explanation import Chain, Explanation, Hop, Missed, Origin
from sdy.passes.propagation.provenance.history import Arrival, PropagationRun, history_of
from sdy.passes.propagation.provenance.missed import missed_axes
from sdy.passes.propagation.provenance.named_value import named_value
from sdy.passes.propagation.provenance.present_names import PresentNames, function_around

_CALL = "func.call"
"""What takes an axis to a function's argument, or from its result."""


def explain(module: ModuleOp, value: SSAValue | str) -> Explanation:
    """Why `value` has the sharding it has, after `sdy.propagate(module)`; its `str()` is for people.

    A value may be given by its name in what is printed: `"%12"`, or `"@f:%12"` for one of the function @f.

    For each axis that splits a dimension, the steps that brought it, back to the argument, result, constraint, manual
    computation or operation that the user gave it to. Where several tensors of an operation had the axis, the step
    names the first. Of a value that no axis splits, the axes that its neighbours have along a factor of it, and what
    kept each from coming. Where the layout was chosen among several, what a device receives with each. Values are found
    again after the passes that follow propagation; names are those of the module as it is now.

    Raises DiagnosticError where the module has not been propagated, or the value is not in it.
    """
    if isinstance(value, str):
        _check_propagated(module)
        value = named_value(module, value)
    return Explainer(module, function_around(value)).explain(value)


def _check_propagated(module: ModuleOp) -> None:
    if not history_of(module).runs:
        problem = "the module has not been propagated: run sdy.propagate(module), or a propagation pass, first"
        raise error(module, problem)


@dataclass(frozen=True, slots=True)
class Stop:
    """An axis at a tensor on its way, and how it came there: None where it was there from the beginning."""

    run: PropagationRun
    node: int
    axis: AxisRef
    arrival: Arrival | None

    @property
    def key(self) -> tuple[int, int, AxisRef, int]:
        """What is the same of the same stop, cheaper to compare than all of it."""
        return id(self.run), self.node, self.axis, self.arrival.step if self.arrival else -1


class Explainer:
    """Explains the values of a propagated module, with names as `viewpoint` sees them.

    Made once where many values are asked about. Raises DiagnosticError where the module has not been propagated.
    """

    def __init__(self, module: ModuleOp, viewpoint: FuncOp | None) -> None:
        _check_propagated(module)
        self._history = history_of(module)
        self._predecessors = lineage_of(module).predecessors
        self.names = PresentNames(module, viewpoint)

    def explain(self, value: SSAValue) -> Explanation:
        """Why `value` has its sharding. Raises DiagnosticError where it is not in the module."""
        if value not in self.names:
            raise error(value, "the value is not in the module")
        sharding = get_sharding(value)
        chains = tuple(
            chain
            for dimension, dim in enumerate(sharding.dims if sharding else ())
            for axis in dim.axes
            for chain in self.chains(value, dimension, axis)
        )
        missed = () if chains else self.missed(value)
        return Explanation(self.names.of_value(value), sharding, chains, missed, self._history.choice)

    def chains(self, value: SSAValue, dimension: int, axis: AxisRef) -> Iterator[Chain]:
        """The way of `axis` to a dimension of `value`; those of its parts where they came one by one."""
        stops = self.stops(value, axis)
        for stop in stops:
            hops: list[Hop] = []
            part = stop.axis
            while (earlier := self.before(stop)) is not None:
                hops.append(self.hop(stop))
                stop = earlier
            yield Chain(dimension, part, tuple(hops), self.origin(stop))
        if not stops:
            yield Chain(dimension, axis, (), added_later(value))

    def missed(self, value: SSAValue) -> tuple[Missed, ...]:
        """The axes that did not come to a value that has none."""
        run, node = self._find(value, len(self._history.runs))
        return missed_axes(run, node, self.names) if run else ()

    def stops(self, value: SSAValue, axis: AxisRef) -> list[Stop]:
        """The last stop of `axis`, at `value`; those of its parts where they came one by one; none where propagation
        did not bring it."""
        run, node = self._find(value, len(self._history.runs))
        pieces = run.pieces(node, axis) if run else []
        return [self._stop(run, node, _part(axis, piece)) for piece in pieces if run is not None]

    def before(self, stop: Stop) -> Stop | None:
        """The stop from which the axis came to this one; None where it was there from the beginning."""
        if stop.arrival is None:
            return None
        return self._stop(stop.run, stop.arrival.source, stop.axis, stop.arrival.step)

    def _stop(self, run: PropagationRun, node: int, axis: AxisRef, before: float = math.inf) -> Stop:
        """How `axis`, or the first part of it that `node` has, was at `node` before a step."""
        while pieces := run.pieces(node, axis, before):
            piece = pieces[0]
            axis = _part(axis, piece)
            if isinstance(piece, Arrival):
                return Stop(run, node, axis, piece)
            # What was given to this propagation may come from one before it.
            earlier, earlier_node = self._find(run.binding.values[node], self._history.runs.index(run))
            if earlier is None or not earlier.pieces(earlier_node, axis):
                break
            run, node, before = earlier, earlier_node, math.inf
        return Stop(run, node, axis, None)

    def _find(self, value: SSAValue | None, end: int) -> tuple[PropagationRun | None, int]:
        """The last of the first `end` propagations that met `value` or one whose place it took, and the node there."""
        while value is not None:
            for run in reversed(self._history.runs[:end]):
                node = run.binding.node_of(value)
                if node:
                    return run, node
            value = self._predecessors.get(value)
        return None, 0

    def hop(self, stop: Stop) -> Hop:
        """The step that brought the axis to this stop, which is not its first."""
        arrival = stop.arrival
        assert arrival is not None
        operation = self.names.operation(stop.run, arrival.change.operation, arrival.change.tensors)
        return Hop(
            target=self.names.of_node(stop.run, stop.node),
            source=self.names.of_node(stop.run, arrival.source),
            operation=_CALL if isinstance(operation, FuncOp) else operation.name,
            factor=factor_name(arrival.move.factor),
            factor_size=arrival.change.kind.rule.factor_sizes[arrival.move.factor],
            where=location_of(operation),
        )

    def origin(self, stop: Stop) -> Origin:
        """The sharding that the user gave to the tensor of the first stop."""
        run, node = stop.run, stop.node
        value = run.binding.values[node]
        if value is not None and value in self._history.applied:
            constraint = self._history.applied[value]
            return Origin(f"asked for by {constraint.name}", location_of(constraint))
        for func, function in zip(run.binding.functions, run.solution.snapshot.functions, strict=True):
            for kind, nodes in (("argument", function.arguments), ("result", function.results)):
                if node in nodes:
                    text = f"given to {kind} {nodes.index(node)} of @{function.name}"
                    return Origin(text, location_of(value or func))
        owner = run.owner(node)
        op = defining_op(owner)
        text = f"given to {op.name}" if op else "given"
        if isinstance(op, ManualComputationOp):
            text += " in its in_shardings" if isinstance(owner, BlockArgument) else " in its out_shardings"
        return Origin(text, location_of(op))


def _part(axis: AxisRef, piece: AxisRef | Arrival) -> AxisRef:
    """What `piece` is of `axis`."""
    part = piece.move.axis if isinstance(piece, Arrival) else piece
    return axis if part.contains(axis) else part


def added_later(value: SSAValue) -> Origin:
    """That `value`, or this part of its sharding, was not there yet when propagation ended."""
    op = defining_op(value)
    if isinstance(op, ReshardOp | CollectiveOp):
        return Origin(f"{op.name} was inserted after propagation, where two shardings differ", location_of(value))
    return Origin(f"set after propagation, at {op.name if op else 'an argument'}", location_of(value))
