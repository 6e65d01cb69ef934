"""Explain the sharding of a value: trace each axis back to the user's sharding that it comes from."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

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
from sdy.passes.common.argument_names import given_name
from sdy.passes.common.call_graph import main_function
from sdy.passes.propagation.provenance.explanation import Chain, Explanation, Hop, Missed, Origin
from sdy.passes.propagation.provenance.history import Arrival, PropagationRun, history_of, lineage_of
from sdy.passes.propagation.provenance.missed import missed_axes
from sdy.passes.propagation.provenance.named_value import named_value
from sdy.passes.propagation.provenance.present_names import PresentNames, function_around
from sdy.passes.propagation.provenance.source_line import SourceLine

_CALL = "func.call"
"""The operation that moves axes between a call and a function's arguments and results."""


def explain(module: ModuleOp, value: SSAValue | str) -> Explanation:
    """Explain why `value`, or the value of this name or source line, has its sharding; see `sdy.explain`.

    Raises:
        DiagnosticError: The module has not been propagated, or the value is not in it.
    """
    if isinstance(value, str):
        _check_propagated(module)
        if line := SourceLine.parse(value):
            return _explain_line(module, line)
        value = named_value(module, value)
    return Explainer(module, function_around(value)).explain(value)


def _explain_line(module: ModuleOp, line: SourceLine) -> Explanation:
    """Explain the tensors of a source line: the first, and with it the others."""
    explainer = Explainer(module, main_function(module))
    first, *others = [
        replace(explainer.explain(value), description=_description(value)) for value in line.tensors(module)
    ]
    return replace(first, others=tuple(others))


def _description(value: SSAValue) -> str:
    """Return the name of an argument, or the operation of a result and its location."""
    if isinstance(value, BlockArgument):
        return given_name(value)
    op = defining_op(value)
    where = location_of(op)
    return "" if op is None else f"{op.name} at {where}" if where else op.name


def _check_propagated(module: ModuleOp) -> None:
    if not history_of(module).runs:
        problem = "the module has not been propagated: run sdy.propagate(module), or a propagation pass, first"
        raise error(module, problem)


@dataclass(frozen=True, slots=True)
class Stop:
    """An axis at a node along its trace, and its arrival there: None if the user's sharding has it there."""

    run: PropagationRun
    node: int
    axis: AxisRef
    arrival: Arrival | None

    @property
    def key(self) -> tuple[int, int, AxisRef, int]:
        """An identity that is cheaper to hash and compare than the fields."""
        return id(self.run), self.node, self.axis, self.arrival.step if self.arrival else -1


