"""Fused values: values that XLA computes inside the fusion of their users and never writes to memory."""

from collections.abc import Collection, Iterable, Iterator

from xdsl.ir import Operation, OpResult, SSAValue

from sdy.dialect.attributes import ORDERS
from sdy.ir.fast_access import is_terminator
from sdy.rules import movement
from sdy.rules.elementwise import POINTWISE

_MOVING = "bitcast_convert clamp constant iota pad reshape select slice"

_FUSED = frozenset(f"stablehlo.{name}" for names in (POINTWISE, _MOVING) for name in names.split())
"""Operations that can be fused into their users, in addition to those that only move elements."""

_FUSES = _FUSED | {"stablehlo.dynamic_slice", "stablehlo.reduce", "func.return", "stablehlo.return"}
"""Operations into which the producers of their operands can be fused."""


class FusedValues:
    """The set of values that are fused into all of their users, computed lazily.

    Answers are memoized, because some constants have a use in every layer. The module must not change meanwhile.

    Args:
        arguments: Arguments of the program that are fused: a larger program, which contains it, computes them.
        is_whole: False for a part of a larger program, whose results may be fused, too.
    """

    def __init__(self, arguments: Iterable[SSAValue] = (), *, is_whole: bool = True) -> None:
        self._is_fused = dict.fromkeys(arguments, True)
        self._ends: dict[Operation, Operation] = {}
        self._readers: dict[SSAValue, set[Operation]] = {}
        self._is_whole = is_whole

    def __contains__(self, value: SSAValue) -> bool:
        is_fused = self._is_fused.get(value)
        if is_fused is None:
            origin = before_ordering(value)
            is_fused = self._is_fused[value] = _is_fused(value) if origin is value else origin in self
        return is_fused

    def is_returned(self, value: SSAValue) -> bool:
        """Return whether `value` is written for the caller or the next iteration, by the fusion that computes it."""
        return self._is_whole and any(is_terminator(use.operation) for use in value.uses)

    def readers_of(self, value: SSAValue) -> Collection[Operation]:
        """Return one user of `value` for each fusion that reads it. Memoized, as each user asks."""
        readers = self._readers.get(value)
        if readers is None:
            of_fusions: dict[Operation, Operation] = {}
            for use in value.uses:
                of_fusions.setdefault(self.end_of(use.operation), use.operation)
            readers = self._readers[value] = {*of_fusions.values()}
        return readers

    def end_of(self, op: Operation) -> Operation:
        """Return the operation at which the fusion that computes `op` ends, along the first use of each value."""
        path: list[Operation] = []
        while op not in self._ends and (following := self._following(op)) is not None:
            path.append(op)
            op = following
        end = self._ends.setdefault(op, op)
        self._ends.update(dict.fromkeys(path, end))
        return end

    def _following(self, op: Operation) -> Operation | None:
        if not op.results or op.results[0] not in self:
            return None
        users = (use.operation for use in op.results[0].uses)
        return next((user for user in users if not is_terminator(user) and user.parent is op.parent), None)


def _is_fused(value: SSAValue) -> bool:
    owner = value.owner
    return (
        isinstance(owner, Operation)
        and _fuses(owner.name, _FUSED)
        and all(_fuses(user.name, _FUSES) for user in _users(value))
    )


def _users(value: SSAValue) -> Iterator[Operation]:
    """Yield the users of a value, those behind ordering barriers included."""
    for use in value.uses:
        if ORDERS in use.operation.attributes:
            yield from _users(use.operation.results[use.index])
        else:
            yield use.operation


def before_ordering(value: SSAValue) -> SSAValue:
    """Return the value that an ordering barrier, which moves no data, passes on as `value`."""
    while isinstance(value, OpResult) and ORDERS in value.op.attributes:
        value = value.op.operands[value.index]
    return value


def _fuses(name: str, others: Collection[str]) -> bool:
    return name in others or movement(name) is not None
