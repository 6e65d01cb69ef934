"""Cost estimates of layouts on the folded program, in milliseconds per layout, and a lower bound over all layouts.

A layout assigns shardings to some nodes, and propagation shards the others. The cost is the sum of the costs of the
operations, each partitioned alone, times their runs. Users that require the same sharding of a value share the reshard,
as after `sdy-merge-equal-collectives`.
"""

from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import starmap
from math import prod
from operator import itemgetter

import numpy as np
from xdsl.ir import Operation, SSAValue

from sdy.box import Ints
from sdy.dialect.meshes import named_meshes
from sdy.ir.shapes import shape_of
from sdy.mesh import Mesh
from sdy.passes.auto.cost_sum import Computation, CostSum, GroupCost, scaled
from sdy.passes.auto.folded_program import FoldedOperation, FoldedProgram
from sdy.passes.auto.loop_cycles import LoopCycles
from sdy.passes.auto.operation_cost import OperationCost, OperationCosts, Shardings
from sdy.passes.auto.overlap import Floats, Overlap
from sdy.passes.auto.planned_reshard import OperandReshard
from sdy.passes.auto.shared_propagation import Layout, SharedPropagation
from sdy.passes.common.properties import value_bytes
from sdy.passes.propagation.solver import Solver
from sdy.passes.propagation.step import Steps
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.step_time import StepCost
from sdy.passes.spmd.costs.work import OperationWork
from sdy.passes.spmd.plan.reshard_cost import iterations, iterations_of_operand
from sdy.sharding import TensorSharding, equivalent


@dataclass(frozen=True)
class Held:
    """Values of one node that are live at the same time."""

    value: SSAValue
    """A representative of the values."""
    times: int
    """The number of live values."""
    bytes: int
    """The bytes per device of all live values."""


@dataclass(frozen=True)
class Estimate:
    """Estimated cost of a step, or a lower bound of it if `is_exact` is false."""

    cost: StepCost
    is_exact: bool


_VISITS_PER_PARTITION = 6_000
"""The visits of operations that take as long as to partition one operation."""

_VISITS_PER_PLAN = 2_000
"""The visits of operations that take as long as to plan the shardings of one operation."""

_VISITS_PER_STEP = 70
"""The visits of operations that take as long as a step of propagation with shardings that it has not seen."""


