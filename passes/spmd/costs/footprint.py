"""The memory that a device needs for a partitioned program, told from the program alone.

Values live from the operation that makes them to the last one that uses them. What computes each element of its result
from few others is taken to be fused into what uses it, and then needs no memory of its own. A loop's results lie where
its initial values did, and a slice is updated in place, where nothing else reads what was there before.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from sdy.passes.common.call_graph import callee, main_function
from sdy.passes.common.symbols import Symbols
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.passes.spmd.costs.host_memory import host_values, takes_host_memory
from sdy.passes.spmd.costs.in_place import in_place
from sdy.passes.spmd.costs.sizes import value_bytes
from sdy.stablehlo.control_flow import WhileOp


@dataclass(frozen=True, slots=True)
class Moment:
    """What is in memory while an operation of the main function runs, beside arguments and results."""

    operation: Operation
    bytes: int


@dataclass(frozen=True)
class Footprint:
    """The memory of a device over a run of a program, in bytes, without the values on the host."""

    outside: Sequence[SSAValue]
    """Arguments and results, which are there all the time."""
    moments: Sequence[Moment]
    """The operations of the main function, in their order."""
    at_peak: Sequence[SSAValue]
    """What is in memory beside those when most is, also what is inside of the operation that runs then."""
    host_bytes: int
    """The peak bytes of the device's values in the memory of the host."""

    @property
    def outside_bytes(self) -> int:
        """What arguments and results take."""
        return sum(map(value_bytes, self.outside))

    @property
    def peak(self) -> Moment | None:
        """When most is in memory; None where nothing runs."""
        return max(self.moments, key=lambda moment: moment.bytes, default=None)


def peak_bytes(module: ModuleOp) -> int:
    """Return the bytes of arguments, results and values alive at once in between, in the memory of one device."""
    return _peak_bytes(module, _Lifetimes(Symbols(module), host_values(module)))


def host_bytes(module: ModuleOp) -> int:
    """Return the bytes that one device has at once in the memory of the host: arguments, results, offloaded values."""
    host = host_values(module)
    return _peak_bytes(module, _Lifetimes(Symbols(module), host, counts_host=True)) if host else 0


def footprint(module: ModuleOp) -> Footprint:
    """The memory that one device needs over a run of the partitioned `module`."""
    block = main_function(module).body.block
    outside, host = _outside(block), host_values(module)
    lifetimes = _Lifetimes(Symbols(module), host)
    moments = [*map(Moment, block.ops, lifetimes.of(block, {*outside}))]
    at_peak = [value for value in lifetimes.at_peak(block, {*outside}) if value not in host]
    return Footprint([value for value in outside if value not in host], moments, at_peak, host_bytes(module))


def _peak_bytes(module: ModuleOp, lifetimes: "_Lifetimes") -> int:
    block = main_function(module).body.block
    outside = _outside(block)
    return sum(map(lifetimes.size, outside)) + max(lifetimes.of(block, {*outside}), default=0)


def _outside(block: Block) -> list[SSAValue]:
    returned = block.last_op.operands if block.last_op is not None else ()
    return [*block.args, *dict.fromkeys(returned)]


class _Lifetimes:
    """The lifetimes of the values in one memory: that of the device or, with `counts_host`, that of the host."""

    def __init__(self, symbols: Symbols, host: Set[SSAValue], *, counts_host: bool = False):
        self._symbols = symbols
        self._host = host
        self._counts_host = counts_host
        self._fused = FusedValues()
        self._of_function: dict[FuncOp, int] = {}

    def size(self, value: SSAValue) -> int:
        """Return the bytes of `value` in this memory."""
        if value in self._host:
            return value_bytes(value) if self._counts_host and takes_host_memory(value) else 0
        return 0 if self._counts_host else value_bytes(value)

    def of(self, block: Block, elsewhere: set[SSAValue]) -> list[int]:
        """The bytes alive while each operation of a block runs, without its arguments and the values whose memory is
        `elsewhere`."""
        operations = list(block.ops)
        last_use = self._last_uses(block, elsewhere)
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

    def _last_uses(self, block: Block, elsewhere: set[SSAValue]) -> dict[SSAValue, int]:
        """Return the number of the last operation that uses each result for which memory is made."""
        operations = list(block.ops)
        last_use = {operand: number for number, op in enumerate(operations) for operand in _used(op)}
        buffers = self._buffers(block, operations, last_use)
        for value, buffer in buffers.items():
            last_use[buffer] = max(last_use[buffer], last_use.get(value, -1))
        elsewhere = elsewhere | {buffers[value] for value in elsewhere if value in buffers}
        return {
            value: number
            for value, number in last_use.items()
            if value not in elsewhere and value not in buffers and value not in self._fused
        }

    def _buffers(
        self, block: Block, operations: Sequence[Operation], last_use: Mapping[SSAValue, int]
    ) -> dict[SSAValue, SSAValue]:
        """Return, for each result that overwrites an operand, the value that the memory was first made for.

        The arguments of a loop's body may be overwritten, those of a function may not.
        """
        is_loop = isinstance(block.parent_op(), WhileOp)
        buffers: dict[SSAValue, SSAValue] = {}
        for number, op in enumerate(operations):
            overwritten: set[SSAValue] = set()
            for operand, result in in_place(op):
                owned = is_loop if isinstance(operand, BlockArgument) else operand not in self._fused
                stays = (operand in self._host) is (result in self._host)
                if owned and stays and last_use[operand] == number and operand not in overwritten:
                    overwritten.add(operand)
                    buffers[result] = buffers.get(operand, operand)
        return buffers

    def at_peak(self, block: Block, elsewhere: set[SSAValue]) -> list[SSAValue]:
        """What is alive in a block when most is, with what is in the operation that runs then."""
        operations = list(block.ops)
        moments = self.of(block, elsewhere)
        if not moments:
            return []
        peak = moments.index(max(moments))
        last_use = self._last_uses(block, elsewhere)
        alive: list[SSAValue] = [
            result for op in operations[: peak + 1] for result in op.results if last_use.get(result, -1) >= peak
        ]
        inside = max(self._blocks(operations[peak]), key=self._peak, default=None)
        return alive if inside is None else [*alive, *self.at_peak(inside, set())]

    def _inside(self, op: Operation) -> int:
        if isinstance(op, CallOp):
            function = callee(op, self._symbols)
            if function not in self._of_function:
                self._of_function[function] = self._peak(function.body.block)
            return self._of_function[function]
        return max(map(self._peak, self._blocks(op)), default=0)

    def _blocks(self, op: Operation) -> list[Block]:
        """The blocks that run within an operation."""
        if isinstance(op, CallOp):
            return [callee(op, self._symbols).body.block]
        return [block for region in op.regions for block in region.blocks]

    def _peak(self, block: Block) -> int:
        return max(self.of(block, set()), default=0)


def _used(op: Operation) -> list[SSAValue]:
    """What an operation uses, or operations inside it."""
    return [operand for inner in op.walk() for operand in inner.operands]
