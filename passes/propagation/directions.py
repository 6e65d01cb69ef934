"""Directions of propagation, and the stages of operation-priority propagation.

Propagating through all operations at once would let distant shardings win over near ones. So operations join in stages:
first the pass-through operations, last the forward direction of broadcasts. Each stage adds to the directions that
earlier stages allow.
"""

from collections.abc import Callable
from enum import Enum, IntFlag
from functools import cache

from sdy.rule import FactorKind, OpShardingRule


class Direction(IntFlag):
    """The directions in which axes propagate along a factor; `|` is the union, `&` the intersection."""

    NONE = 0
    FORWARD = 1
    """From operands to results."""
    BACKWARD = 2
    """From results to operands."""
    BOTH = 3

    # Directions are in the keys of the memoized steps, and the hash of an `IntFlag` is slow: a call into Python.
    __hash__ = int.__hash__


class Role(Enum):
    """The class of an operation by which the stages choose its directions."""

    PASS_THROUGH = "pass through"
    """Elementwise operations, reshapes, transposes, data-flow edges."""
    WINDOW = "window"
    """Dynamic slices and dynamic update slices."""
    BROADCAST = "broadcast"
    OTHER = "other"


def _when_single_use(role: Role, reuses: bool, kind: FactorKind) -> Direction:
    return Direction.NONE if reuses else _pass_through(role, reuses, kind)


def _pass_through(role: Role, reuses: bool, kind: FactorKind) -> Direction:
    if role is Role.PASS_THROUGH:
        return Direction.BOTH
    return Direction.FORWARD if role is Role.WINDOW else Direction.NONE


def _pass_through_factors(role: Role, reuses: bool, kind: FactorKind) -> Direction:
    if kind is not FactorKind.PASS_THROUGH:
        return Direction.NONE
    return _all_but_broadcast_forward(role, reuses, kind)


def _all_but_broadcast_forward(role: Role, reuses: bool, kind: FactorKind) -> Direction:
    return Direction.BACKWARD if role is Role.BROADCAST else Direction.BOTH


def _everything(role: Role, reuses: bool, kind: FactorKind) -> Direction:
    return Direction.BOTH


STAGES: tuple[Callable[[Role, bool, FactorKind], Direction], ...] = (
    _when_single_use,
    _pass_through,
    _pass_through_factors,
    _all_but_broadcast_forward,
    _everything,
)
"""The directions that each stage adds along a factor. The arguments: the operation's role, whether it reads a tensor
that has other uses, and the kind of the factor."""

ALL_STAGES = len(STAGES)


def directions(role: Role, reuses: bool, rule: OpShardingRule, stages: int) -> tuple[Direction, ...]:
    """Return the direction along each factor of `rule` in the first `stages` stages."""
    return tuple(
        Direction.NONE if factor in rule.blocked_propagation else _direction(role, reuses, rule.kind(factor), stages)
        for factor in range(rule.num_factors)
    )


@cache
def _direction(role: Role, reuses: bool, kind: FactorKind, stages: int) -> Direction:
    allowed = Direction.NONE
    for stage in STAGES[:stages]:
        allowed |= stage(role, reuses, kind)
    return allowed