class Estimator:
    """Cost estimator for the layouts of one program on one mesh and hardware."""

    def __init__(self, program: FoldedProgram, mesh_name: str, hardware: Hardware) -> None:
        self._program = program
        mesh = named_meshes(program.module)[mesh_name]
        self._costs = OperationCosts(program.module, mesh_name, mesh, hardware)
        self._hardware = hardware
        self._least = np.array([least_seconds(each, mesh, hardware) for each in program.operations])
        self._numbers_of = [_getter(each.nodes) for each in program.operations]
        """For each operation, a function that selects the sharding numbers of its tensors from those of all nodes."""
        self._known: list[dict[Hashable, GroupCost]] = [{} for _ in program.operations]
        """For each operation, its cost by the sharding numbers of its tensors."""
        self._known_bytes: list[dict[int, float]] = [{} for _ in program.values]
        """For each node, the bytes per device of one value, by its sharding number."""
        self._steps = Steps(program.snapshot.meshes)
        """Interned shardings, which the numbers in `_known` and `_known_bytes` refer to. They are not those of the
        process, since a cleared table would change in which order costs are added and so which bounds are known."""
        self._propagation = SharedPropagation(program.snapshot, self._steps)
        self._rows = [_rows(program.alive.times, each.span) for each in program.operations]
        """For each operation, the times in `alive` at which it can run."""
        self._overlap = Overlap(program.module)
        self._loops = LoopCycles(program.module)
        places = [self._loops.place(each.operation) for each in program.operations]
        self._present = _PresentLayout(program, Computation(program.operations, places))
        results = ((each, each.nodes[len(each.operation.operands) :]) for each in program.operations)
        self._made_at = {node: each.span for each, nodes in results for node in nodes}
        """The first and the last position of the operations that compute the values of a node."""
        self._visits = 0
        self.estimated = 0
        """The number of estimates so far."""
        self.least_seconds = float(self._least.sum())
        """A lower bound of the step time of all layouts."""

    @property
    def work(self) -> int:
        """The work so far, in visits of an operation by propagation: equal on all machines, unlike the time."""
        to_cost = _VISITS_PER_PLAN * self._costs.planned + _VISITS_PER_PARTITION * self._costs.partitioned
        to_propagate = self._propagation.visits + _VISITS_PER_STEP * self._steps.count
        return self._visits + to_propagate + to_cost

    def estimate(self, layout: Layout, is_too_much: Callable[[StepCost], bool] = lambda _: False) -> Estimate:
        """Estimate the cost of a step with a layout.

        Args:
            layout: The shardings before propagation.
            is_too_much: Stops the estimate early if it is true of a lower bound of the cost. Operations with new
                shardings take most of the time, and most layouts are worse than the best one long before all of their
                operations are estimated.

        Returns:
            The cost, or a lower bound of it if the estimate stopped early.
        """
        self.estimated += 1
        numbers, present = self._solved(layout).numbers, self._present
        with present.changes_to(numbers) as (nodes, operations):
            for node in nodes:
                present.bytes[node] = self._bytes_of(node, numbers[node])
            for index in operations:
                present.set(index, self._known[index].get(self._numbers_of[index](numbers)))
        for index in present.unknown():
            present.set(index, self._find_cost(index, numbers, self._costs.of_unpartitioned))
        alive = self._program.alive.bytes_over_time(present.bytes)
        sum_ = self._sum(alive)
        # The operations with the largest lower bounds come first.
        unknown = sorted(present.unknown(), key=lambda index: -self._least[index])
        for index in unknown:
            least = sum_.cost(self._least_of_unknown())
            if is_too_much(least):
                return Estimate(least, is_exact=False)
            cost = self._find_cost(index, numbers, self._costs.of)
            present.set(index, cost)
            if cost is not None and not cost.is_local:
                sum_.add(cost)
        if unknown:
            sum_ = self._sum(alive)  # in the order of the operations, which rounding depends on
        for argument, (value, _) in self._program.returned.items():
            next_value = self._resharded(value, numbers[value], numbers[argument])
            if next_value is not None:
                times = len(self._program.arguments[argument])
                made_at = self._made_at.get(value)
                sum_.send(times, next_value.communication, next_value.received, made_at)
        return Estimate(sum_.cost(), is_exact=True)

    def _sum(self, alive: Floats) -> CostSum:
        """Return the sum of the costs that are known of the present layout, given the bytes of its live values."""
        sum_ = CostSum(
            self._present.computation, alive, bool(self._hardware.asynchronous), self._hardware.pipelines_loops
        )
        for cost in self._present.communicating():
            sum_.add(cost)
        return sum_

    def _least_of_unknown(self) -> float:
        """Return a lower bound of the seconds of the operations whose costs are unknown."""
        return float(self._least[self._present.unknown()].sum())

    def _find_cost(
        self,
        index: int,
        numbers: Sequence[int],
        cost_of: Callable[[Operation, int, OperationWork, Shardings], OperationCost | None],
    ) -> GroupCost | None:
        """Find and memoize the cost of the equal operations at `index` with new shardings by `cost_of`."""
        each = self._program.operations[index]
        shardings = tuple([self._steps.shardings[numbers[node]] for node in each.nodes])
        cost = cost_of(each.operation, each.key, each.work, shardings)
        if cost is None:
            return None
        is_local = not (cost.communication or cost.reshards or cost.scratch)
        op, operands = each.operation, [reshard.operand for reshard in cost.reshards]
        is_behind = not is_local and self._overlap.runs_behind(op)
        ahead = tuple([self._overlap.runs_ahead(op, operand) for operand in operands])
        hoisted = [iterations_of_operand(op, op.operands[operand]) / iterations(op) for operand in operands]
        cost = replace(cost, reshards=tuple(map(_repeated, cost.reshards, hoisted)))
        places = tuple(
            [
                self._loops.place_of_operand(op, operand) if share == 1 else None
                for operand, share in zip(operands, hoisted, strict=True)
            ]
        )
        place = self._loops.place(op)
        compute = each.times * cost.compute
        total = GroupCost(each, self._rows[index], cost, compute, is_local, ahead, is_behind, place, places)
        self._known[index][self._numbers_of[index](numbers)] = total
        return total

    def shardings(self, layout: Layout) -> Sequence[TensorSharding | None]:
        """Return the sharding of each node after propagation."""
        return self._solved(layout).solution().shardings

    def _solved(self, layout: Layout) -> Solver:
        self._visits += len(self._program.operations)
        return self._propagation.solve(layout)

    def largest(self, layout: Layout) -> list[Held]:
        """Return the values that are live at peak memory, the largest first."""
        bytes_ = self._bytes_of_nodes(layout)
        alive = self._program.alive.counts[self._program.alive.bytes_over_time(bytes_).argmax()]
        totals = (alive * bytes_).astype(int).tolist()
        values = zip(totals, alive.tolist(), self._program.values, strict=True)
        held = [Held(value, times, total) for total, times, value in values if total and value is not None]
        return sorted(held, key=lambda each: -each.bytes)

    def peak_bytes_by_node(self, layout: Layout) -> Floats:
        """Return, for each node, the maximum over time of the bytes per device of its live values."""
        return self._program.alive.counts.max(0) * self._bytes_of_nodes(layout)

    def _bytes_of_nodes(self, layout: Layout) -> Floats:
        """Return the bytes per device of one value of each node."""
        return np.array([*starmap(self._bytes_of, enumerate(self._solved(layout).numbers))])

    def _bytes_of(self, node: int, number: int) -> float:
        """Return the bytes per device of one value of a node, given the number of its sharding."""
        bytes_ = self._known_bytes[node].get(number)
        if bytes_ is None:
            value = self._program.values[node]
            bytes_ = 0.0 if value is None else self._costs.local_bytes(value, self._steps.shardings[number])
            self._known_bytes[node][number] = bytes_
        return bytes_

    def _resharded(self, node: int, source: int, target: int) -> OperationCost | None:
        """Return the cost of resharding a value of `node`, given the numbers of shardings; None without a reshard."""
        value = self._program.values[node]
        shardings = self._steps.shardings[source], self._steps.shardings[target]
        if source == target or value is None or equivalent(*shardings):
            return None
        return self._costs.of_reshard(value, *shardings)


