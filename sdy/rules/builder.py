"""Building a sharding rule, a factor at a time."""

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
    """What takes the factors of an operation one by one: a sharding rule, or the axes of a block operation."""

    def add(
        self, size: int, operands: Mapping[int, int], results: Mapping[int, int], kind: FactorKind = ..., /
    ) -> None:
        """Add a factor of `size` along `{operand: dimension}` and `{result: dimension}`."""

    def read_backwards(self, operand: int, dim: int, /) -> None:
        """Say that what was added along dimension `dim` of an operand reads it from the last element on."""


class RuleBuilder:
    """The factors of one operation as they are found.

    In a conservative rule, a dimension's factors multiply to exactly its size wherever something is propagated along
    them, so that no axis is propagated to a dimension that it doesn't divide.
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
        """A builder for the operands and results of `op`."""
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
        """Add a factor of `size` to the dimensions that it splits: `{operand: dimension}` and `{result: dimension}`.

        A dimension's factors are added major to minor. A factor of size 1 is left out of a dimension that already has
        a factor.
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
        """A sharding rule says which dimensions factors are along, not which way: that is in their kind."""

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
        """Add a factor for each dimension of `shape`, to that dimension of each tensor that has it: scalars
        have none.

        `kinds` are those of the dimensions that don't pass through, `blocked` the dimensions along which nothing is
        propagated, and `skipped` those that get no factor here.
        """
        kinds = kinds or {}
        for dim, size in enumerate(shape):
            if dim not in skipped:
                operands, results = _everywhere(self._operands, dim), _everywhere(self._results, dim)
                self.add(size, operands, results, kinds.get(dim, PASS_THROUGH), dim in blocked)

    def build(self) -> OpShardingRule:
        """The rule. Each dimension that was given no factor has one of its own, of size 1."""
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
    """The rule of tensors that all have `shape` and are split alike, as those of a pointwise operation are."""
    builder = RuleBuilder([len(shape)] * num_operands, [len(shape)] * num_results)
    builder.add_pointwise(shape)
    return builder.build()


def _everywhere(tensors: list[list[list[int]]], dim: int) -> dict[int, int]:
    return {index: dim for index, tensor in enumerate(tensors) if dim < len(tensor)}


def _complete(tensors: list[list[list[int]]], sizes: list[int]) -> tuple[TensorMapping, ...]:
    """The mappings of `tensors`; a size of 1 is appended to `sizes` for each dimension that has no factor."""
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
