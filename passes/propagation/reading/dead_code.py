"""Analysis of the operations that are trivially dead, or become so when others are erased, and of their operands."""

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.transforms.dead_code_elimination import would_be_trivially_dead

from sdy.ir.fast_access import is_terminator, operands_of
from sdy.ir.shapes import is_scalar
from sdy.ir.walking import operations
from sdy.passes.propagation.reading.kinds import has_several_uses, kinds_by_use
from sdy.passes.propagation.snapshot import DeadCode, User
from sdy.passes.propagation.step import OperationKind


def is_trivially_dead(operation: Operation) -> bool:
    """Return whether `operation` has no used result and no side effect."""
    for result in operation.results:
        if result.first_use is not None:
            return False
    # Most operations without results are terminators; the memoized trait check is faster.
    return not is_terminator(operation) and would_be_trivially_dead(operation)


def read_dead_code(
    dead: Sequence[int], ops: Sequence[Operation], kinds: Sequence[OperationKind | None], conservative: bool
) -> DeadCode:
    """Analyze the erasure of trivially dead operations.

    Args:
        dead: The numbers of the trivially dead operations in `ops`.
        ops: All operations of the module.
        kinds: The kind of each operation.
        conservative: Whether the kinds are conservative.
    """
    if not dead:
        return DeadCode((), {}, {}, {}, (), (), {})
    return _DeadCodeReader(ops, kinds, conservative).read(dead)


class _DeadCodeReader:
    def __init__(self, ops: Sequence[Operation], kinds: Sequence[OperationKind | None], conservative: bool) -> None:
        self.ops = ops
        self.kinds = kinds
        self.kinds_by_use = kinds_by_use(conservative)
        self.numbers = dict(zip(map(id, ops), range(len(ops)), strict=True))
        self.sizes: dict[int, int] = {}
        self.operands: dict[int, tuple[int, ...]] = {}
        self.values: dict[SSAValue, int] = {}
        """The number of each value."""
        self.readers: list[tuple[int, ...]] = []
        self.remaining_uses: list[int] = []
        """The number of uses of each value after the erasures so far."""

    def read(self, dead: Sequence[int]) -> DeadCode:
        pending = list(dead)
        while pending:
            pending += self._erase(pending.pop())
        results = {
            number: tuple([self.values[result] for result in self.ops[number].results if result in self.values])
            for number in self.sizes
        }
        owners = [value.owner for value in self.values]
        definers = [self.numbers[id(owner)] if isinstance(owner, Operation) else None for owner in owners]
        return DeadCode(tuple(dead), self.sizes, self.operands, results, definers, self.readers, self._users())

    def _erase(self, number: int) -> list[int]:
        """Remove the uses by an operation and its nested operations; return the operations that become dead."""
        if number in self.sizes:
            return []
        nested = operations(self.ops[number])
        self.sizes[number] = len(nested)
        unused: dict[Operation, None] = {}
        for inner, op in enumerate(nested, number):
            if inner in self.operands:
                continue
            self.operands[inner] = values = tuple(map(self._value, operands_of(op)))
            for value, operand in zip(values, operands_of(op), strict=True):
                self.remaining_uses[value] -= 1
                if not self.remaining_uses[value] and isinstance(operand.owner, Operation):
                    unused[operand.owner] = None
        return [self.numbers[id(op)] for op in unused if self._is_dead(op)]

    def _is_dead(self, op: Operation) -> bool:
        is_used = any(self.remaining_uses[self._value(result)] for result in op.results)
        return not is_used and would_be_trivially_dead(op)

    def _value(self, value: SSAValue) -> int:
        number = self.values.setdefault(value, len(self.values))
        if number == len(self.readers):
            self.readers.append(tuple([self.numbers[id(use.operation)] for use in value.uses]))
            self.remaining_uses.append(len(self.readers[number]))
        return number

    def _users(self) -> dict[int, User]:
        users: dict[int, User] = {}
        for number in {reader for readers in self.readers for reader in readers}:
            op = self.ops[number]
            kinds = None if self.kinds[number] is None else self.kinds_by_use.of(op)
            if kinds is not None:
                tensors = [operand for operand in operands_of(op) if not is_scalar(operand)]
                numbered = [self.values[operand] for operand in tensors if operand in self.values]
                others = [operand for operand in tensors if operand not in self.values]
                users[number] = User(kinds, any(map(has_several_uses, others)), tuple(numbered))
        return users
