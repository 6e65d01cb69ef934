"""Shards of an annotated operator: the axes of its factors, and the sizes of each device's call.

An uneven dimension is padded. Along an identifier that all outputs have, elements are independent, and devices call the
function on padded shards. Elsewhere a sum or a callback would include the padding: there each device calls the function
on its shard without padding, which is smaller or empty on the last devices.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from xdsl.ir import Attribute

from sdy.axes import Axes, total_size
from sdy.factors import project
from sdy.ir.shapes import tensor_of
from sdy.mesh import Mesh
from sdy.passes.spmd.plan.common_sharding import uneven_factors
from sdy.rule import OpShardingRule
from sdy.sharding import TensorSharding
from sdy.stablehlo.checks.shape_checks import elements_of

if TYPE_CHECKING:
    from sdy.operators.call import OperatorCall
    from sdy.operators.operator import Operator
    from sdy.operators.rules import OperatorRule
    from sdy.operators.shapes import Shape


def factor_axes(rule: "OperatorRule", shardings: Sequence[TensorSharding], mesh: Mesh) -> list[Axes]:
    """Return the axes of each factor, from compatible shardings of the operands and results."""
    axes: list[Axes] = [()] * rule.rule.num_factors
    for tensor in project(rule.rule, shardings, mesh).tensors:
        for factor, part in tensor.factors.items():
            axes[factor] = part.axes or axes[factor]
    return axes


def summed_axes_of_results(rule: "OperatorRule", axes: Sequence[Axes]) -> list[Axes]:
    """Return the axes along which each result is a partial sum."""
    return [tuple(axis for factor in factors for axis in axes[factor]) for factors in rule.summed]


def evenly_split(rule: OpShardingRule, shardings: Sequence[TensorSharding | None], mesh: Mesh) -> OpShardingRule:
    """Return `rule` with the factors that are uneven in these shardings replicated.

    XLA calls a callback with shards of equal sizes only.
    """
    return rule.with_replicated(uneven_factors(rule, shardings, mesh))


def counts_of_parts(rule: "OperatorRule", axes: Sequence[Axes], mesh: Mesh) -> dict[str, int]:
    """Return the number of shards along each identifier."""
    return {name: total_size(axes[factor], mesh) for name, factor in rule.factors.items()}


@dataclass(frozen=True)
class OperatorParts:
    """An operator call, its operand types and the axes of each factor of its rule.

    Attributes:
        operator: The operator.
        call: The call on unpartitioned tensors.
        rule: The sharding rule of the call.
        types: The unpartitioned operand types.
        axes: The axes of each factor of the rule.
        mesh: The mesh of the axes.
        whole: The unpadded size of each identifier.
        sizes: The padded size of one device's shard along each identifier.
    """

    operator: "Operator"
    call: "OperatorCall"
    rule: "OperatorRule"
    types: Sequence[Attribute]
    axes: Sequence[Axes]
    mesh: Mesh
    whole: Mapping[str, int]
    sizes: Mapping[str, int]

    @classmethod
    def least_padded(
        cls,
        operator: "Operator",
        call: "OperatorCall",
        rule: "OperatorRule",
        types: Sequence[Attribute],
        axes: Sequence[Axes],
        mesh: Mesh,
    ) -> "OperatorParts":
        """Return the shards with each identifier padded to the next multiple of its number of shards."""
        whole = {name: rule.rule.factor_sizes[factor] for name, factor in rule.factors.items()}
        counts = counts_of_parts(rule, axes, mesh)
        sizes = {name: -(-size // counts[name]) for name, size in whole.items()}
        return cls(operator, call, rule, types, axes, mesh, whole, sizes)

    @cached_property
    def uneven(self) -> list[str]:
        """The identifiers whose sizes are not divisible by those of their axes."""
        counts = counts_of_parts(self.rule, self.axes, self.mesh)
        return [name for name, count in counts.items() if self.whole[name] != self.sizes[name] * count]

    @cached_property
    def sees_padding(self) -> bool:
        """True if a sum or the function would include the padding of the uneven identifiers."""
        results = self.rule.rule.results
        is_summed = any(
            not any(self.rule.factors[name] in dim for dim in result) for name in self.uneven for result in results
        )
        return is_summed or self.operator.sees_padding(self.call, self.types)

    def lengths_by_device(self) -> list[dict[str, int]]:
        """Return each device's number of elements along each uneven identifier, without padding."""
        from sdy.device_groups import shard_indices  # with numpy, which programs without uneven operators do without

        lengths: list[dict[str, int]] = [{} for _ in range(self.mesh.size)]
        for name in self.uneven:
            part = self.sizes[name]
            for device, index in enumerate(shard_indices(self.axes[self.rule.factors[name]], self.mesh)):
                lengths[device][name] = min(max(self.whole[name] - index * part, 0), part)
        return lengths

    def shapes(self, sizes: Mapping[str, int]) -> tuple["Shape", ...]:
        """Return the shard shapes of the operands, then of the results, for identifiers of these sizes."""
        of_factors = {self.rule.factors[name]: size for name, size in {**self.sizes, **sizes}.items()}
        others = self.rule.rule.factor_sizes
        return tuple(
            tuple(prod(of_factors.get(factor, others[factor]) for factor in dim) for dim in tensor)
            for tensor in self.rule.rule.tensors
        )

    def refused(self) -> dict[str, str]:
        """Return the uneven identifiers that must be replicated, with the reason.

        An identifier is refused in a dimension that combines several, whose shards would have gaps. All uneven ones are
        refused if the function rejects arrays of the shapes of the shards.
        """
        refused = {
            identifier.name: f"`({' '.join(map(str, dim))})` is padded at its end only"
            for tensor in self.rule.fitted.annotation.tensors
            for dim in tensor
            for identifier in dim
            if len(dim) > 1 and identifier.name in self.uneven
        }
        if refused or not self.uneven:
            return refused
        for lengths in self._lengths():
            shapes = self.shapes(lengths)[: len(self.types)]
            types = [tensor_of(elements_of(type_), shape) for type_, shape in zip(self.types, shapes, strict=True)]
            reason = self.operator.refusal(self.call.with_sizes({**self.sizes, **lengths}), types)
            if reason is not None:
                return dict.fromkeys(self.uneven, f"the function does not accept such a shard: {reason}")
        return {}

    def _lengths(self) -> Iterator[dict[str, int]]:
        """Yield the distinct sizes of the uneven identifiers with which devices call the function."""
        if not self.sees_padding:
            yield {}
            return
        seen: list[dict[str, int]] = []
        for lengths in self.lengths_by_device():
            if lengths not in seen and 0 not in lengths.values():
                seen.append(lengths)
                yield lengths
