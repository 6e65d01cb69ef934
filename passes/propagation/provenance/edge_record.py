"""The option `debug-propagation-edge-sharding`: annotate each operation with the steps that moved axes through it.

    %0 = stablehlo.add %arg0, %arg1 {sdy.propagation_edges = #sdy.propagation_edges<[
           {step-1 = [{"a" = operand-0 -> [operand-1, result-0]}]}]>}

Moves between returned values and function results are recorded on the function's first result, as in Shardy, which
visits each result as if it were the only one.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from sdy.axes import AxisRef
from sdy.dialect.attributes import PROPAGATION_EDGES, PropagationEdgesAttr
from sdy.dialect.propagation_edges import AxisEdge, EdgeValue, PropagationStep
from sdy.ir.walking import operations
from sdy.passes.common.argument_names import set_result_attribute
from sdy.passes.propagation.moves import Move


class _Edge(NamedTuple):
    axis: AxisRef
    source: EdgeValue
    target: EdgeValue


class EdgeRecord:
    """The moves through each operation of a module; step numbers continue those recorded in the module."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.next_step = 1 + max(map(_last_step, operations(module)))
        self.first_steps: dict[Operation, dict[_Edge, int]] = defaultdict(dict[_Edge, int])
        """The first step of each edge of each operation."""

    def add(self, operation: Operation, num_operands: int, moves: Iterable[Move]) -> None:
        """Record a step at `operation`."""

        def value(position: int) -> EdgeValue:
            if position < num_operands:
                return EdgeValue("operand", position)
            return EdgeValue("result", position - num_operands)

        for move in moves:
            edge = _Edge(move.axis, value(move.source), value(move.target))
            self.first_steps[operation].setdefault(edge, self.next_step)
        self.next_step += 1

    def write(self) -> None:
        """Write the `sdy.propagation_edges` attributes into the module."""
        for operation in operations(self.module):
            if operation not in self.first_steps:
                continue
            attribute = PropagationEdgesAttr(_by_step(self.first_steps[operation]))
            if isinstance(operation, FuncOp):
                set_result_attribute(operation, 0, PROPAGATION_EDGES, attribute)
            else:
                operation.attributes[PROPAGATION_EDGES] = attribute


def _last_step(operation: Operation) -> int:
    attribute = operation.attributes.get(PROPAGATION_EDGES)
    steps: Sequence[PropagationStep] = attribute.data if isinstance(attribute, PropagationEdgesAttr) else ()
    return max((step.index for step in steps), default=-1)


def _by_step(first_steps: dict[_Edge, int]) -> tuple[PropagationStep, ...]:
    steps: dict[int, dict[tuple[AxisRef, EdgeValue], list[EdgeValue]]] = {}
    for edge, step in first_steps.items():
        steps.setdefault(step, {}).setdefault((edge.axis, edge.source), []).append(edge.target)
    return tuple(
        PropagationStep(
            step,
            tuple(
                AxisEdge(axis, source, tuple(sorted(edges[axis, source], key=_value_key)))
                for axis, source in sorted(edges, key=lambda edge: (*_axis_key(edge[0]), *_value_key(edge[1])))
            ),
        )
        for step, edges in sorted(steps.items())
    )


def _axis_key(axis: AxisRef) -> tuple[str, int, float]:
    """Sort key: axes by name, sub-axes of one axis from major to minor, then by size."""
    return axis.name, axis.start, math.inf if axis.size is None else axis.size


def _value_key(value: EdgeValue) -> tuple[str, int]:
    """Sort key: operands before results."""
    return value.node, value.index
