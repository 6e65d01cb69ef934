"""What a layout would cost, told from the folded program: in milliseconds, so that many can be compared.

A layout is what some nodes are given. Propagation gives shardings to the others; each operation then costs what it
costs alone, as often as it runs. Users of a value that want it in the same sharding share the reshard, as
`sdy-merge-equal-collectives` has it.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import numpy.typing as npt
from xdsl.ir import SSAValue

from sdy.box import Ints
from sdy.dialect.meshes import named_meshes
from sdy.passes.auto.bound import least_seconds
from sdy.passes.auto.folded_program import FoldedOperation, FoldedProgram
from sdy.passes.auto.operation_cost import OperandReshard, OperationCost, OperationCosts, Seconds
from sdy.passes.propagation.rounds import Rounds
from sdy.passes.propagation.solver import Solver
from sdy.passes.propagation.step import memoized_steps
from sdy.passes.propagation.user_priority_propagate import UserPriorityPropagatePass
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.step_time import AxisNames, StepCost
from sdy.sharding import TensorSharding, equivalent

Layout = Mapping[int, TensorSharding]
"""The shardings that nodes of a folded program are given."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Held:
    """Values of a node that are alive at once."""

    value: SSAValue
    """One of them."""
    times: int
    bytes: int
    """Of all of them, on each device."""


@dataclass(frozen=True)
class Estimate:
    """What a step costs, or what it costs at least."""

    cost: StepCost
    is_exact: bool


_PROPAGATE = UserPriorityPropagatePass()


class Estimator:
    """Estimates the costs of layouts of one program, on one mesh of some hardware."""

    def __init__(self, program: FoldedProgram, mesh_name: str, hardware: Hardware) -> None:
        self._program = program
        mesh = named_meshes(program.module)[mesh_name]
        self._costs = OperationCosts(program.module, mesh_name, mesh, hardware)
        self._least = [least_seconds(each, mesh, hardware) for each in program.operations]
        self._numbers_of = [_picked(each.nodes) for each in program.operations]
        """Of each operation, what picks the numbers of its tensors' shardings from those of all nodes."""
        self._known: list[dict[Hashable, _CostOfEqual]] = [{} for _ in program.operations]
        self._find = [known.get for known in self._known]
        self._bytes: list[dict[int, float]] = [{} for _ in program.values]
        """The bytes that a device has of a value of each node, by the number of its sharding."""
        self._find_bytes = [known.get for known in self._bytes]
        self._steps = memoized_steps(program.snapshot.meshes)
        """What the numbers of shardings in `_known` and `_bytes` refer to."""
        self._rounds = Rounds(self._steps, program.snapshot.kinds)
        self._alive = program.alive.counts.astype(np.float64)  # products of one type are fast
        self.asked = 0
        """How many layouts were estimated."""
        self.least_seconds = sum(self._least)
        """What no layout can do without."""

    def estimate(self, layout: Layout, is_too_much: Callable[[StepCost], bool] = lambda _: False) -> Estimate:
        """What a step costs with this layout; or that it costs at least so much, once that `is_too_much`.

        What was never met before takes most of the time, and of most layouts little need be known to see that others
        are better.
        """
        self.asked += 1
        numbers = self._solved(layout).numbers
        sharding_of = self._steps.shardings.__getitem__
        costs = [find(numbers_of(numbers)) for find, numbers_of in zip(self._find, self._numbers_of, strict=True)]
        sum_ = _Sum(self._alive @ self._bytes_of_nodes(numbers), self._program.alive.times)
        sum_.add([cost for cost in costs if cost is not None])
        # What can cost most comes first.
        unknown = sorted([index for index, cost in enumerate(costs) if cost is None], key=lambda i: -self._least[i])
        sum_.least = sum(map(self._least.__getitem__, unknown))
        for index in unknown:
            if is_too_much(least := sum_.cost()):
                return Estimate(least, is_exact=False)
            sum_.least -= self._least[index]
            sum_.add([self._find_out(index, numbers)])
        sum_.least = 0.0
        for argument, (value, _) in self._program.returned.items():
            next_value = self._resharded(value, sharding_of(numbers[value]), sharding_of(numbers[argument]))
            sum_.send(len(self._program.arguments[argument]), next_value)
        return Estimate(sum_.cost(), is_exact=True)

    def _find_out(self, index: int, numbers: Sequence[int]) -> "_CostOfEqual":
        """What the operations `index` stands for cost, which are met with such shardings for the first time."""
        each = self._program.operations[index]
        shardings = tuple([self._steps.shardings[numbers[node]] for node in each.nodes])
        cost = self._costs.of(each.operation, each.key, each.work, shardings)
        found = _CostOfEqual(each, cost, each.times * cost.compute, not (cost.communication or cost.reshards))
        self._known[index][self._numbers_of[index](numbers)] = found
        return found

    def shardings(self, layout: Layout) -> Sequence[TensorSharding | None]:
        """What propagation gives to each node."""
        return self._solved(layout).solution().shardings

    def _solved(self, layout: Layout) -> Solver:
        steps = memoized_steps(self._program.snapshot.meshes)
        if steps is not self._steps:  # after so many steps, shardings are numbered anew
            self._steps = steps
            self._rounds = Rounds(steps, self._program.snapshot.kinds)
            for known in (*self._known, *self._bytes):
                known.clear()
        solver = Solver(self._program.snapshot, layout, self._rounds)
        _PROPAGATE.propagate(solver)
        return solver

    def largest(self, layout: Layout) -> list[Held]:
        """What takes memory when most of it is taken, the largest first."""
        bytes_ = self._bytes_of_nodes(self._solved(layout).numbers)
        alive = self._alive[(self._alive @ bytes_).argmax()]
        taken = (alive * bytes_).astype(int).tolist()
        values = zip(taken, alive.tolist(), self._program.values, strict=True)
        held = [Held(value, int(times), taken) for taken, times, value in values if taken and value is not None]
        return sorted(held, key=lambda each: -each.bytes)

    def taken_by_nodes(self, layout: Layout) -> Floats:
        """The bytes that the values of each node take on a device at the time when they take most."""
        return (self._alive * self._bytes_of_nodes(self._solved(layout).numbers)).max(0)

    def _bytes_of_nodes(self, numbers: Sequence[int]) -> Floats:
        """The bytes that a device has of a value of each node."""
        bytes_ = [find(number) for find, number in zip(self._find_bytes, numbers, strict=True)]
        while None in bytes_:
            node = bytes_.index(None)
            value, sharding = self._program.values[node], self._steps.shardings[numbers[node]]
            found = 0.0 if value is None else self._costs.local_bytes(value, sharding)
            bytes_[node] = self._bytes[node][numbers[node]] = found
        return np.array(bytes_)

    def _resharded(self, node: int, source: TensorSharding | None, target: TensorSharding | None) -> Seconds:
        """What is sent where a value of `node` goes from one sharding to another."""
        value = self._program.values[node]
        if value is None or equivalent(source, target):
            return {}
        return self._costs.of_reshard(value, source, target)


