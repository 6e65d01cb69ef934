"""Liveness: the number of live values of each node of a folded program over time."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from sdy.box import Ints
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.host_memory import host_values
from sdy.passes.spmd.costs.lifetimes import Lifetimes


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

    Lifetimes are those of `peak_bytes`, without values on the host. For each class of equal operations, the result has
    the time at which the unpartitioned live values take the most bytes.

    Args:
        module: The module.
        num_nodes: The number of nodes.
        node_of: Returns the node of a value.
        places: The positions of the operations that run, by their `id`; others are skipped.
    """
    return _Liveness(num_nodes, node_of, places, main_function(module), host_values(module)).counts()


class _Liveness:
    def __init__(
        self,
        num_nodes: int,
        node_of: Callable[[SSAValue], int],
        places: Mapping[int, int],
        main: FuncOp,
        host: Set[SSAValue],
    ) -> None:
        self._host = host
        self._node_of = node_of
        self._places = places
        self._main = main
        self._lifetimes = Lifetimes(main, host)
        self._alive = np.zeros(num_nodes, np.int64)
        self._bytes = 0
        self._most: dict[tuple[int, ...], tuple[int, Ints, int]] = {}

    def counts(self) -> LiveCounts:
        for value in self._lifetimes.outside:
            self._change(value, 1)
        self._block(self._main.body.block, self._lifetimes.elsewhere)
        most = sorted(self._most.values(), key=lambda each: each[2]) or [(0, self._alive, 0)]
        return LiveCounts(np.array([alive for _, alive, _ in most]), np.array([place for _, _, place in most]))

    def _block(self, block: Block, elsewhere: Set[SSAValue] = frozenset()) -> None:
        operations = [op for op in block.ops if id(op) in self._places]
        last_use = self._lifetimes.last_uses(block, operations, elsewhere)
        ending: dict[int, list[SSAValue]] = {}
        for number, op in enumerate(operations):
            for result in op.results:
                if result in last_use:
                    self._change(result, 1)
                    ending.setdefault(last_use[result], []).append(result)
            self._record(op)
            for region in op.regions:
                for inner in region.blocks:
                    self._block(inner)
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
