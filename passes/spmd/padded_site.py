"""An operation on padded tensors: what makes the elements of its result those of the unpadded operation.

Along a factor that passes through, an element depends on elements at the same place only, so what the padding holds
ends up in the padding of the result. Where a factor is reduced, the padding is filled with what changes no result.
Operations that name sizes or places are told those of the padded tensors.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic

from xdsl.ir import SSAValue

from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.padding import Insertion, Padding
from sdy.passes.spmd.site import OpT, Site
from sdy.rule import FactorKind, OpShardingRule
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.constants import IotaOp

_MAKES_ELEMENTS = (BroadcastInDimOp, IotaOp)


@dataclass(frozen=True)
class PaddedSite(Generic[OpT]):
    """An operation whose values have padded types already, though it was written for unpadded ones."""

    site: Site[OpT]
    rule: OpShardingRule | None
    padding: Padding

    @property
    def op(self) -> OpT:
        """The operation."""
        return self.site.op

    @property
    def operands(self) -> tuple[Layout, ...]:
        """The layouts of the operands; their shapes are those without padding."""
        return self.site.operands

    @property
    def results(self) -> tuple[Layout, ...]:
        """The layouts of the results."""
        return self.site.results

    def fill(self, operand: int, dims: Collection[int], element: float | SSAValue) -> None:
        """Fill the padding of an operand along `dims`."""
        op = self.site.op
        value = op.operands[operand]
        op.operands[operand] = self.padding.fill(Insertion.before(op), value, self.operands[operand], dims, element)

    def reduced_dims(self, operand: int) -> list[int]:
        """The uneven dimensions of an operand that are reduced."""
        if self.rule is None:
            return []
        mapping, reduction = self.rule.operands[operand], self.rule.reduction
        return [
            dim for dim in self.operands[operand].uneven_dims if any(factor in reduction for factor in mapping[dim])
        ]

    def carries(self, *kinds: FactorKind, moved: Mapping[int, Collection[int]] = MappingProxyType({})) -> bool:
        """Whether each uneven dimension is one whole factor, padded alike wherever it is, that passes through.

        It may also be of one of `kinds`. The dimensions `moved` of a tensor, counted with the operands first, are not
        looked at.
        """
        if (rule := self.rule) is None:
            return False
        padded_sizes: dict[int, set[int]] = {}
        tensors = list(zip(rule.tensors, self.site.layouts, strict=True))
        for index, (mapping, layout) in enumerate(tensors):
            for dim in layout.uneven_dims:
                if dim in moved.get(index, ()):
                    continue
                if len(mapping[dim]) != 1:
                    return False
                padded_sizes[mapping[dim][0]] = set()
        for mapping, layout in tensors:
            for factors, size, padded in zip(mapping, layout.shape, layout.padded_shape, strict=True):
                for factor in padded_sizes.keys() & set(factors):
                    if len(factors) > 1 or size != rule.factor_sizes[factor]:
                        return False
                    padded_sizes[factor].add(padded)
        return all(
            len(sizes) == 1 and (rule.kind(factor) in kinds or self._passes_through(rule, factor))
            for factor, sizes in padded_sizes.items()
        )

    def _passes_through(self, rule: OpShardingRule, factor: int) -> bool:
        goes_in, comes_out = (
            any((factor,) in mapping for mapping in tensors) for tensors in (rule.operands, rule.results)
        )
        is_made = not goes_in and isinstance(self.op, _MAKES_ELEMENTS)
        return rule.kind(factor) is FactorKind.PASS_THROUGH and comes_out and (goes_in or is_made)


def carries(site: PaddedSite[Any]) -> bool:
    """Whether what the padding of an operation's operands holds ends up in the padding of its results, and only there.

    It is all that is asked of an operation that names no sizes and no places.
    """
    return site.carries()
