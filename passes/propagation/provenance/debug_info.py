"""The debug options `debug-sharding-origins` and `debug-propagation-edge-sharding`, which annotate the module."""

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.passes.propagation.binding import Binding
from sdy.passes.propagation.moves import Move
from sdy.passes.propagation.provenance.edge_record import EdgeRecord
from sdy.passes.propagation.provenance.origin_record import OriginRecord
from sdy.passes.propagation.snapshot import Snapshot
from sdy.passes.propagation.solution import SIGNATURE, Change, Solution


class DebugInfo:
    """The records of the enabled debug options, created from the module before propagation.

    `add` and `add_all` record steps; `write` writes the attributes into the module.
    """

    def __init__(self, module: ModuleOp, sharding_origins: bool, propagation_edges: bool) -> None:
        self._origins = OriginRecord(module) if sharding_origins else None
        self._edges = EdgeRecord(module) if propagation_edges else None

    def add(
        self, operation: Operation, num_operands: int, tensors: Sequence[Sequence[SSAValue]], moves: Sequence[Move]
    ) -> None:
        """Record a step at `operation`.

        Args:
            operation: The operation; for a step between returned values and function results, the function.
            num_operands: The number of operands of its sharding rule.
            tensors: The values of each operand and result: the value itself, then the other members of its sharding
                group.
            moves: The moves of the step.
        """
        if self._edges:
            self._edges.add(operation, num_operands, moves)
        if self._origins:
            self._origins.add(tensors, moves)

    def add_all(self, solution: Solution, binding: Binding) -> None:
        """Record all steps of a propagation."""
        if self._edges or self._origins:
            for change in solution.changes:
                moves = solution.steps.moves(change.kind, change.inputs)
                self.add(*_site(solution.snapshot, binding, change), moves)

    def write(self) -> None:
        """Write the attributes into the module."""
        if self._origins:
            self._origins.write()
        if self._edges:
            self._edges.write()


def _site(snapshot: Snapshot, binding: Binding, change: Change) -> tuple[Operation, int, list[list[SSAValue]]]:
    nodes = change.tensors
    if change.operation == SIGNATURE:
        # A function result has no value: the returned value stands for it.
        nodes = (change.tensors[0],) * 2
        assert snapshot.main is not None
        operation: Operation = binding.functions[snapshot.main]
    else:
        operation = binding.operations[change.operation]
    values = [[value for member in snapshot.group(node) if (value := binding.values[member])] for node in nodes]
    return operation, len(change.kind.rule.operands), values
