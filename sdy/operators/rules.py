"""Sharding rules of operators, built from fitted annotations.

    m^ kd+, kd+ n -> m^ n    for (4, 8) and (8, 6)
    ([i, j],[j, k])->([i, k]) {i=4, j=8, k=6} reduction={j} need_replication={i} blocked_propagation={i}, custom

A factor that cannot be sharded needs replication. A factor with a `+` is a reduction factor if no output has it. If
only some outputs have it, it is a pass-through factor: a rule cannot express that the other outputs are partial sums.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sdy.operators.annotation import Identifier, Reduction, Tensor
from sdy.operators.shapes import Fitted, Shape
from sdy.rule import OpShardingRule, TensorMapping


@dataclass(frozen=True)
class OperatorRule:
    """The sharding rule of an operator for given shapes, and the factor number of each identifier."""

    fitted: Fitted
    rule: OpShardingRule
    factors: Mapping[str, int]

    @cached_property
    def summed(self) -> tuple[tuple[int, ...], ...]:
        """For each output, the factors whose sharding makes it a partial sum."""
        annotation = self.fitted.annotation
        with_sum = [factor for name, factor in self.factors.items() if annotation.reduction(name) is Reduction.SUM]
        return tuple(
            tuple(factor for factor in with_sum if not any(factor in dim for dim in result))
            for result in self.rule.results
        )


def operator_rule(fitted: Fitted, input_shapes: Sequence[Shape], output_shapes: Sequence[Shape]) -> OperatorRule:
    """Build the rule of an operator with tensor inputs and outputs of these shapes."""
    return _OperatorFactors(fitted).rule(input_shapes, output_shapes)


class _OperatorFactors:
    """Builder of the factors of an operator."""

    def __init__(self, fitted: Fitted) -> None:
        self._fitted = fitted
        self._sizes: list[int] = []
        self._numbers: dict[str, int] = {}
        self._replicated: list[int] = []

    def rule(self, input_shapes: Sequence[Shape], output_shapes: Sequence[Shape]) -> OperatorRule:
        annotation = self._fitted.annotation
        operands = tuple(map(self._mapping, annotation.tensor_inputs, input_shapes))
        results = tuple(map(self._mapping, annotation.tensor_outputs, output_shapes))
        in_results = {factor for mapping in results for dim in mapping for factor in dim}
        with_sum = [factor for name, factor in self._numbers.items() if annotation.reduction(name) is Reduction.SUM]
        rule = OpShardingRule(
            tuple(self._sizes),
            operands,
            results,
            reduction=tuple(sorted(factor for factor in with_sum if factor not in in_results)),
            need_replication=tuple(self._replicated),
            blocked_propagation=tuple(self._replicated),
            is_custom=True,
        )
        return OperatorRule(self._fitted, rule, self._numbers)

    def _mapping(self, tensor: Tensor, shape: Shape) -> TensorMapping:
        """Return the factors of each dimension; a scalar has no dimension for its annotation `1`."""
        mapping: list[tuple[int, ...]] = []
        for dim in tensor[: len(shape)]:
            # Factors of size 1 are omitted from dimensions with other factors.
            parts = [identifier for identifier in dim if self._fitted.sizes[identifier.name] != 1] or [dim[0]]
            factors: list[int] = []
            for part in parts:
                factors.append(self._factor(part, {*factors, *(factor for others in mapping for factor in others)}))
            mapping.append(tuple(factors))
        return tuple(mapping)

    def _factor(self, identifier: Identifier, in_tensor: set[int]) -> int:
        """Return the factor of an identifier; a number, or a repeated identifier in a tensor, gets a new one."""
        name = identifier.name
        factor = self._numbers.get(name)
        if factor is not None and factor not in in_tensor:
            return factor
        factor = len(self._sizes)
        self._sizes.append(self._fitted.sizes[name])
        if not identifier.is_number:
            self._numbers.setdefault(name, factor)
        if self._fitted.annotation.unshardable_reason(name) is not None:
            self._replicated.append(factor)
        return factor
