"""Static estimate of the peak memory of one device in a partitioned program.

The live range of a value extends from its defining operation to its last use. Elementwise and data-movement operations
are assumed to be fused into their users, and then allocate nothing. The results of a loop reuse the buffers of its
initial values, and `dynamic_update_slice` updates its operand in place if nothing else reads the operand afterwards.
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
    """The temporary values that are live while one operation of the main function runs."""

    operation: Operation
    bytes: int
    """Bytes of the live values, without the arguments and results of the function."""


@dataclass(frozen=True)
class Footprint:
    """The memory use of one device over a run of a program, in bytes, without the values in host memory."""

    outside: Sequence[SSAValue]
    """The arguments and results of the main function, which are live during the entire run."""
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
    return _peak_bytes(module, _Lifetimes(Symbols(module), host_values(module)))


def host_bytes(module: ModuleOp) -> int:
    """Return the peak bytes of one device's values in host memory: arguments, results and offloaded values."""
    host = host_values(module)
    return _peak_bytes(module, _Lifetimes(Symbols(module), host, counts_host=True)) if host else 0


def footprint(module: ModuleOp) -> Footprint:
    """Return the memory use of one device over a run of the partitioned `module`."""
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
    """Live ranges of the values in one memory: device memory or, with `counts_host`, host memory."""

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
        """Return the bytes live while each operation of `block` runs.

        The arguments of the block and the values in `elsewhere`, which the caller counts, are left out.
        """
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
        """Return the index of the last operation that uses each allocated result."""
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
        """Map each result that overwrites an operand to the value for which the buffer was allocated.

        The block arguments of a loop body may be overwritten, the arguments of a function may not.
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
        """Return the values that are live at the peak of `block`, including those nested in the operation there."""
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
        """Return the blocks that an operation executes: those of its regions or of its callee."""
        if isinstance(op, CallOp):
            return [callee(op, self._symbols).body.block]
        return [block for region in op.regions for block in region.blocks]

    def _peak(self, block: Block) -> int:
        return max(self.of(block, set()), default=0)


def _used(op: Operation) -> list[SSAValue]:
    """Return the operands of an operation and of the operations nested in it."""
    return [operand for inner in op.walk() for operand in inner.operands]
