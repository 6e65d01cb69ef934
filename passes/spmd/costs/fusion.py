"""Which values are computed as part of what uses them, as XLA fuses operations, and so never in memory."""

from collections.abc import Collection

from xdsl.ir import Operation, SSAValue

from sdy.rules import movement
from sdy.rules.elementwise import POINTWISE

_MOVING = "bitcast_convert clamp constant iota pad reshape select slice"

_FUSED = frozenset(f"stablehlo.{name}" for names in (POINTWISE, _MOVING) for name in names.split())
"""Operations that, beside those that only move elements, are computed as part of what uses their result."""

_FUSES = _FUSED | {"stablehlo.dynamic_slice", "stablehlo.reduce", "func.return", "stablehlo.return"}
"""Operations that compute their operands as they go."""


class FusedValues:
    """The values that are fused into all of their uses, in a module that does not change while this is asked.

    Each is looked at once: some constants have a use in each layer, and each of these asks.
    """

    def __init__(self) -> None:
        self._known: dict[SSAValue, bool] = {}

    def __contains__(self, value: SSAValue) -> bool:
        found = self._known.get(value)
        if found is None:
            found = self._known[value] = _is_fused(value)
        return found


def _is_fused(value: SSAValue) -> bool:
    owner = value.owner
    return (
        isinstance(owner, Operation)
        and _fuses(owner.name, _FUSED)
        and all(_fuses(use.operation.name, _FUSES) for use in value.uses)
    )


def _fuses(name: str, others: Collection[str]) -> bool:
    return name in others or movement(name) is not None
