"""Erasure of trivially dead operations during propagation, by number, and its effects on other operations."""

from collections.abc import Iterator
from typing import NamedTuple

from sdy.passes.propagation.snapshot import DeadCode
from sdy.passes.propagation.step import OperationKind


class ErasureEffects(NamedTuple):
    """The operations that the erasure of an operation affects."""

    definers: list[int]
    """The operations to revisit, in MLIR's order: they define an operand that has at most one user left."""
    sole_users: list[int]
    """The operations that are now the only user of an operand, and may therefore join in an earlier stage."""


class Erasure:
    """The dead and the erased operations while a solver runs."""

    def __init__(self, dead_code: DeadCode, kinds: list[OperationKind | None]) -> None:
        self.dead = set(dead_code.dead)
        """The operations that are trivially dead now."""
        self.erased: dict[int, None] = {}
        """The erased operations in order, nested operations before their parents."""
        self._code = dead_code
        self._kinds = kinds
        self._readers = [list(readers) for readers in dead_code.readers]

    def erase(self, number: int) -> ErasureEffects:
        """Erase a dead operation with all nested operations, and update the dead operations and the kinds."""
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
        definers = [definer for definer in defining if definer not in self.erased]
        self.dead.update(filter(self._is_dead, definers))
        return ErasureEffects(definers, [user for operand in operands for user in self._sole_user_of(operand)])

    def _is_dead(self, number: int) -> bool:
        """Return whether an operation can be erased, and none of its results has a reader left."""
        results = self._code.results.get(number)
        return results is not None and not any(self._readers[result] for result in results)

    def _sole_user_of(self, operand: int) -> Iterator[int]:
        """Yield the only user of `operand`, if there is just one, and update its kind."""
        if len(self._readers[operand]) != 1:
            return
        (number,) = self._readers[operand]
        user = self._code.users.get(number)
        if user is not None and self._kinds[number] is not None:
            reuses = user.always_reuses or any(len(self._readers[tensor]) > 1 for tensor in user.operands)
            self._kinds[number] = user.kinds.reusing if reuses else user.kinds.alone
            yield number
