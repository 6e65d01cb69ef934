"""Static estimate of the peak memory of one device in a partitioned program, from the lifetimes of values."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, SSAValue

from sdy.passes.common.call_graph import callee, main_function
from sdy.passes.common.properties import value_bytes
from sdy.passes.common.symbols import Symbols
from sdy.passes.spmd.costs.host_memory import host_values, takes_host_memory
from sdy.passes.spmd.costs.lifetimes import Lifetimes


@dataclass(frozen=True, slots=True)
class Moment:
    """The temporary values that are live while one operation of the main function runs."""

    operation: Operation
    bytes: int
    """Bytes of the live values, without the arguments and results of the function."""


@dataclass(frozen=True)
class Footprint:
    """The memory use of one device over a run of a program, in bytes, without the values in host memory."""

    outside: Sequence[SSAValue]
    """The arguments and results of the main function, which are live during the entire run.

    A result that reuses the buffer of a donated argument is left out.
    """
    moments: Sequence[Moment]
    """One entry per operation of the main function, in program order."""
    at_peak: Sequence[SSAValue]
    """The temporary values that are live at the peak, those inside the operation that runs then included."""
    host_bytes: int
    """The peak bytes of this device's values in host memory."""

    @property
    def outside_bytes(self) -> int:
        """The bytes of the arguments and results."""
        return sum(map(value_bytes, self.outside))

    @property
    def peak(self) -> Moment | None:
        """The moment of peak memory; None if the main function has no operations."""
        return max(self.moments, key=lambda moment: moment.bytes, default=None)


def peak_bytes(module: ModuleOp) -> int:
    """Return the peak memory of one device in bytes: arguments, results and the most temporaries live at once."""
    return _Memory(module, host_values(module)).peak_bytes()


def host_bytes(module: ModuleOp) -> int:
    """Return the peak bytes of one device's values in host memory: arguments, results and offloaded values."""
    host = host_values(module)
    return _Memory(module, host, counts_host=True).peak_bytes() if host else 0


def footprint(module: ModuleOp) -> Footprint:
    """Return the memory use of one device over a run of the partitioned `module`."""
    block, host = main_function(module).body.block, host_values(module)
    memory = _Memory(module, host)
    elsewhere = memory.lifetimes.elsewhere
    moments = [*map(Moment, block.ops, memory.of(block, elsewhere))]
    at_peak = [value for value in memory.at_peak(block, elsewhere) if value not in host]
    outside = [value for value in memory.lifetimes.outside if value not in host]
    return Footprint(outside, moments, at_peak, host_bytes(module))


class _Memory:
    """The bytes of a program's values in one memory: device memory or, with `counts_host`, host memory."""

    def __init__(self, module: ModuleOp, host: Set[SSAValue], *, counts_host: bool = False):
        self._main = main_function(module)
        self._symbols = Symbols(module)
        self._host = host
        self._counts_host = counts_host
        self._of_function: dict[FuncOp, int] = {}
        self.lifetimes = Lifetimes(self._main, host)

    def peak_bytes(self) -> int:
        """Return the bytes of the arguments and results, and of the most temporaries live at once."""
        temporaries = self.of(self._main.body.block, self.lifetimes.elsewhere)
        return sum(map(self.size, self.lifetimes.outside)) + max(temporaries, default=0)

    def size(self, value: SSAValue) -> int:
        """Return the bytes of `value` in this memory."""
        if value in self._host:
            return value_bytes(value) if self._counts_host and takes_host_memory(value) else 0
        return 0 if self._counts_host else value_bytes(value)

    def of(self, block: Block, elsewhere: Set[SSAValue] = frozenset()) -> list[int]:
        """Return the bytes live while each operation of `block` runs.

        The arguments of the block and the values in `elsewhere`, which the caller counts, are left out.
        """
        operations = list(block.ops)
        last_use = self.lifetimes.last_uses(block, operations, elsewhere)
        ending = [0] * len(operations)
        moments: list[int] = []
        current = 0
        for number, op in enumerate(operations):
            for result in op.results:
                if result in last_use:
                    size = self.size(result)
                    current += size
                    ending[last_use[result]] += size
            moments.append(current + self._inside(op))
            current -= ending[number]
        return moments

    def at_peak(self, block: Block, elsewhere: Set[SSAValue] = frozenset()) -> list[SSAValue]:
        """Return the values that are live at the peak of `block`, including those nested in the operation there."""
        operations = list(block.ops)
        moments = self.of(block, elsewhere)
        if not moments:
            return []
        peak = moments.index(max(moments))
        last_use = self.lifetimes.last_uses(block, operations, elsewhere)
        alive: list[SSAValue] = [
            result for op in operations[: peak + 1] for result in op.results if last_use.get(result, -1) >= peak
        ]
        inside = max(self._blocks(operations[peak]), key=self._peak, default=None)
        return alive if inside is None else [*alive, *self.at_peak(inside)]

    def _inside(self, op: Operation) -> int:
        if isinstance(op, CallOp):
            function = callee(op, self._symbols)
            if function not in self._of_function:
                self._of_function[function] = self._peak(function.body.block)
            return self._of_function[function]
        return max(map(self._peak, self._blocks(op)), default=0)

    def _blocks(self, op: Operation) -> list[Block]:
        """Return the blocks that an operation executes: those of its regions or of its callee."""
        if isinstance(op, CallOp):
            return [callee(op, self._symbols).body.block]
        return [block for region in op.regions for block in region.blocks]

    def _peak(self, block: Block) -> int:
        return max(self.of(block), default=0)
