"""Sharding rules: which dimensions of an operation's operands and results are split together.

A rule names factors, the independent loops of an operation. A matmul has three: `([i, k],[k, j])->([i, j])`.
Splitting factor `i` over an axis splits dimension 0 of the first operand and of the result over that axis. A dimension
can be made of several factors, major first, as reshapes need: `([ij])->([i, j])`.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from sdy.interned import Interned

TensorMapping = tuple[tuple[int, ...], ...]
"""The factors of each dimension of a tensor, major to minor, by their index in the rule."""


class FactorKind(Enum):
    """What splitting a factor asks of an operation."""

    PASS_THROUGH = "pass_through"
    """Nothing: each device computes its part of the result."""
    REDUCTION = "reduction"
    """Each device has a partial result; they are to be combined."""
    NEED_REPLICATION = "need_replication"
    """The operation needs this factor whole."""
    PERMUTATION = "permutation"
    """Each device needs data of others, such as a halo."""


@dataclass(frozen=True, slots=True, eq=False)
class OpShardingRule(Interned):
    """The factors of an operation, and how each tensor's dimensions are made of them.

    `reduction`, `need_replication` and `permutation` list, in ascending order, the factors of those kinds; all others
    pass through. Nothing is propagated along the factors in `blocked_propagation`. A custom rule was written by a
    person and is never dropped.
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
        """Whether a factor is in several tensors, so that something can be propagated from one to the other."""
        met: set[int] = set()
        for mapping in self.tensors:
            factors = factors_in((mapping,))
            if not met.isdisjoint(factors):
                return True
            met |= factors
        return False

    def kind(self, factor: int) -> FactorKind:
        """What splitting `factor` asks of the operation."""
        if factor in self.reduction:
            return FactorKind.REDUCTION
        if factor in self.need_replication:
            return FactorKind.NEED_REPLICATION
        if factor in self.permutation:
            return FactorKind.PERMUTATION
        return FactorKind.PASS_THROUGH

    def with_whole(self, factors: Collection[int]) -> "OpShardingRule":
        """The rule in which these factors are needed whole, and the others are of the kinds that they were."""
        if not factors:
            return self
        return replace(
            self,
            reduction=tuple(factor for factor in self.reduction if factor not in factors),
            need_replication=tuple(sorted({*self.need_replication, *factors})),
            permutation=tuple(factor for factor in self.permutation if factor not in factors),
        )


def factors_in(tensors: Iterable[TensorMapping]) -> set[int]:
    """The factors that dimensions of `tensors` are made of."""
    return {factor for mapping in tensors for dim in mapping for factor in dim}