@dataclass(frozen=True, slots=True)
class _CostOfEqual:
    """What equal operations cost, with the same shardings."""

    operation: FoldedOperation
    cost: OperationCost
    """Of each of them."""
    compute: float
    """The seconds of all of them together."""
    is_local: bool
    """Whether they exchange nothing, as most do, which is then soon added up."""


class _Sum:
    """What operations cost together."""

    def __init__(self, memory: Floats, times: Ints) -> None:
        self.least = 0.0
        """The seconds that operations which were not added take at least."""
        self._memory = memory
        """The bytes of all values, before they are resharded, at certain times."""
        self._times = times
        self._compute = 0.0
        self._communication: dict[AxisNames, float] = defaultdict(float)
        self._reshards: dict[tuple[int, tuple[str, ...]], list[tuple[FoldedOperation, OperandReshard]]] = defaultdict(
            list
        )

    def add(self, costs: Sequence[_CostOfEqual]) -> None:
        """Add what operations cost."""
        self._compute += sum([each.compute for each in costs])
        for each in [each for each in costs if not each.is_local]:
            self.send(each.operation.times, each.cost.communication)
            for reshard in each.cost.reshards:
                users = self._reshards[each.operation.nodes[reshard.operand], reshard.steps]
                users.append((each.operation, reshard))

    def send(self, times: int, seconds: Seconds) -> None:
        """Add what is sent so many times."""
        for axes, each in seconds.items():
            self._communication[axes] += times * each

    def cost(self) -> StepCost:
        """What all cost that were added, and the others at least."""
        communication = self._communication.copy()
        for users in self._reshards.values():
            times = max(operation.times for operation, _ in users)
            for axes, each in users[0][1].communication.items():
                communication[axes] += times * each
        return StepCost(self._compute + self.least, dict(communication), self._most_memory())

    def _most_memory(self) -> int:
        """The bytes at the time when most is taken, with what values are after they were resharded.

        What several users share is held from the first to the last. Where layers go by between two users, as between
        the forward and the backward ones, it is held for all layers at once. What has one user is soon gone.
        """
        memory = self._memory.copy()
        alone = 0
        for users in self._reshards.values():
            operation, reshard = users[0]
            if len(users) == 1:
                alone = max(alone, reshard.bytes)
                continue
            begins, ends = zip(*[operation.span for operation, _ in users], strict=True)
            times = operation.times if max(begins) > min(ends) else 1
            begin, end = np.searchsorted(self._times, [min(begins), max(ends) + 1])
            memory[begin:end] += times * reshard.bytes
        return int(memory.max()) + alone


def _picked(nodes: Sequence[int]) -> Callable[[Sequence[int]], Hashable]:
    """What picks what is at `nodes` from a sequence: a tuple, or of one node what is there."""
    return itemgetter(*nodes) if nodes else lambda _: None
