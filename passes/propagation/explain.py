"""Why a value has the sharding it has: the way of each axis back to the sharding that the user gave."""

import math
from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from sdy.axes import AxisRef
from sdy.diagnostics import error, location_of
from sdy.dialect.interfaces import defining_op
from sdy.dialect.ops import DataFlowEdgeOp, ManualComputationOp
from sdy.dialect.rule_syntax import factor_name
from sdy.dialect.shardings import get_sharding
from sdy.passes.common.lineage import predecessor
from sdy.passes.propagation.explanation import Chain, Explanation, Hop, Origin
from sdy.passes.propagation.fixed_point import SIGNATURE
from sdy.passes.propagation.history import Arrival, Run, history_of
from sdy.text.printing.names import Names

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
    return _Explainer(module).explain(value)


class _Explainer:
    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.history = history_of(module)
        self.names = Names(generic=False)
        self.names.add(module)
        self.function: FuncOp | None = None
        """The function of the value that is explained; values of others are named with theirs."""
        self._present: dict[int, dict[int, SSAValue]] = {}

    def explain(self, value: SSAValue) -> Explanation:
        if not self.history.runs:
            raise error(
                self.module,
                "the module has not been propagated: run sdy.propagate(module), or a propagation pass, first",
            )
        if value not in self.names.values:
            raise error(value, "the value is not in the module")
        self.function = _function_of(value)
        name = self._name_of_value(value)
        sharding = get_sharding(value)
        if sharding is None:
            raise error(value, f"{name} has no sharding")
        chains = [
            chain
            for index, dim in enumerate(sharding.dims)
            for axis in dim.axes
            for chain in self._chains(value, index, axis)
        ]
        return Explanation(name, sharding, tuple(chains))

    def _chains(self, value: SSAValue, dimension: int, axis: AxisRef) -> Iterator[Chain]:
        """The way of `axis` to a dimension of `value`; those of its parts where they came one by one."""
        run, node = self._find(value, len(self.history.runs))
        pieces = _pieces(run, node, axis, math.inf) if run else []
        if run is None or not pieces:
            op = defining_op(value)
            yield Chain(dimension, axis, (), Origin(f"set after propagation, at {op.name if op else 'nothing'}", None))
            return
        for piece in pieces:
            part = _part(axis, piece)
            yield Chain(dimension, part, *self._follow(run, node, part))

    def _find(self, value: SSAValue | None, end: int) -> tuple[Run | None, int]:
        """The last of the first `end` propagations that met `value` or one whose place it took, and the node there."""
        while value is not None:
            for run in reversed(self.history.runs[:end]):
                node = run.state.graph.nodes.get(value)
                if node:
                    return run, node
            value = predecessor(value)
        return None, 0

    def _follow(self, run: Run, node: int, axis: AxisRef) -> tuple[tuple[Hop, ...], Origin]:
        """The steps that brought `axis` to `node`, the last one first, and where it began."""
        hops: list[Hop] = []
        step = math.inf
        while pieces := _pieces(run, node, axis, step):
            piece = pieces[0]
            axis = _part(axis, piece)
            if isinstance(piece, Arrival):
                hops.append(self._hop(run, node, piece))
                node, step = piece.source, piece.step
                continue
            earlier, earlier_node = self._find(run.state.graph.places[node], self.history.runs.index(run))
            if earlier is None or not _pieces(earlier, earlier_node, axis, math.inf):
                break
            run, node, step = earlier, earlier_node, math.inf
        return tuple(hops), self._origin(run, node)

    def _hop(self, run: Run, node: int, arrival: Arrival) -> Hop:
        operation = self._operation(run, arrival)
        return Hop(
            target=self._name(run, node),
            source=self._name(run, arrival.source),
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
            value = self._values_of_nodes(run).get(node) or _owner_value(run, node)
            return defining_op(value) or operation
        return operation

    def _name(self, run: Run, node: int) -> str:
        """The name of what `node` holds the sharding of, as the module is now."""
        value = self._values_of_nodes(run).get(node)
        if value is not None:
            return self._name_of_value(value)
        for func, signature in run.state.graph.signatures.items():
            if node in signature.results:
                return f"result {signature.results.index(node)} of @{func.sym_name.data}"
        return f"a value of {_owner(run, node).name}"

    def _name_of_value(self, value: SSAValue) -> str:
        name, function = f"%{self.names.values[value]}", _function_of(value)
        return name if function is None or function is self.function else f"@{function.sym_name.data}:{name}"

    def _values_of_nodes(self, run: Run) -> dict[int, SSAValue]:
        """The first of the values in the module now whose sharding each node holds."""
        found = self._present.setdefault(id(run), {})
        for value in () if found else self.names.values:
            at: SSAValue | None = value
            while at is not None:
                if node := run.state.graph.nodes.get(at):
                    found.setdefault(node, value)
                at = predecessor(at)
        return found

    def _origin(self, run: Run, node: int) -> Origin:
        """The sharding that the user gave to what `node` holds the sharding of."""
        for func, signature in run.state.graph.signatures.items():
            for kind, nodes in signature._asdict().items():
                if node in nodes:
                    place = run.state.graph.places[node]
                    text = f"given to {kind.removesuffix('s')} {nodes.index(node)} of @{func.sym_name.data}"
                    return self._applied(place) or Origin(text, location_of(place or func))
        owner = _owner(run, node)
        place = run.state.graph.places[node]
        if isinstance(owner, ManualComputationOp):
            value = _owner_value(run, node)
            kind = "in_shardings" if isinstance(value, BlockArgument) else "out_shardings"
            return Origin(f"given to {owner.name} in its {kind}", location_of(owner))
        return self._applied(place) or Origin(f"given to {owner.name}", location_of(owner))

    def _applied(self, place: SSAValue | None) -> Origin | None:
        """The constraint or manual computation that gave `place` its sharding, if any."""
        constraint = self.history.applied.get(place) if place is not None else None
        if constraint is None:
            return None
        return Origin(f"given to what goes into {constraint.name}", location_of(constraint))


def _pieces(run: Run, node: int, axis: AxisRef, step: float) -> list[AxisRef | Arrival]:
    """What `axis` was made of at `node` before `step`: one given axis or arrival that has all of it, or its parts."""
    given = run.state.given[node]
    axes = [axis for dim in given.dims for axis in dim.axes] if given else []
    arrivals = [arrival for arrival in run.arrivals.get(node, ()) if arrival.step < step]
    found: list[tuple[AxisRef, AxisRef | Arrival]] = [(axis, axis) for axis in axes]
    found += [(arrival.move.axis, arrival) for arrival in arrivals]
    whole = [piece for part, piece in found if part.contains(axis)]
    return whole[:1] or [piece for part, piece in sorted(found, key=lambda pair: pair[0].start) if axis.overlaps(part)]


def _part(axis: AxisRef, piece: AxisRef | Arrival) -> AxisRef:
    """What `piece` is of `axis`."""
    part = piece.move.axis if isinstance(piece, Arrival) else piece
    return axis if part.contains(axis) else part


def _owner(run: Run, node: int) -> Operation:
    """The operation that defines what `node` holds the sharding of."""
    op = defining_op(_owner_value(run, node))
    assert op is not None
    return op


def _owner_value(run: Run, node: int) -> SSAValue:
    """A value whose sharding `node` holds, and that is not just the edge which holds it."""
    values = run.values[node]
    return next((value for value in values if not isinstance(value.owner, DataFlowEdgeOp)), values[0])


def _function_of(value: SSAValue) -> FuncOp | None:
    op = defining_op(value)
    while op is not None and not isinstance(op, FuncOp):
        op = op.parent_op()
    return op
