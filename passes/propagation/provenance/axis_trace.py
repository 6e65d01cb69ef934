"""The trace of all axes through a module: their moves from value to value, in the order of the steps."""

from collections.abc import Iterator
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.axes import AxisRef
from sdy.dialect.attributes import PROPAGATION_EDGES, PropagationEdgesAttr
from sdy.ir.walking import operations
from sdy.passes.propagation.provenance.history import PropagationRun, history_of
from sdy.passes.propagation.provenance.present_names import PresentNames

Place = SSAValue | Operation
"""A value, or the return operation, which stands for the results of a function."""


class AxisMove(NamedTuple):
    """The move of an axis from the sharding of one place to the sharding of another."""

    step: int
    axis: AxisRef
    source: Place
    target: Place


def axis_trace(module: ModuleOp) -> list[AxisMove]:
    """Return the moves of all axes whose source and target are still in the module, ordered by step.

    The moves are those of the propagations in this process. For a module that another process propagated, they are read
    from the attributes of the option `debug-propagation-edge-sharding`.
    """
    runs = history_of(module).runs
    return sorted(_of_runs(module, runs) if runs else _of_records(module), key=lambda move: move.step)


def _of_runs(module: ModuleOp, runs: list[PropagationRun]) -> Iterator[AxisMove]:
    names = PresentNames(module)
    steps_before = 0
    for run in runs:
        returns = _returns(run)
        for node, arrivals in run.arrivals.items():
            target = names.value(run, node) or returns.get(node)
            for arrival in arrivals:
                source = names.value(run, arrival.source) or returns.get(arrival.source)
                if source is not None and target is not None:
                    yield AxisMove(steps_before + arrival.step, arrival.move.axis, source, target)
        steps_before += len(run.solution.changes)


def _returns(run: PropagationRun) -> dict[int, Operation]:
    """Return the return operation of each node that is a function result."""
    functions = zip(run.binding.functions, run.solution.snapshot.functions, strict=True)
    return {
        node: returned
        for func, function in functions
        if (returned := func.get_return_op()) is not None
        for node in function.results
    }


def _of_records(module: ModuleOp) -> Iterator[AxisMove]:
    for op in operations(module):
        record = op.attributes.get(PROPAGATION_EDGES)
        if not isinstance(record, PropagationEdgesAttr):
            continue
        ends = {"operand": op.operands, "result": op.results}
        for step in record.data:
            for edge in step.edges:
                source = ends[edge.source.node][edge.source.index]
                for target in edge.targets:
                    yield AxisMove(step.index, edge.axis, source, ends[target.node][target.index])
