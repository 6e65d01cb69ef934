"""Lifetimes: the values that are allocated in a block, and their last uses.

The lifetime of a value extends from its operation to its last use. Elementwise and data-movement operations are assumed
to be fused into their users, and then allocate nothing. The results of a loop reuse the buffers of its initial values,
and `dynamic_update_slice` updates its operand in place if nothing else reads the operand afterwards.
"""

from collections.abc import Iterable, Mapping, Sequence, Set

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from sdy.passes.common.donations import aliases
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.scatter import ScatterOp
from sdy.stablehlo.slicing import DynamicUpdateSliceOp


class Lifetimes:
    """Lifetimes of the values of a program, which has the values `host` in host memory.

    Args:
        main: The main function.
        host: The values in host memory.
    """

    def __init__(self, main: FuncOp, host: Set[SSAValue]) -> None:
        self._host = host
        self._fused = FusedValues()
        arguments, returned = main.body.block.args, _returned(main)
        alias = aliases(main)
        self._donated = {arguments[index] for index in alias}
        aliasing = {returned[index] for index in alias.values()}
        self.outside: Sequence[SSAValue] = [
            *arguments,
            *(value for value in dict.fromkeys(returned) if value not in aliasing),
        ]
        """The arguments of the main function, and its results that alias none of them."""
        self.elsewhere: Set[SSAValue] = {*arguments, *returned}
        """All arguments and results of the main function."""

    def last_uses(
        self, block: Block, operations: Sequence[Operation], elsewhere: Set[SSAValue] = frozenset()
    ) -> dict[SSAValue, int]:
        """Return the index of the last use of each value that is allocated in a block.

        Args:
            block: The block.
            operations: Its operations.
            elsewhere: The values that are allocated outside of the block.
        """
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

        The block arguments of a loop body and donated arguments may be overwritten, other arguments may not.
        """
        is_loop = isinstance(block.parent_op(), WhileOp)
        buffers: dict[SSAValue, SSAValue] = {}
        for number, op in enumerate(operations):
            overwritten: set[SSAValue] = set()
            for operand, result in in_place(op):
                if isinstance(operand, BlockArgument):
                    is_owned = is_loop or operand in self._donated
                else:
                    is_owned = operand not in self._fused
                stays = (operand in self._host) is (result in self._host)
                if is_owned and stays and last_use[operand] == number and operand not in overwritten:
                    overwritten.add(operand)
                    buffers[result] = buffers.get(operand, operand)
        return buffers


def _returned(main: FuncOp) -> Sequence[SSAValue]:
    end = main.body.block.last_op
    return end.operands if end is not None else ()


def _used(op: Operation) -> Sequence[SSAValue]:
    """Return the operands of an operation and of the operations nested in it."""
    return op.operands if not op.regions else [operand for inner in op.walk() for operand in inner.operands]


_PLACEMENT = "annotate_device_placement"


def is_placement(op: Operation) -> bool:
    """Return whether `op` is JAX's placement annotation, which moves its operand to host or device memory."""
    return isinstance(op, CustomCallOp) and op.call_target_name.data == _PLACEMENT


def in_place(op: Operation) -> Iterable[tuple[SSAValue, SSAValue]]:
    """Return the pairs of an operand and a result that may alias it."""
    if isinstance(op, WhileOp):
        return zip(op.operands, op.results, strict=True)
    if isinstance(op, DynamicUpdateSliceOp):
        return [(op.operand, op.result)]
    if isinstance(op, ScatterOp):
        return zip(op.inputs, op.results, strict=True)
    if is_placement(op):
        return zip(op.operands, op.results, strict=True)
    return ()