class _PresentLayout:
    """Costs of operations and bytes of values in the layout that is estimated, kept for the next one.

    Layouts that a search compares differ in the shardings of few nodes.
    """

    def __init__(self, program: FoldedProgram, computation: Computation) -> None:
        self.bytes = np.zeros(len(program.values))
        """The bytes per device of one value of each node."""
        self.computation = computation
        self._costs: list[GroupCost | None] = [None] * len(program.operations)
        self._is_known = np.zeros(len(program.operations), bool)
        self._communicates = np.zeros(len(program.operations), bool)
        self._numbers: Ints | None = None
        """The number of each node's sharding; None if the costs and the bytes are not those of a layout."""
        pairs = [(index, node) for index, each in enumerate(program.operations) for node in each.nodes]
        self._pairs = np.array(pairs, np.int64).reshape(-1, 2).T
        """The operations and their nodes."""

    @contextmanager
    def changes_to(self, numbers: Sequence[int]) -> Generator[tuple[Sequence[int], Sequence[int]]]:
        """Return a context that replaces the costs and the bytes that differ in another layout.

        It has the nodes with other shardings, and the operations that read or write their values.
        """
        new, old = np.array(numbers, np.int64), self._numbers
        self._numbers = None
        is_new = np.ones(len(new), bool) if old is None else new != old
        operations, nodes = self._pairs
        is_affected = np.zeros(len(self._costs), bool)
        is_affected[operations[is_new[nodes]]] = True
        if old is None:
            is_affected[:] = True
        yield is_new.nonzero()[0].tolist(), (is_affected | ~self._is_known).nonzero()[0].tolist()
        self._numbers = new

    def set(self, index: int, cost: GroupCost | None) -> None:
        """Set the cost of an operation, or None while it is unknown."""
        self._costs[index] = cost
        self._communicates[index] = cost is not None and not cost.is_local
        self.computation.seconds[index] = 0.0 if cost is None else cost.compute
        self._is_known[index] = cost is not None

    def unknown(self) -> Sequence[int]:
        """Return the operations whose costs are unknown."""
        return (~self._is_known).nonzero()[0].tolist()

    def communicating(self) -> Iterator[GroupCost]:
        """Yield the known costs of operations that communicate or need temporaries."""
        for index in self._communicates.nonzero()[0].tolist():
            cost = self._costs[index]
            assert cost is not None
            yield cost


def _repeated(reshard: OperandReshard, share: float) -> OperandReshard:
    """Return a reshard that only a share of the runs repeat: one of an invariant operand is hoisted out of the loop."""
    if share == 1:
        return reshard
    return replace(reshard, communication=scaled(share, reshard.communication), received=share * reshard.received)


def _rows(times: Ints, span: tuple[int, int]) -> slice:
    """Return the times from the first to the last position of `span`, or the last one before it."""
    begin, end = np.searchsorted(times, [span[0], span[1] + 1]).tolist()
    return slice(begin, end) if begin < end else slice(max(begin - 1, 0), max(begin, 1))


def _getter(nodes: Sequence[int]) -> Callable[[Sequence[int]], Hashable]:
    """Return a function that selects the items at `nodes`, as `itemgetter` does, also for no nodes."""
    return itemgetter(*nodes) if nodes else lambda _: None


def least_seconds(folded: FoldedOperation, mesh: Mesh, hardware: Hardware) -> float:
    """Return a lower bound, over all layouts, of the total seconds of equal operations."""
    op = folded.operation
    # A shard has at least one element.
    least_bytes = [
        value_bytes(value) / min(mesh.size, max(prod(shape_of(value)), 1)) for value in (*op.operands, *op.results)
    ]
    return folded.times * folded.work.seconds(mesh.size, least_bytes, hardware)
