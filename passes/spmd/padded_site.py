"""Operations on padded tensors, rewritten so that the unpadded elements of their results stay the same.

Along a pass-through factor, an element depends on elements at the same position only, so the padding of an operand only
affects the padding of the result. Along a reduction factor, the padding is filled with the identity element. Sizes and
indices in attributes are changed to those of the padded tensors.
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

_CREATES_ELEMENTS = (BroadcastInDimOp, IotaOp)


@dataclass(frozen=True)
class PaddedSite(Generic[OpT]):
    """An operation whose operands and results have padded types already, but whose attributes are unpadded."""

    site: Site[OpT]
    rule: OpShardingRule | None
    padding: Padding

    @property
    def op(self) -> OpT:
        """The operation."""
        return self.site.op

    @property
    def operands(self) -> tuple[Layout, ...]:
        """The layouts of the operands, with unpadded shapes."""
        return self.site.operands

    @property
    def results(self) -> tuple[Layout, ...]:
        """The layouts of the results, with unpadded shapes."""
        return self.site.results

    def fill(self, operand: int, dims: Collection[int], element: float | SSAValue) -> None:
        """Fill the padding of an operand along `dims` with `element`."""
        op = self.site.op
        value = op.operands[operand]
        op.operands[operand] = self.padding.fill(Insertion.before(op), value, self.operands[operand], dims, element)

    def reduced_dims(self, operand: int) -> list[int]:
        """Return the uneven dimensions of an operand that have a reduction factor."""
        if self.rule is None:
            return []
        mapping, reduction = self.rule.operands[operand], self.rule.reduction
        return [
            dim for dim in self.operands[operand].uneven_dims if any(factor in reduction for factor in mapping[dim])
        ]

    def carries(self, *kinds: FactorKind, moved: Mapping[int, Collection[int]] = MappingProxyType({})) -> bool:
        """Return whether each uneven dimension is a single pass-through factor, of equal padded size in all tensors.

        The padding of the operands then affects the padding of the results only.

        Args:
            kinds: Other factor kinds to accept.
            moved: For each tensor, by its index with the operands first, the dimensions to ignore.
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
        is_created = not goes_in and isinstance(self.op, _CREATES_ELEMENTS)
        return rule.kind(factor) is FactorKind.PASS_THROUGH and comes_out and (goes_in or is_created)


def carries(site: PaddedSite[Any]) -> bool:
    """Return whether the padding of operands affects only the padding of results.

    This is enough to pad an operation whose attributes have no sizes or indices.
    """
    return site.carries()
