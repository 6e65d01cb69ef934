"""What is trivially dead in a module, or will be when others are erased, and what erasing it takes away from others."""

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.transforms.dead_code_elimination import would_be_trivially_dead

from sdy.ir.fields import operands_of
from sdy.ir.shapes import is_scalar
from sdy.ir.traits import is_terminator
from sdy.ir.walking import operations
from sdy.passes.propagation.reading.kinds import has_several_uses, kinds_by_use
from sdy.passes.propagation.snapshot import DeadCode, User
from sdy.passes.propagation.step import OperationKind


def is_trivially_dead(operation: Operation) -> bool:
    """Whether no result of `operation` is used, and it does nothing else."""
    for result in operation.results:
        if result.first_use is not None:
            return False
    # Most of what has no result is a terminator, which traits that are remembered tell in less time.
    return not is_terminator(operation) and would_be_trivially_dead(operation)


def read_dead_code(
    dead: Sequence[int], ops: Sequence[Operation], kinds: Sequence[OperationKind | None], conservative: bool
) -> DeadCode:
    """What comes of it that `dead`, by their numbers in `ops`, are trivially dead."""
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
        """The numbers of the values."""
        self.readers: list[tuple[int, ...]] = []
        self.unread: list[int] = []
        """How many uses each value has when all that was met so far is erased."""

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
        """Take the uses in an operation away; the operations that are trivially dead then."""
        if number in self.sizes:
            return []
        inside = operations(self.ops[number])
        self.sizes[number] = len(inside)
        no_longer_read: dict[Operation, None] = {}
        for inner, op in enumerate(inside, number):
            if inner in self.operands:
                continue
            self.operands[inner] = values = tuple(map(self._value, operands_of(op)))
            for value, operand in zip(values, operands_of(op), strict=True):
                self.unread[value] -= 1
                if not self.unread[value] and isinstance(operand.owner, Operation):
                    no_longer_read[operand.owner] = None
        return [self.numbers[id(op)] for op in no_longer_read if self._is_dead(op)]

    def _is_dead(self, op: Operation) -> bool:
        is_read = any(self.unread[self._value(result)] for result in op.results)
        return not is_read and would_be_trivially_dead(op)

    def _value(self, value: SSAValue) -> int:
        number = self.values.setdefault(value, len(self.values))
        if number == len(self.readers):
            self.readers.append(tuple([self.numbers[id(use.operation)] for use in value.uses]))
            self.unread.append(len(self.readers[number]))
        return number

    def _users(self) -> dict[int, User]:
        users: dict[int, User] = {}
        for number in {reader for readers in self.readers for reader in readers}:
            op = self.ops[number]
            kinds = None if self.kinds[number] is None else self.kinds_by_use.of(op)
            if kinds is not None:
                tensors = [operand for operand in operands_of(op) if not is_scalar(operand)]
                touched = [self.values[operand] for operand in tensors if operand in self.values]
                others = [operand for operand in tensors if operand not in self.values]
                users[number] = User(kinds, any(map(has_several_uses, others)), tuple(touched))
        return users
