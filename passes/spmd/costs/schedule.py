"""Simulation of the execution of a partitioned program, with one row for computation and one for each link.

XLA starts asynchronous collectives as early as their operands allow and waits for them as late as their results allow
(its latency hiding scheduler, https://openxla.org/xla/gpu_architecture; `--xla_tpu_enable_async_collective_fusion` and
`--xla_enable_async_all_gather` on TPUs, `--xla_gpu_enable_latency_hiding_scheduler` on GPUs). The simulation does the
same: each row executes, of the operations whose operands are there, the first in program order. A collective of a kind
that the hardware does not run asynchronously has the row of computation.

    computation   | x = dot(a, b) | y = dot(x, w1)      | z = dot(y, w2)
    link          | w1 = gather() | w2 = gather()       |

A loop is a barrier, but consecutive iterations overlap where nothing but data orders them, as XLA's pipelining of
collectives makes them (`--xla_tpu_enable_ag_backward_pipelining`, `--xla_gpu_enable_pipelined_all_gather`). The time of
a loop is that of its first iteration, and half of what the third and the fourth add for each of the others. On hardware
that does not pipeline loops, as XLA for GPUs without these options, an iteration begins when the one before ends.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.ir import Block, Operation, SSAValue

from sdy.ir.fast_access import is_terminator
from sdy.ir.walking import captured_values
from sdy.passes.common.call_graph import callee, main_function
from sdy.passes.common.loops import loop_trips
from sdy.passes.common.symbols import Symbols
from sdy.stablehlo import CaseOp, IfOp, WhileOp

Row = str
"""Computation, or the name of a channel of a link."""

_REPEATED = (2, 4)
"""The numbers of iterations that are simulated: the difference is the time of two further iterations.

