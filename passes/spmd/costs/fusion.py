"""Fused values: values that XLA computes inside the fusion of their users and never writes to memory."""

from collections.abc import Collection

from xdsl.ir import Operation, SSAValue

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
    """

    def __init__(self) -> None:
        self._is_fused: dict[SSAValue, bool] = {}

    def __contains__(self, value: SSAValue) -> bool:
        is_fused = self._is_fused.get(value)
        if is_fused is None:
            is_fused = self._is_fused[value] = _is_fused(value)
        return is_fused


def _is_fused(value: SSAValue) -> bool:
    owner = value.owner
    return (
        isinstance(owner, Operation)
        and _fuses(owner.name, _FUSED)
        and all(_fuses(use.operation.name, _FUSES) for use in value.uses)
    )


def _fuses(name: str, others: Collection[str]) -> bool:
    return name in others or movement(name) is not None
