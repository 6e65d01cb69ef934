"""Cost estimates of layouts on the folded program, in milliseconds per layout, and a lower bound over all layouts.

A layout assigns shardings to some nodes, and propagation shards the others. The cost is the sum of the costs of the
operations, each partitioned alone, times their runs. Users that require the same sharding of a value share the reshard,
as after `sdy-merge-equal-collectives`.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from math import prod
from operator import itemgetter

import numpy as np
import numpy.typing as npt
from xdsl.ir import Operation, SSAValue

from sdy.box import Ints
from sdy.dialect.meshes import named_meshes
from sdy.ir.shapes import shape_of
from sdy.mesh import Mesh
from sdy.passes.auto.folded_program import FoldedOperation, FoldedProgram
from sdy.passes.auto.loop_cycles import LoopCycles, Place, hidden_in_loops
from sdy.passes.auto.operation_cost import OperandReshard, OperationCost, OperationCosts, Seconds, Shardings
from sdy.passes.auto.overlap import Overlap, Spread, exposed_seconds
from sdy.passes.auto.shared_propagation import Layout, SharedPropagation
from sdy.passes.common.properties import value_bytes
from sdy.passes.propagation.solver import Solver
from sdy.passes.propagation.step import Steps
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.network import AxisNames
from sdy.passes.spmd.costs.step_time import StepCost
from sdy.passes.spmd.costs.work import OperationWork
from sdy.passes.spmd.plan.reshard_cost import iterations, iterations_of_operand
from sdy.sharding import TensorSharding, equivalent

Floats = npt.NDArray[np.float64]


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


_VISITS_PER_PARTITION = 5_000
"""The visits of operations that take as long as to partition one operation."""

_VISITS_PER_PLAN = 2_000
"""The visits of operations that take as long as to plan the shardings of one operation."""


class Estimator:
    """Cost estimator for the layouts of one program on one mesh and hardware."""

    def __init__(self, program: FoldedProgram, mesh_name: str, hardware: Hardware) -> None:
        self._program = program
        mesh = named_meshes(program.module)[mesh_name]
        self._costs = OperationCosts(program.module, mesh_name, mesh, hardware)
        self._is_asynchronous = bool(hardware.asynchronous)
        self._least = [least_seconds(each, mesh, hardware) for each in program.operations]
        self._numbers_of = [_getter(each.nodes) for each in program.operations]
        """For each operation, a function that selects the sharding numbers of its tensors from those of all nodes."""
        self._known: list[dict[Hashable, _GroupCost]] = [{} for _ in program.operations]
        """For each operation, its cost by the sharding numbers of its tensors."""
        self._find = [known.get for known in self._known]
        self._bytes: list[dict[int, float]] = [{} for _ in program.values]
        """For each node, the bytes per device of one value, by its sharding number."""
        self._find_bytes = [known.get for known in self._bytes]
        self._steps = Steps(program.snapshot.meshes)
        """Interned shardings, which the numbers in `_known` and `_bytes` refer to. They are not those of the process,
        since a cleared table would change in which order costs are added and so which bounds are known."""
        self._propagation = SharedPropagation(program.snapshot, self._steps)
        self._rows = [_rows(program.alive.times, each.span) for each in program.operations]
        """For each operation, the times in `alive` at which it can run."""
        self._alive = program.alive.counts.astype(np.float64)  # products of one type are fast
        self._overlap = Overlap(program.module)
        self._loops = LoopCycles(program.module)
        results = ((each, each.nodes[len(each.operation.operands) :]) for each in program.operations)
        self._made_at = {node: each.span for each, nodes in results for node in nodes}
        """The first and the last position of the operations that compute the values of a node."""
        self._visits = 0
        self.estimated = 0
        """The number of estimates so far."""
        self.least_seconds = sum(self._least)
        """A lower bound of the step time of all layouts."""

    @property
    def work(self) -> int:
        """The work so far, in visits of an operation by propagation: equal on all machines, unlike the time."""
        to_cost = _VISITS_PER_PLAN * self._costs.planned + _VISITS_PER_PARTITION * self._costs.partitioned
        return self._visits + self._propagation.visits + to_cost

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
        numbers = self._solved(layout).numbers
        sharding_of = self._steps.shardings.__getitem__
        costs = [find(numbers_of(numbers)) for find, numbers_of in zip(self._find, self._numbers_of, strict=True)]
        alive = self._alive @ self._bytes_of_nodes(numbers)
        sum_ = _Sum(alive, self._is_asynchronous)
        sum_.add([cost for cost in costs if cost is not None])
        unknown = [index for index, cost in enumerate(costs) if cost is None]
        found = [self._find_cost(index, numbers, self._costs.of_unpartitioned) for index in unknown]
        sum_.add([cost for cost in found if cost is not None])
        # The operations with the largest lower bounds come first.
        unpartitioned = [index for index, cost in zip(unknown, found, strict=True) if cost is None]
        unpartitioned.sort(key=lambda index: -self._least[index])
        sum_.least = sum(map(self._least.__getitem__, unpartitioned))
        for index in unpartitioned:
            if is_too_much(least := sum_.cost()):
                return Estimate(least, is_exact=False)
            sum_.least -= self._least[index]
            cost = self._find_cost(index, numbers, self._costs.of)
            assert cost is not None
            sum_.add([cost])
        sum_.least = 0.0
        for argument, (value, _) in self._program.returned.items():
            next_value = self._resharded(value, sharding_of(numbers[value]), sharding_of(numbers[argument]))
            if next_value is not None:
                times = len(self._program.arguments[argument])
                made_at = self._made_at.get(value)
                sum_.send(times, next_value.communication, next_value.received, made_at)
        return Estimate(sum_.cost(), is_exact=True)

    def _find_cost(
        self,
        index: int,
        numbers: Sequence[int],
        cost_of: Callable[[Operation, int, OperationWork, Shardings], OperationCost | None],
    ) -> "_GroupCost | None":
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
        total = _GroupCost(each, self._rows[index], cost, compute, is_local, ahead, is_behind, place, places)
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
        bytes_ = self._bytes_of_nodes(self._solved(layout).numbers)
        alive = self._alive[(self._alive @ bytes_).argmax()]
        totals = (alive * bytes_).astype(int).tolist()
        values = zip(totals, alive.tolist(), self._program.values, strict=True)
        held = [Held(value, int(times), total) for total, times, value in values if total and value is not None]
        return sorted(held, key=lambda each: -each.bytes)

    def peak_bytes_by_node(self, layout: Layout) -> Floats:
        """Return, for each node, the maximum over time of the bytes per device of its live values."""
        return (self._alive * self._bytes_of_nodes(self._solved(layout).numbers)).max(0)

    def _bytes_of_nodes(self, numbers: Sequence[int]) -> Floats:
        """Return the bytes per device of one value of each node."""
        bytes_ = [find(number) for find, number in zip(self._find_bytes, numbers, strict=True)]
        while None in bytes_:
            node = bytes_.index(None)
            value, sharding = self._program.values[node], self._steps.shardings[numbers[node]]
            local = 0.0 if value is None else self._costs.local_bytes(value, sharding)
            bytes_[node] = self._bytes[node][numbers[node]] = local
        return np.array(bytes_)

    def _resharded(
        self, node: int, source: TensorSharding | None, target: TensorSharding | None
    ) -> OperationCost | None:
        """Return the cost of resharding a value of `node`; None without a reshard."""
        value = self._program.values[node]
        if value is None or equivalent(source, target):
            return None
        return self._costs.of_reshard(value, source, target)


@dataclass(frozen=True, slots=True, eq=False)
class _GroupCost:
    """Cost of a group of equal operations with the same shardings."""

    operation: FoldedOperation
    rows: slice
    """The times at which they run."""
    cost: OperationCost
    """The cost of each operation."""
    compute: float
    """The compute seconds of all operations."""
    is_local: bool
    """True if they neither communicate nor need temporaries. This is most operations, whose costs are cheap to add."""
    ahead: tuple[bool, ...]
    """For each reshard of an operand, true if it can run beside products."""
    is_behind: bool
    """True if their communication can run beside products that follow."""
    place: Place | None
    """The place of the operations in a loop."""
    places: tuple[Place | None, ...]
    """For each reshard of an operand, its place in a loop."""


class _Sum:
    """Accumulator for the cost of a step."""

    def __init__(self, memory: Floats, is_asynchronous: bool) -> None:
        self.least = 0.0
        """A lower bound of the seconds of the operations that have not been added."""
        self._memory = memory
        """The bytes of all live values at each time, without temporaries of operations and reshards of operands."""
        self._compute = 0.0
        self._is_asynchronous = is_asynchronous
        self._ahead: set[tuple[int, tuple[str, ...]]] = set()
        """The reshards that can run beside products, as keys of `_reshards`."""
        self._behind: list[Spread] = []
        """The communication that can run beside products that follow it."""
        self._computation: list[Spread] = []
        self._in_loops: list[tuple[Place, float, Seconds]] = []
        """The seconds of computation, and of communication by axes, of operations in loops."""
        self._received = 0.0
        """The bytes that a device receives."""
        self._communication: dict[AxisNames, float] = defaultdict(float)
        self._scratch: dict[_GroupCost, int] = {}
        """The temporaries of operations that communicate."""
        self._reshards: dict[tuple[int, tuple[str, ...]], list[tuple[_GroupCost, OperandReshard]]] = defaultdict(list)

    def add(self, costs: Sequence[_GroupCost]) -> None:
        """Add the costs of operations."""
        self._compute += sum([each.compute for each in costs])
        self._computation += [(each.operation.span, each.compute) for each in costs if each.place is None]
        self._in_loops += [(each.place, each.compute, {}) for each in costs if each.place is not None]
        for each in [each for each in costs if not each.is_local]:
            cost = each.cost
            if each.place is not None:
                self._in_loops.append((each.place, 0.0, _times(each.operation.times, cost.communication)))
            behind = each.operation.span if each.is_behind and each.place is None else None
            self.send(each.operation.times, cost.communication, cost.received, behind)
            self._scratch[each] = each.cost.scratch
            for reshard, is_ahead, place in zip(each.cost.reshards, each.ahead, each.places, strict=True):
                key = each.operation.nodes[reshard.operand], reshard.steps
                if key not in self._reshards:
                    if place is not None:
                        self._in_loops.append((place, 0.0, _times(each.operation.times, reshard.communication)))
                    elif is_ahead:
                        self._ahead.add(key)
                self._reshards[key].append((each, reshard))

    def send(self, times: int, seconds: Seconds, received: float, behind: tuple[int, int] | None) -> None:
        """Add the communication of `times` runs; in each, a device receives `received` bytes.

        It can run beside products that follow `behind`, the first and the last position of its operations, if given.
        """
        self._received += times * received
        for axes, each in seconds.items():
            self._communication[axes] += times * each
        if behind is not None:
            self._behind.append((behind, times * sum(seconds.values())))

    def cost(self) -> StepCost:
        """Return the cost of the added operations, plus the lower bound of the others."""
        communication, received = self._communication.copy(), self._received
        ahead: list[Spread] = []
        for key, users in self._reshards.items():
            times = max(user.operation.times for user, _ in users)
            received += times * users[0][1].received
            for axes, each in users[0][1].communication.items():
                communication[axes] += times * each
            if key in self._ahead:
                ahead.append((users[0][0].operation.span, times * sum(users[0][1].communication.values())))
        compute = self._compute + self.least
        overlap = self._hidden(ahead, compute) if self._is_asynchronous else 0.0
        return StepCost(compute, dict(communication), self._peak_memory(), overlap=overlap, received=received)

    def _hidden(self, ahead: Sequence[Spread], compute: float) -> float:
        """Return the seconds of communication that run beside computation: all that could if some costs are unknown."""
        outside = sum([seconds for _, seconds in (*ahead, *self._behind)])
        if self.least:
            in_loops = sum([sum(seconds.values()) for _, _, seconds in self._in_loops])
            return min(outside, compute) + in_loops
        if outside:
            outside -= exposed_seconds(ahead, self._computation, ahead=True)
            outside -= exposed_seconds(self._behind, self._computation, ahead=False)
        return min(outside, compute) + hidden_in_loops(self._in_loops)

    def _peak_memory(self) -> int:
        """Return the peak memory in bytes, including temporaries of operations and resharded copies of values.

        A copy with several users is live from the first to the last. If a user in the forward pass and one in the
        backward pass share it, the copies of all layers are live at the same time. A copy with one user is live only
        for that user.
        """
        memory, while_running = self._memory.copy(), self._scratch.copy()
        for users in self._reshards.values():
            user, reshard = users[0]
            if len(users) == 1:
                while_running[user] += reshard.bytes
                continue
            begins, ends = zip(*[each.operation.span for each, _ in users], strict=True)
            times = user.operation.times if max(begins) > min(ends) else 1
            rows = slice(min(each.rows.start for each, _ in users), max(each.rows.stop for each, _ in users))
            memory[rows] += times * reshard.bytes
        most = np.zeros_like(memory)
        for user, bytes_ in while_running.items():
            most[user.rows] = np.maximum(most[user.rows], bytes_)
        return int((memory + most).max())


def _repeated(reshard: OperandReshard, share: float) -> OperandReshard:
    """Return a reshard that only a share of the runs repeat: one of an invariant operand is hoisted out of the loop."""
    return replace(reshard, communication=_times(share, reshard.communication), received=share * reshard.received)


def _times(times: float, seconds: Seconds) -> Seconds:
    return {axes: times * each for axes, each in seconds.items()}


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
