"""Builders of sharding rules, which add one factor at a time."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from xdsl.ir import Operation

from sdy.ir.shapes import shape_of
from sdy.rule import FactorKind, OpShardingRule, TensorMapping

PASS_THROUGH = FactorKind.PASS_THROUGH
REDUCTION = FactorKind.REDUCTION
NEED_REPLICATION = FactorKind.NEED_REPLICATION
PERMUTATION = FactorKind.PERMUTATION


class Factors(Protocol):
    """The interface of a builder of factors: of a sharding rule, or of the axes of a block operation."""

    def add(
        self, size: int, operands: Mapping[int, int], results: Mapping[int, int], kind: FactorKind = ..., /
    ) -> None:
        """Add a factor of `size` along `{operand: dimension}` and `{result: dimension}`."""

    def read_backwards(self, operand: int, dim: int, /) -> None:
        """Declare that the factor along dimension `dim` of an operand reads the dimension in reverse."""


class RuleBuilder:
    """Builder of the sharding rule of one operation.

    In a conservative rule, the sizes of the factors of each dimension multiply to exactly the dimension's size, except
    along factors with blocked propagation, so that no axis propagates to a dimension that it does not divide.

    Args:
        operand_ranks: The rank of each operand.
        result_ranks: The rank of each result.
        conservative: Build a conservative rule.
    """

    def __init__(self, operand_ranks: Iterable[int], result_ranks: Iterable[int], conservative: bool = False) -> None:
        self.conservative = conservative
        self._operands: list[list[list[int]]] = [[[] for _ in range(rank)] for rank in operand_ranks]
        self._results: list[list[list[int]]] = [[[] for _ in range(rank)] for rank in result_ranks]
        self._sizes: list[int] = []
        self._of_kind: dict[FactorKind, list[int]] = {kind: [] for kind in FactorKind}
        self._blocked: list[int] = []

    @classmethod
    def of(cls, op: Operation, conservative: bool = False) -> "RuleBuilder":
        """Return a builder for the operands and results of `op`."""
        return cls(
            (len(shape_of(operand)) for operand in op.operands),
            (len(shape_of(result)) for result in op.results),
            conservative,
        )

    def add(
        self,
        size: int,
        operands: Mapping[int, int],
        results: Mapping[int, int],
        kind: FactorKind = PASS_THROUGH,
        blocked: bool = False,
    ) -> None:
        """Add a factor.

        The factors of a dimension are added major to minor. A factor of size 1 is omitted from a dimension that already
        has a factor.

        Args:
            size: The size of the factor.
            operands: The dimensions that have the factor, as `{operand: dimension}`.
            results: The dimensions that have the factor, as `{result: dimension}`.
            kind: The kind of the factor.
            blocked: Do not propagate shardings along the factor.
        """
        factor = len(self._sizes)
        self._sizes.append(size)
        self._of_kind[kind].append(factor)
        if blocked:
            self._blocked.append(factor)
        for tensors, places in ((self._operands, operands), (self._results, results)):
            for tensor, dim in places.items():
                factors = tensors[tensor][dim]
                if size != 1 or not factors:
                    factors.append(factor)

    def read_backwards(self, operand: int, dim: int) -> None:
        """Do nothing: a sharding rule does not record the direction, except in the kind of the factor."""

    def add_to_operands(self, dim: int, size: int, kind: FactorKind = PASS_THROUGH) -> None:
        """Add a factor of `size` to dimension `dim` of each operand that has it."""
        self.add(size, _everywhere(self._operands, dim), {}, kind)

    def add_to_results(self, dim: int, size: int, kind: FactorKind = PASS_THROUGH) -> None:
        """Add a factor of `size` to dimension `dim` of each result that has it."""
        self.add(size, {}, _everywhere(self._results, dim), kind)

    def add_pointwise(
        self,
        shape: Sequence[int],
        kinds: Mapping[int, FactorKind] | None = None,
        blocked: Collection[int] = (),
        skipped: Collection[int] = (),
    ) -> None:
        """Add a factor for each dimension of `shape`, shared by all tensors of sufficient rank.

        Args:
            shape: The shape.
            kinds: The kinds of the factors of dimensions that are not pass-through.
            blocked: Dimensions along which shardings do not propagate.
            skipped: Dimensions that get no factor.
        """
        kinds = kinds or {}
        for dim, size in enumerate(shape):
            if dim not in skipped:
                operands, results = _everywhere(self._operands, dim), _everywhere(self._results, dim)
                self.add(size, operands, results, kinds.get(dim, PASS_THROUGH), dim in blocked)

    def build(self) -> OpShardingRule:
        """Build the rule. Each dimension without a factor gets its own factor of size 1."""
        sizes = list(self._sizes)
        return OpShardingRule(
            operands=_complete(self._operands, sizes),
            results=_complete(self._results, sizes),
            factor_sizes=tuple(sizes),
            reduction=tuple(self._of_kind[REDUCTION]),
            need_replication=tuple(self._of_kind[NEED_REPLICATION]),
            permutation=tuple(self._of_kind[PERMUTATION]),
            blocked_propagation=tuple(self._blocked),
        )


def identity_rule(shape: Sequence[int], num_operands: int = 1, num_results: int = 1) -> OpShardingRule:
    """Return the rule of an operation whose tensors all have `shape`, with a pass-through factor per dimension."""
    builder = RuleBuilder([len(shape)] * num_operands, [len(shape)] * num_results)
    builder.add_pointwise(shape)
    return builder.build()


def _everywhere(tensors: list[list[list[int]]], dim: int) -> dict[int, int]:
    return {index: dim for index, tensor in enumerate(tensors) if dim < len(tensor)}


def _complete(tensors: list[list[list[int]]], sizes: list[int]) -> tuple[TensorMapping, ...]:
    """Return the mappings of `tensors`; append a size of 1 to `sizes` for each dimension without a factor."""
    mappings: list[TensorMapping] = []
    for tensor in tensors:
        dims: list[tuple[int, ...]] = []
        for factors in tensor:
            if not factors:
                dims.append((len(sizes),))
                sizes.append(1)
            else:
                dims.append(tuple(factors))
        mappings.append(tuple(dims))
    return tuple(mappings)
