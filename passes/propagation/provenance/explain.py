"""Why a value has the sharding it has: the way of each axis back to the sharding that the user gave."""

import math
from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from sdy.axes import AxisRef
from sdy.diagnostics import error, location_of
from sdy.dialect.collectives import CollectiveOp
from sdy.dialect.interfaces import defining_op
from sdy.dialect.ops import DataFlowEdgeOp, ManualComputationOp, ReshardOp
from sdy.dialect.rule_syntax import factor_name
from sdy.dialect.shardings import get_sharding
from sdy.passes.common.lineage import predecessor
from sdy.passes.propagation.fixed_point import SIGNATURE
from sdy.passes.propagation.provenance.explanation import Chain, Explanation, Hop, Origin
from sdy.passes.propagation.provenance.history import Arrival, History, Run, history_of
from sdy.passes.propagation.provenance.present_names import PresentNames

_CALL = "func.call"
"""What takes an axis to a function's argument, or from its result."""


def explain(module: ModuleOp, value: SSAValue) -> Explanation:
    """Why `value` has the sharding it has, after `sdy.propagate(module)`; its `str()` is for people.

    For each axis that splits a dimension, the steps that brought it, back to the argument, result, constraint, manual
    computation or operation that the user gave it to. Where several tensors of an operation had the axis, the step
    names the first. Values are found again after the passes that follow propagation; names are those of the module as
    it is now.

    Raises DiagnosticError where the module has not been propagated, or the value is not in it or has no sharding.
    """
    history = history_of(module)
    if not history.runs:
        problem = "the module has not been propagated: run sdy.propagate(module), or a propagation pass, first"
        raise error(module, problem)
    names = PresentNames(module, value)
    if value not in names:
        raise error(value, "the value is not in the module")
    name = names.of_value(value)
    sharding = get_sharding(value)
    if sharding is None:
        raise error(value, f"{name} has no sharding")
    explainer = _Explainer(history, names)
    chains = [
        chain
        for dimension, dim in enumerate(sharding.dims)
        for axis in dim.axes
        for chain in explainer.chains(value, dimension, axis)
    ]
    return Explanation(name, sharding, tuple(chains))


class _Explainer:
    def __init__(self, history: History, names: PresentNames) -> None:
        self.history = history
        self.names = names

    def chains(self, value: SSAValue, dimension: int, axis: AxisRef) -> Iterator[Chain]:
        """The way of `axis` to a dimension of `value`; those of its parts where they came one by one."""
        run, node = self._find(value, len(self.history.runs))
        pieces = run.pieces(node, axis) if run else []
        for piece in pieces:
            assert run is not None
            part = _part(axis, piece)
            yield Chain(dimension, part, *self._follow(run, node, part))
        if not pieces:
            yield Chain(dimension, axis, (), _later(value))

    def _find(self, value: SSAValue | None, end: int) -> tuple[Run | None, int]:
        """The last of the first `end` propagations that met `value` or one whose place it took, and the node there."""
        while value is not None:
            for run in reversed(self.history.runs[:end]):
                node = run.state.graph.node_of(value)
                if node:
                    return run, node
            value = predecessor(value)
        return None, 0

    def _follow(self, run: Run, node: int, axis: AxisRef) -> tuple[tuple[Hop, ...], Origin]:
        """The steps that brought `axis` to `node`, the last one first, and where it began."""
        hops: list[Hop] = []
        step = math.inf
        while pieces := run.pieces(node, axis, step):
            piece = pieces[0]
            axis = _part(axis, piece)
            if isinstance(piece, Arrival):
                hops.append(self._hop(run, node, piece))
                node, step = piece.source, piece.step
                continue
            # What was given to this propagation may come from one before it.
            earlier, earlier_node = self._find(run.state.graph.places[node], self.history.runs.index(run))
            if earlier is None or not earlier.pieces(earlier_node, axis):
                break
            run, node, step = earlier, earlier_node, math.inf
        return tuple(hops), self._origin(run, node)

    def _hop(self, run: Run, node: int, arrival: Arrival) -> Hop:
        operation = self._operation(run, arrival)
        return Hop(
            target=self.names.of_node(run, node),
            source=self.names.of_node(run, arrival.source),
            operation=_CALL if isinstance(operation, FuncOp) else operation.name,
            factor=factor_name(arrival.move.factor),
            factor_size=arrival.change.kind.rule.factor_sizes[arrival.move.factor],
            where=location_of(operation),
        )

    def _operation(self, run: Run, arrival: Arrival) -> Operation:
        """The operation between source and target: for a data-flow edge, the one that owns the edge, as it is now."""
        graph, number = run.state.graph, arrival.change.operation
        operation = graph.main if number == SIGNATURE else graph.operations[number]
        assert operation is not None
        if isinstance(operation, FuncOp):
            return operation.get_return_op() or operation
        if isinstance(operation, DataFlowEdgeOp):
            node = arrival.change.tensors[-1]
            return defining_op(self.names.value(run, node) or run.owner(node)) or operation
        return operation

    def _origin(self, run: Run, node: int) -> Origin:
        """The sharding that the user gave to what `node` holds the sharding of."""
        graph = run.state.graph
        place = graph.places[node]
        if place is not None and place in self.history.applied:
            constraint = self.history.applied[place]
            return Origin(f"asked for by {constraint.name}", location_of(constraint))
        for func, signature in graph.signatures.items():
            for kind, nodes in (("argument", signature.arguments), ("result", signature.results)):
                if node in nodes:
                    text = f"given to {kind} {nodes.index(node)} of @{func.sym_name.data}"
                    return Origin(text, location_of(place or func))
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


def _later(value: SSAValue) -> Origin:
    """That `value`, or this part of its sharding, was not there yet when propagation ended."""
    op = defining_op(value)
    if isinstance(op, ReshardOp | CollectiveOp):
        return Origin(f"{op.name} was inserted after propagation, where two shardings differ", location_of(value))
    return Origin(f"set after propagation, at {op.name if op else 'an argument'}", location_of(value))
