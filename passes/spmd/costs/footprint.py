"""The memory that a device needs for a partitioned program, told from the program alone.

Values live from the operation that makes them to the last one that uses them. What computes each element of its result
from few others is taken to be fused into what uses it, and then needs no memory of its own. A loop's results lie where
its initial values did, and a slice is updated in place, where nothing else reads what was there before.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from sdy.passes.common.call_graph import callee, main_function
from sdy.passes.common.symbols import Symbols
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.passes.spmd.costs.sizes import value_bytes
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.scatter import ScatterOp
from sdy.stablehlo.slicing import DynamicUpdateSliceOp


@dataclass(frozen=True, slots=True)
class Moment:
    """What is in memory while an operation of the main function runs, beside arguments and results."""

    operation: Operation
    bytes: int


@dataclass(frozen=True)
class Footprint:
    """The memory of a device over a run of a program, in bytes."""

    outside: Sequence[SSAValue]
    """Arguments and results, which are there all the time."""
    moments: Sequence[Moment]
    """The operations of the main function, in their order."""
    at_peak: Sequence[SSAValue]
    """What is in memory beside those when most is, also what is inside of the operation that runs then."""

    @property
    def outside_bytes(self) -> int:
        """What arguments and results take."""
        return sum(map(value_bytes, self.outside))

    @property
    def peak(self) -> Moment | None:
        """When most is in memory; None where nothing runs."""
        return max(self.moments, key=lambda moment: moment.bytes, default=None)


def peak_bytes(module: ModuleOp) -> int:
    """The bytes of arguments, results, and of what is alive at once in between, on one device."""
    block = main_function(module).body.block
    outside = _outside(block)
    return sum(map(value_bytes, outside)) + max(_Lifetimes(Symbols(module)).of(block, {*outside}), default=0)


def footprint(module: ModuleOp) -> Footprint:
    """The memory that one device needs over a run of the partitioned `module`."""
    block = main_function(module).body.block
    outside = _outside(block)
    lifetimes = _Lifetimes(Symbols(module))
    moments = [*map(Moment, block.ops, lifetimes.of(block, {*outside}))]
    return Footprint(outside, moments, lifetimes.at_peak(block, {*outside}))


def _outside(block: Block) -> list[SSAValue]:
    returned = block.last_op.operands if block.last_op is not None else ()
    return [*block.args, *dict.fromkeys(returned)]


class _Lifetimes:
    def __init__(self, symbols: Symbols):
        self._symbols = symbols
        self._fused = FusedValues()
        self._of_function: dict[FuncOp, int] = {}

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
                    size = value_bytes(result)
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
            for operand, result in _in_place(op):
                owned = is_loop if isinstance(operand, BlockArgument) else operand not in self._fused
                if owned and last_use[operand] == number and operand not in overwritten:
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


def _in_place(op: Operation) -> Iterable[tuple[SSAValue, SSAValue]]:
    """Pairs of an operand and the result that may take its place."""
    if isinstance(op, WhileOp):
        return zip(op.operands, op.results, strict=True)
    if isinstance(op, DynamicUpdateSliceOp):
        return [(op.operand, op.result)]
    if isinstance(op, ScatterOp):
        return zip(op.inputs, op.results, strict=True)
    return ()


def _used(op: Operation) -> list[SSAValue]:
    """What an operation uses, or operations inside it."""
    return [operand for inner in op.walk() for operand in inner.operands]
