"""Erasing what is trivially dead, by number: whose turn comes by it, and who is left alone with a tensor."""

from collections.abc import Iterator
from typing import NamedTuple

from sdy.passes.propagation.snapshot import DeadCode
from sdy.passes.propagation.step import OperationKind


class Touched(NamedTuple):
    """What erasing an operation has touched."""

    neighbours: list[int]
    """Operations that define an operand which now has one user at most, to be visited again, in the order of MLIR."""
    left_alone: list[int]
    """The operations that now are the only user of an operand, which can let them take part earlier."""


class Erasure:
    """What is dead, and what is erased, in the course of solving a snapshot once."""

    def __init__(self, dead_code: DeadCode, kinds: list[OperationKind | None]) -> None:
        self.dead = set(dead_code.dead)
        """The operations that are trivially dead now."""
        self.erased: dict[int, None] = {}
        """The operations that are erased, in order; those in another one before it."""
        self._code = dead_code
        self._kinds = kinds
        self._readers = [list(readers) for readers in dead_code.readers]

    def erase(self, number: int) -> Touched:
        """Erase a dead operation with all that is in it, and keep up what is dead, and the kinds of operations."""
        code = self._code
        defining: dict[int, None] = {}
        operands: dict[int, None] = {}
        for inner in reversed(range(number, number + code.sizes[number])):
            if inner in self.erased:
                continue
            self.erased[inner] = None
            self._kinds[inner] = None
            self.dead.discard(inner)
            for operand in code.operands[inner]:
                operands[operand] = None
                definer = code.definers[operand]
                if definer is not None and len({*self._readers[operand]} - {inner}) < 2:
                    defining[definer] = None
            for operand in {*code.operands[inner]}:
                self._readers[operand] = [reader for reader in self._readers[operand] if reader != inner]
        neighbours = [definer for definer in defining if definer not in self.erased]
        self.dead.update(filter(self._is_dead, neighbours))
        return Touched(neighbours, [user for operand in operands for user in self._left_alone_with(operand)])

    def _is_dead(self, number: int) -> bool:
        """Whether no result of an operation is read any more, of those that can be erased then."""
        results = self._code.results.get(number)
        return results is not None and not any(self._readers[result] for result in results)

    def _left_alone_with(self, operand: int) -> Iterator[int]:
        if len(self._readers[operand]) != 1:
            return
        (number,) = self._readers[operand]
        user = self._code.users.get(number)
        if user is not None and self._kinds[number] is not None:
            reuses = user.always_reuses or any(len(self._readers[tensor]) > 1 for tensor in user.operands)
            self._kinds[number] = user.kinds.reusing if reuses else user.kinds.alone
            yield number
