"""What the options `debug-sharding-origins` and `debug-propagation-edge-sharding` write into a module.

Steps are told one by one, by who takes them; all is written in the end.
"""

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
    """The records that are asked for, begun with the module as it is before anything is propagated."""

    def __init__(self, module: ModuleOp, sharding_origins: bool, propagation_edges: bool) -> None:
        self._origins = OriginRecord(module) if sharding_origins else None
        self._edges = EdgeRecord(module) if propagation_edges else None

    def add(
        self, operation: Operation, num_operands: int, tensors: Sequence[Sequence[SSAValue]], moves: Sequence[Move]
    ) -> None:
        """Add a step at `operation`, or at the function whose results got what is returned.

        `tensors` are its operands and results, each a value and then those that are always sharded alike, if any.
        """
        if self._edges:
            self._edges.add(operation, num_operands, moves)
        if self._origins:
            self._origins.add(tensors, moves)

    def add_all(self, solution: Solution, binding: Binding) -> None:
        """Add all steps that propagation took."""
        if self._edges or self._origins:
            for change in solution.changes:
                moves = solution.steps.moves(change.kind, change.occasion)
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
        # A function's result has no value: what is returned stands for it.
        nodes = (change.tensors[0],) * 2
        assert snapshot.main is not None
        operation: Operation = binding.functions[snapshot.main]
    else:
        operation = binding.operations[change.operation]
    values = [[value for member in snapshot.group(node) if (value := binding.values[member])] for node in nodes]
    return operation, len(change.kind.rule.operands), values
