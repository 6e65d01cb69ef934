"""Liveness: the number of live values of each node of a folded program over time."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from sdy.box import Ints
from sdy.passes.common.call_graph import main_function
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.passes.spmd.costs.host_memory import host_values
from sdy.passes.spmd.costs.sizes import value_bytes


@dataclass(frozen=True, eq=False)
class LiveCounts:
    """Numbers of live values of each node at some times, in program order."""

    counts: Ints
    """The number of live values: shape (times, nodes)."""
    times: Ints
    """The position in the program of the operation that runs at each time."""


def peak_candidates(
    module: ModuleOp, num_nodes: int, node_of: Callable[[SSAValue], int], places: Mapping[int, int]
) -> LiveCounts:
    """Return the live values at each time that can be the memory peak.

    Liveness is that of `peak_bytes`: arguments and results of the main function are always live, other values from
    their definition to their last use, and fused values and values on the host never. For each class of equal
    operations, the result has the time at which the unpartitioned live values take the most bytes.

    Args:
        module: The module.
        num_nodes: The number of nodes.
        node_of: Returns the node of a value.
        places: The positions of the operations that run, by their `id`; others are skipped.
    """
    return _Liveness(num_nodes, node_of, places, host_values(module)).of(main_function(module).body.block)


class _Liveness:
    def __init__(
        self, num_nodes: int, node_of: Callable[[SSAValue], int], places: Mapping[int, int], host: Set[SSAValue]
    ) -> None:
        self._host = host
        self._node_of = node_of
        self._places = places
        self._fused = FusedValues()
        self._alive = np.zeros(num_nodes, np.int64)
        self._bytes = 0
        self._most: dict[tuple[int, ...], tuple[int, Ints, int]] = {}

    def of(self, block: Block) -> LiveCounts:
        returned = dict.fromkeys(block.last_op.operands if block.last_op is not None else ())
        for value in dict.fromkeys((*block.args, *returned)):
            self._change(value, 1)
        self._block(block, {*returned})
        most = sorted(self._most.values(), key=lambda each: each[2]) or [(0, self._alive, 0)]
        return LiveCounts(np.array([alive for _, alive, _ in most]), np.array([place for _, _, place in most]))

    def _block(self, block: Block, elsewhere: set[SSAValue]) -> None:
        operations = [op for op in block.ops if id(op) in self._places]
        last_use = {operand: number for number, op in enumerate(operations) for operand in _used(op)}
        ending: dict[int, list[SSAValue]] = {}
        for number, op in enumerate(operations):
            for result in op.results:
                if result not in elsewhere and result in last_use and result not in self._fused:
                    self._change(result, 1)
                    ending.setdefault(last_use[result], []).append(result)
            self._record(op)
            for region in op.regions:
                for inner in region.blocks:
                    self._block(inner, set())
            for value in ending.pop(number, ()):
                self._change(value, -1)

    def _change(self, value: SSAValue, by: int) -> None:
        if value in self._host:
            return
        self._alive[self._node_of(value)] += by
        self._bytes += by * value_bytes(value)

    def _record(self, op: Operation) -> None:
        """Record the live values at `op`, if they take more bytes than at equal operations before."""
        kind = tuple(map(self._node_of, (*op.operands, *op.results)))
        if kind not in self._most or self._most[kind][0] < self._bytes:
            self._most[kind] = self._bytes, self._alive.copy(), self._places[id(op)]


def _used(op: Operation) -> Sequence[SSAValue]:
    """Return the operands of an operation, including those of the operations in its regions."""
    return op.operands if not op.regions else [operand for inner in op.walk() for operand in inner.operands]
