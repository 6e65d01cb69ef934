"""Copies of kernels, and replacement of the values that kernels read."""

from collections.abc import Mapping, Set

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from sdy.ir.editing import erase, insert
from sdy.ir.walking import operations
from sdy.passes.spmd.costs.host_memory import moved_to
from sdy.passes.spmd.costs.kernels import Kernel, source
from sdy.passes.spmd.local_module import COLLECTIVES, Channels, first_free_channel

Values = Mapping[SSAValue, SSAValue]
"""New values by the values that they replace."""

_Copied = dict[tuple[Operation, tuple[SSAValue, ...]], Operation]
"""The copies of operations inside of kernels, by the operation and its new operands."""


class KernelEditor:
    """Edits the kernels of a block.

    An operation inside of several kernels is copied for those that read other values than before.

    Args:
        block: The block.
        mark: The unit attribute of copied operations, if any.
    """

    def __init__(self, block: Block, mark: str = "") -> None:
        self._block = block
        self._mark = mark
        self._operations = {*block.ops}
        function = block.parent_op()
        assert function is not None
        self._channels = Channels(first_free_channel(operations(function)))
        self._copied: _Copied = {}

    def copy(self, kernel: Kernel, new: Values, at: Operation) -> Operation:
        """Copy `kernel` before `at`, with `new` values for some that it reads; return the copy of its operation.

        The operations inside of it are copied too: XLA would write the results of expensive ones to memory if the
        kernel and its copy shared them.
        """
        copied = kernel.operation.clone()
        self._replace(kernel.operation, copied, new, {*kernel.reads}, at, {})
        self._insert(copied, at)
        return copied

    def move(self, value: SSAValue, kind: str, at: Operation) -> Operation:
        """Move `value` to the memory `kind` before `at`; return the operation."""
        moved = moved_to(kind, value)
        insert(moved, InsertPoint.before(at))
        return moved

    def replace(self, kernel: Kernel, new: Values) -> None:
        """Let `kernel` read `new` values."""
        op = kernel.operation
        self._replace(op, op, new, {*kernel.reads}, op, self._copied, copies_all=False)

    def erase_dead(self) -> None:
        """Erase the operations without users."""
        for op in reversed([*self._block.ops]):
            if is_trivially_dead(op):
                erase(op)

    def _replace(
        self,
        old: Operation,
        edited: Operation,
        new: Values,
        reads: Set[SSAValue],
        at: Operation,
        copied_ops: _Copied,
        *,
        copies_all: bool = True,
    ) -> None:
        """Replace the operands of `edited`, which is `old` or a clone of it, and of the operations nested in it."""

        def copied_value(value: SSAValue) -> SSAValue:
            """Return `value` from the new values, with the operations between them copied before `at`."""
            before = source(value)
            if before in new:
                return new[before]
            owner = before.owner
            if before in reads or not isinstance(owner, Operation) or owner not in self._operations:
                return value
            operands = [copied_value(operand) for operand in owner.operands]
            is_same = all(one is other for one, other in zip(operands, owner.operands, strict=True))
            if is_same and not (copies_all and operands):
                return value
            key = owner, tuple(operands)
            if key not in copied_ops:
                copied = owner.clone()
                copied.operands = operands
                self._insert(copied, at)
                copied_ops[key] = copied
            return copied_ops[key].results[owner.results.index(before)]

        for inner, copied in zip([*old.walk()], [*edited.walk()], strict=True):
            for index, operand in enumerate([*inner.operands]):
                value = copied_value(operand)
                if value is not operand:
                    copied.operands[index] = value

    def _insert(self, new: Operation, at: Operation) -> None:
        if self._mark:
            new.attributes[self._mark] = UnitAttr()
        for op in new.walk():
            if isinstance(op, COLLECTIVES):
                op.properties["channel_handle"] = self._channels.next()
        insert(new, InsertPoint.before(at))
