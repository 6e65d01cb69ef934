"""How many values of each node of a folded program are alive at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from sdy.box import Ints
from sdy.passes.common.call_graph import main_function
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.passes.spmd.costs.sizes import value_bytes


@dataclass(frozen=True, eq=False)
class Alive:
    """The numbers of values of each node that are alive at some times, in their order."""

    counts: Ints
    """A row for each time."""
    times: Ints
    """The place in the program of the operation that runs then."""


def most_alive(
    module: ModuleOp, num_nodes: int, node_of: Callable[[SSAValue], int], places: Mapping[int, int]
) -> Alive:
    """What is alive at each time that may need the most memory.

    As `peak_bytes` counts them: arguments and results of the main function always, other values from what makes them
    to what uses them last, and those never that are computed as part of what uses them. Of all times at which one kind
    of operation runs, there is the one at which whole tensors take most. Those operations run whose `id` has one of the
    `places`.
    """
    return _Lifetimes(num_nodes, node_of, places).of(main_function(module).body.block)


class _Lifetimes:
    def __init__(self, num_nodes: int, node_of: Callable[[SSAValue], int], places: Mapping[int, int]) -> None:
        self._node_of = node_of
        self._places = places
        self._fused = FusedValues()
        self._alive = np.zeros(num_nodes, np.int64)
        self._bytes = 0
        self._most: dict[tuple[int, ...], tuple[int, Ints, int]] = {}

    def of(self, block: Block) -> Alive:
        returned = dict.fromkeys(block.last_op.operands if block.last_op is not None else ())
        for value in dict.fromkeys((*block.args, *returned)):
            self._change(value, 1)
        self._block(block, {*returned})
        most = sorted(self._most.values(), key=lambda each: each[2]) or [(0, self._alive, 0)]
        return Alive(np.array([alive for _, alive, _ in most]), np.array([place for _, _, place in most]))

    def _block(self, block: Block, elsewhere: set[SSAValue]) -> None:
        operations = [op for op in block.ops if id(op) in self._places]
        last_use = {operand: number for number, op in enumerate(operations) for operand in _used(op)}
        ending: dict[int, list[SSAValue]] = {}
        for number, op in enumerate(operations):
            for result in op.results:
                if result not in elsewhere and result in last_use and result not in self._fused:
                    self._change(result, 1)
                    ending.setdefault(last_use[result], []).append(result)
            self._remember(op)
            for region in op.regions:
                for inner in region.blocks:
                    self._block(inner, set())
            for value in ending.pop(number, ()):
                self._change(value, -1)

    def _change(self, value: SSAValue, by: int) -> None:
        self._alive[self._node_of(value)] += by
        self._bytes += by * value_bytes(value)

    def _remember(self, op: Operation) -> None:
        """Keep what is alive now, if it is more than at equal operations before."""
        kind = tuple(map(self._node_of, (*op.operands, *op.results)))
        if kind not in self._most or self._most[kind][0] < self._bytes:
            self._most[kind] = self._bytes, self._alive.copy(), self._places[id(op)]


def _used(op: Operation) -> Sequence[SSAValue]:
    """What an operation uses, or operations inside it."""
    return op.operands if not op.regions else [operand for inner in op.walk() for operand in inner.operands]