class Explainer:
    """Explains the values of a propagated module; create it once to explain many values.

    Args:
        module: The propagated module.
        viewpoint: The function whose values are named without its prefix; None prefixes all names.

    Raises:
        DiagnosticError: The module has not been propagated.
    """

    def __init__(self, module: ModuleOp, viewpoint: FuncOp | None) -> None:
        _check_propagated(module)
        self._history = history_of(module)
        self._predecessors = lineage_of(module).predecessors
        self.names = PresentNames(module, viewpoint)

    def explain(self, value: SSAValue) -> Explanation:
        """Explain why `value` has its sharding.

        Raises:
            DiagnosticError: The value is not in the module.
        """
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
        description = given_name(value) if isinstance(value, BlockArgument) else ""
        return Explanation(self.names.of_value(value), sharding, chains, missed, self._history.choice, description)

    def chains(self, value: SSAValue, dimension: int, axis: AxisRef) -> Iterator[Chain]:
        """Yield the trace of `axis` to a dimension of `value`; one for each sub-axis if these arrived separately."""
        stops = self.stops(value, axis)
        for stop in stops:
            hops: list[Hop] = []
            arrived = stop.axis
            while (earlier := self.before(stop)) is not None:
                hops.append(self.hop(stop))
                stop = earlier
            yield Chain(dimension, arrived, tuple(hops), self.origin(stop))
        if not stops:
            yield Chain(dimension, axis, (), added_later(value))

    def missed(self, value: SSAValue) -> tuple[Missed, ...]:
        """Return the axes that propagation could have moved to `value`, which has none, and their conflicts."""
        run, node = self._find(value, len(self._history.runs))
        return missed_axes(run, node, self.names) if run else ()

    def stops(self, value: SSAValue, axis: AxisRef) -> list[Stop]:
        """Return the last stop of `axis`, at `value`.

        Returns one stop for each sub-axis if these arrived separately, and none if propagation did not move the axis
        there.
        """
        run, node = self._find(value, len(self._history.runs))
        pieces = run.pieces(node, axis) if run else []
        return [self._stop(run, node, _intersection(axis, piece)) for piece in pieces if run is not None]

    def before(self, stop: Stop) -> Stop | None:
        """Return the previous stop on the trace; None if the user's sharding has the axis at this stop."""
        if stop.arrival is None:
            return None
        return self._stop(stop.run, stop.arrival.source, stop.axis, stop.arrival.step)

    def _stop(self, run: PropagationRun, node: int, axis: AxisRef, before: float = math.inf) -> Stop:
        """Return the stop of `axis`, or of the first sub-axis of it that `node` has, at `node` before a step."""
        while pieces := run.pieces(node, axis, before):
            piece = pieces[0]
            axis = _intersection(axis, piece)
            if isinstance(piece, Arrival):
                return Stop(run, node, axis, piece)
            # An initial sharding of this propagation may be the result of an earlier one.
            earlier, earlier_node = self._find(run.binding.values[node], self._history.runs.index(run))
            if earlier is None or not earlier.pieces(earlier_node, axis):
                break
            run, node, before = earlier, earlier_node, math.inf
        return Stop(run, node, axis, None)

    def _find(self, value: SSAValue | None, end: int) -> tuple[PropagationRun | None, int]:
        """Return the last of the first `end` propagations that saw `value` or a value it replaced, and its node."""
        while value is not None:
            for run in reversed(self._history.runs[:end]):
                node = run.binding.node_of(value)
                if node:
                    return run, node
            value = self._predecessors.get(value)
        return None, 0

    def hop(self, stop: Stop) -> Hop:
        """Return the step that moved the axis to `stop`, which must not be the first."""
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
        """Return the user's sharding at the first stop of a trace."""
        run, node = stop.run, stop.node
        value = run.binding.values[node]
        if value is not None and value in self._history.applied:
            constraint = self._history.applied[value]
            return Origin(f"requested by {constraint.name}", location_of(constraint))
        for func, function in zip(run.binding.functions, run.solution.snapshot.functions, strict=True):
            for kind, nodes in (("argument", function.arguments), ("result", function.results)):
                if node in nodes:
                    name = given_name(value) if isinstance(value, BlockArgument) else ""
                    which = f"({name})" if name else f"of @{function.name}"
                    return Origin(f"given to {kind} {nodes.index(node)} {which}", location_of(value or func))
        owner = run.owner(node)
        op = defining_op(owner)
        text = f"given to {op.name}" if op else "given"
        if isinstance(op, ManualComputationOp):
            text += " in its in_shardings" if isinstance(owner, BlockArgument) else " in its out_shardings"
        return Origin(text, location_of(op))


def _intersection(axis: AxisRef, piece: AxisRef | Arrival) -> AxisRef:
    """Return the overlap of `axis` and `piece`, where one contains the other."""
    part = piece.move.axis if isinstance(piece, Arrival) else piece
    return axis if part.contains(axis) else part


def added_later(value: SSAValue) -> Origin:
    """Return the origin of an axis that a pass after propagation added to `value`."""
    op = defining_op(value)
    if isinstance(op, ReshardOp | CollectiveOp):
        return Origin(f"{op.name} was inserted after propagation, where two shardings differ", location_of(value))
    return Origin(f"set after propagation, at {op.name if op else 'an argument'}", location_of(value))
