"""The memory that a device needs for a partitioned program, told from the program alone.

Values live from the operation that makes them to the last one that uses them. What computes each element of its result
from few others is taken to be fused into what uses it, and then needs no memory of its own.
"""

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, SSAValue

from sdy.passes.common.call_graph import callee, main_function
from sdy.passes.common.symbols import Symbols
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.passes.spmd.costs.sizes import value_bytes


def peak_bytes(module: ModuleOp) -> int:
    """The bytes of arguments, results, and of what is alive at once in between, on one device."""
    main = main_function(module)
    block = main.body.block
    returned = block.last_op.operands if block.last_op is not None else ()
    outside = sum(map(value_bytes, (*block.args, *dict.fromkeys(returned))))
    return outside + _Peak(Symbols(module)).of(block, set(returned))


class _Peak:
    def __init__(self, symbols: Symbols):
        self._symbols = symbols
        self._fused = FusedValues()
        self._of_function: dict[FuncOp, int] = {}

    def of(self, block: Block, elsewhere: set[SSAValue]) -> int:
        """The most bytes alive at once in a block, without its arguments and the values whose memory is `elsewhere`."""
        operations = list(block.ops)
        last_use = {operand: number for number, op in enumerate(operations) for operand in _used(op)}
        alive: dict[SSAValue, int] = {}
        ending: dict[int, list[SSAValue]] = {}
        peak = current = 0
        for number, op in enumerate(operations):
            for result in op.results:
                if result not in elsewhere and result not in self._fused and result in last_use:
                    alive[result] = value_bytes(result)
                    current += alive[result]
                    ending.setdefault(last_use[result], []).append(result)
            peak = max(peak, current + self._inside(op))
            current -= sum(alive.pop(value) for value in ending.get(number, ()))
        return peak

    def _inside(self, op: Operation) -> int:
        if isinstance(op, CallOp):
            function = callee(op, self._symbols)
            if function not in self._of_function:
                self._of_function[function] = self.of(function.body.block, set())
            return self._of_function[function]
        return max((self.of(block, set()) for region in op.regions for block in region.blocks), default=0)


def _used(op: Operation) -> list[SSAValue]:
    """What an operation uses, or operations inside it."""
    return [operand for inner in op.walk() for operand in inner.operands]
