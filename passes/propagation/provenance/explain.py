"""Why a value has the sharding it has: the way of each axis back to the sharding that the user gave."""

import math
from collections.abc import Iterator, Mapping

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
from sdy.passes.propagation.provenance.history import Arrival, History, PropagationRun, history_of
from sdy.passes.propagation.provenance.missed import missed_axes
from sdy.passes.propagation.provenance.named_value import named_value
from sdy.passes.propagation.provenance.present_names import PresentNames

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
    history = history_of(module)
    if not history.runs:
        problem = "the module has not been propagated: run sdy.propagate(module), or a propagation pass, first"
        raise error(module, problem)
    if isinstance(value, str):
        value = named_value(module, value)
    names = PresentNames(module, value)
    if value not in names:
        raise error(value, "the value is not in the module")
    name = names.of_value(value)
    sharding = get_sharding(value)
    explainer = _Explainer(history, lineage_of(module).predecessors, names)
    chains = [
        chain
        for dimension, dim in enumerate(sharding.dims if sharding else ())
        for axis in dim.axes
        for chain in explainer.chains(value, dimension, axis)
    ]
    missed = () if chains else explainer.missed(value)
    return Explanation(name, sharding, tuple(chains), missed, history.choice)


class _Explainer:
    def __init__(self, history: History, predecessors: Mapping[SSAValue, SSAValue], names: PresentNames) -> None:
        self.history = history
        self.predecessors = predecessors
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

    def missed(self, value: SSAValue) -> tuple[Missed, ...]:
        """The axes that did not come to a value that has none."""
        run, node = self._find(value, len(self.history.runs))
        return missed_axes(run, node, self.names) if run else ()

    def _find(self, value: SSAValue | None, end: int) -> tuple[PropagationRun | None, int]:
        """The last of the first `end` propagations that met `value` or one whose place it took, and the node there."""
        while value is not None:
            for run in reversed(self.history.runs[:end]):
                node = run.binding.node_of(value)
                if node:
                    return run, node
            value = self.predecessors.get(value)
        return None, 0

    def _follow(self, run: PropagationRun, node: int, axis: AxisRef) -> tuple[tuple[Hop, ...], Origin]:
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
            earlier, earlier_node = self._find(run.binding.values[node], self.history.runs.index(run))
            if earlier is None or not earlier.pieces(earlier_node, axis):
                break
            run, node, step = earlier, earlier_node, math.inf
        return tuple(hops), self._origin(run, node)

    def _hop(self, run: PropagationRun, node: int, arrival: Arrival) -> Hop:
        operation = self.names.operation(run, arrival.change.operation, arrival.change.tensors)
        return Hop(
            target=self.names.of_node(run, node),
            source=self.names.of_node(run, arrival.source),
            operation=_CALL if isinstance(operation, FuncOp) else operation.name,
            factor=factor_name(arrival.move.factor),
            factor_size=arrival.change.kind.rule.factor_sizes[arrival.move.factor],
            where=location_of(operation),
        )

    def _origin(self, run: PropagationRun, node: int) -> Origin:
        """The sharding that the user gave to what `node` holds the sharding of."""
        value = run.binding.values[node]
        if value is not None and value in self.history.applied:
            constraint = self.history.applied[value]
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


def _later(value: SSAValue) -> Origin:
    """That `value`, or this part of its sharding, was not there yet when propagation ended."""
    op = defining_op(value)
    if isinstance(op, ReshardOp | CollectiveOp):
        return Origin(f"{op.name} was inserted after propagation, where two shardings differ", location_of(value))
    return Origin(f"set after propagation, at {op.name if op else 'an argument'}", location_of(value))
