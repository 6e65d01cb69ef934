"""Sharding rules: which dimensions of an operation's operands and results are split together.

A rule names factors, the independent loops of an operation. A matmul has three: `([i, k],[k, j])->([i, j])`. Splitting
factor `i` over an axis splits dimension 0 of the first operand and of the result over that axis. A dimension may
consist of several factors, major first, as reshapes need: `([ij])->([i, j])`.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from sdy.interned import Interned

TensorMapping = tuple[tuple[int, ...], ...]
"""The factors of each dimension of a tensor, major to minor, by their index in the rule."""


class FactorKind(Enum):
    """The data movement that a split factor requires."""

    PASS_THROUGH = "pass_through"
    """None: each device computes its shard of the result."""
    REDUCTION = "reduction"
    """All-reduce: each device has a partial result."""
    NEED_REPLICATION = "need_replication"
    """All-gather: the operation needs this factor unsplit."""
    PERMUTATION = "permutation"
    """Collective-permute: each device needs data of other devices, such as a halo."""


@dataclass(frozen=True, slots=True, eq=False)
class OpShardingRule(Interned):
    """The factors of an operation, and the factors of each dimension of its tensors.

    Attributes:
        factor_sizes: The size of each factor.
        operands: The factors of each operand's dimensions.
        results: The factors of each result's dimensions.
        reduction: Reduction factors, in ascending order, as the next two; all other factors pass through.
        need_replication: Factors that must not be split.
        permutation: Permutation factors.
        blocked_propagation: Factors along which nothing is propagated.
        is_custom: Whether the user wrote the rule; a custom rule is never dropped.
    """

    factor_sizes: tuple[int, ...]
    operands: tuple[TensorMapping, ...]
    results: tuple[TensorMapping, ...]
    reduction: tuple[int, ...] = ()
    need_replication: tuple[int, ...] = ()
    permutation: tuple[int, ...] = ()
    blocked_propagation: tuple[int, ...] = ()
    is_custom: bool = False

    @property
    def num_factors(self) -> int:
        """The number of factors."""
        return len(self.factor_sizes)

    @property
    def tensors(self) -> tuple[TensorMapping, ...]:
        """The mappings of all operands, then of all results."""
        return self.operands + self.results

    @property
    def ties_tensors(self) -> bool:
        """True if two tensors share a factor, so that shardings can propagate between them."""
        seen: set[int] = set()
        for mapping in self.tensors:
            factors = factors_in((mapping,))
            if not seen.isdisjoint(factors):
                return True
            seen |= factors
        return False

    def kind(self, factor: int) -> FactorKind:
        """Return the kind of `factor`."""
        if factor in self.reduction:
            return FactorKind.REDUCTION
        if factor in self.need_replication:
            return FactorKind.NEED_REPLICATION
        if factor in self.permutation:
            return FactorKind.PERMUTATION
        return FactorKind.PASS_THROUGH

    def with_replicated(self, factors: Collection[int]) -> "OpShardingRule":
        """Return the rule with `factors` moved to `need_replication`; all others keep their kinds."""
        if not factors:
            return self
        return replace(
            self,
            reduction=tuple(factor for factor in self.reduction if factor not in factors),
            need_replication=tuple(sorted({*self.need_replication, *factors})),
            permutation=tuple(factor for factor in self.permutation if factor not in factors),
        )


def factors_in(tensors: Iterable[TensorMapping]) -> set[int]:
    """Return all factors of `tensors`."""
    return {factor for mapping in tensors for dim in mapping for factor in dim}