Where an operation of the next iteration runs beside a collective of this one, and ends later, two iterations alternate.
"""


@dataclass(frozen=True, slots=True)
class Occupation:
    """The seconds for which one execution of an operation occupies some rows."""

    rows: frozenset[Row]
    seconds: float


@dataclass(frozen=True, slots=True)
class Slice:
    """The time in which an operation, or further iterations of a loop, occupy rows."""

    operation: Operation
    rows: frozenset[Row]
    start: float
    """Seconds since the start of the program."""
    seconds: float
    iterations: int = 0
    """The number of iterations after the first one that the slice stands for; 0 for an operation other than a loop."""


@dataclass(slots=True)
class Execution:
    """The simulated execution of some operations."""

    seconds: float = 0.0
    """The time from its start to its end."""
    slices: list[Slice] = field(default_factory=list[Slice])
    """In the order in which they start."""

    def append(self, other: "Execution") -> None:
        """Append an execution that starts at the end of this one."""
        self.slices += [replace(each, start=self.seconds + each.start) for each in other.slices]
        self.seconds += other.seconds


@dataclass(slots=True)
class _Task:
    operation: Operation
    occupation: Occupation
    waits_for: int = 0
    """The number of unfinished tasks that it depends on."""
    users: list[int] = field(default_factory=list[int])


class Schedule:
    """Simulated execution of a partitioned module.

    Args:
        module: The module.
        occupations: The occupation of each operation that takes time.
        pipelines_loops: True if iterations of loops overlap.
    """

    def __init__(self, module: ModuleOp, occupations: Mapping[Operation, Occupation], pipelines_loops: bool) -> None:
        self._module = module
        self._occupations = occupations
        self._pipelines_loops = pipelines_loops
        self._symbols = Symbols(module)
        self._of_block: dict[tuple[Block, int], Execution] = {}

    def execution(self) -> Execution:
        """Return the execution of the whole program."""
        return self._repeated(main_function(self._module).body.block, 1)

    def _repeated(self, block: Block, times: int) -> Execution:
        """Simulate consecutive executions of `block`, each with the results of the one before."""
        key = block, times
        if key not in self._of_block:
            self._of_block[key] = self._simulated(block, times)
        return self._of_block[key]

    def _simulated(self, block: Block, times: int) -> Execution:
        graph, whole = _Graph(), Execution()
        for _ in range(times):
            for op in self._operations(block):
                barrier = self._barrier(op)
                if barrier is None:
                    graph.add(op, self._occupations.get(op))
                else:
                    whole.append(executed(graph.tasks))
                    whole.append(barrier)
                    graph = _Graph()
            graph.carry(block)
        whole.append(executed(graph.tasks))
        return whole

    def _operations(self, block: Block) -> Iterator[Operation]:
        for op in block.ops:
            if isinstance(op, CallOp):
                yield from self._operations(callee(op, self._symbols).body.block)
            yield op

    def _barrier(self, op: Operation) -> Execution | None:
        """Return the execution of a loop or of the slowest branch; None for other operations."""
        match op:
            case WhileOp():
                known = loop_trips(op)
                return self._loop(op, 1 if known is None else known)
            case CaseOp() | IfOp():
                blocks = [block for region in op.regions for block in region.blocks]
                branches = [self._repeated(block, 1) for block in blocks]
                return max(branches, key=lambda each: each.seconds, default=Execution())
            case _:
                return None

    def _loop(self, op: WhileOp, trips: int) -> Execution:
        body = op.body.block
        if trips < 2:
            return self._repeated(body, trips)
        first = self._repeated(body, 1)
        rows = frozenset[Row]().union(*(each.rows for each in first.slices))
        others = (trips - 1) * (self._further(body) if self._pipelines_loops else first.seconds)
        whole = Execution()
        whole.append(first)
        whole.append(Execution(others, [Slice(op, rows, 0.0, others, trips - 1)]))
        return whole

    def _further(self, body: Block) -> float:
        """Return the seconds that an iteration adds to those before."""
        less, more = (self._repeated(body, times).seconds for times in _REPEATED)
        return max(more - less, 0.0) / (_REPEATED[1] - _REPEATED[0])


class _Graph:
    """Tasks in program order, with the tasks that values wait for."""

    def __init__(self) -> None:
        self.tasks: list[_Task] = []
        self._makers: dict[SSAValue, frozenset[int]] = {}
        """The tasks that each value waits for."""

    def add(self, op: Operation, occupation: Occupation | None) -> None:
        """Add the task of `op`; an operation that takes no time passes on what its operands wait for."""
        if is_terminator(op):
            return
        operands = [*op.operands, *captured_values(op)] if op.regions else op.operands
        waits = frozenset([task for value in operands for task in self._makers.get(value, ())])
        if occupation is not None and occupation.seconds:
            number = len(self.tasks)
            self.tasks.append(_Task(op, occupation, len(waits)))
            for other in waits:
                self.tasks[other].users.append(number)
            waits = frozenset([number])
        if waits:
            for result in op.results:
                self._makers[result] = waits

    def carry(self, block: Block) -> None:
        """Let the arguments of the next execution of `block` wait for what it returns."""
        end = block.last_op
        returned = end.operands if end is not None else ()
        carried = [self._makers.get(value, frozenset[int]()) for value in returned]
        for argument, makers in zip(block.args, carried, strict=False):
            self._makers[argument] = makers


def executed(tasks: Sequence[_Task]) -> Execution:
    """Execute all tasks: each row starts the first one, in program order, that is ready."""
    waits_for = [task.waits_for for task in tasks]
    ready: dict[frozenset[Row], list[int]] = defaultdict(list)
    busy: set[Row] = set()
    running: list[tuple[float, int]] = []
    slices: list[Slice] = []
    now = 0.0

    def start(numbers: Iterable[int]) -> None:
        for number in numbers:
            heappush(ready[tasks[number].occupation.rows], number)

    start(number for number, count in enumerate(waits_for) if not count)
    while True:
        for number in sorted(heap[0] for heap in ready.values() if heap):
            rows, seconds = tasks[number].occupation.rows, tasks[number].occupation.seconds
            if busy.isdisjoint(rows):
                heappop(ready[rows])
                busy |= rows
                heappush(running, (now + seconds, number))
                slices.append(Slice(tasks[number].operation, rows, now, seconds))
        if not running:
            return Execution(now, slices)
        now, finished = heappop(running)
        busy -= tasks[finished].occupation.rows
        for user in tasks[finished].users:
            waits_for[user] -= 1
            if not waits_for[user]:
                start((user,))
