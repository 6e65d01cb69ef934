"""Choose the axes of each factor of an operation, common to all of its operands and results.

An operation needs no reshard if all operands and results split each factor over the same axes, and no axis splits
two factors. If they conflict, this choice decides which tensors are resharded:

 1. If all tensors agree, keep their axes.
 2. If only two tensors have dimensions, as in a unary elementwise operation, keep the axes of one.
 3. Otherwise, assign axes to factors greedily: first those that tensors with the most elements have already.
 4. Move the axes of need-replication factors to pass-through factors that all tensors have, if their sizes allow.

All functions are pure: `TensorAxes` maps the factors of a tensor to axes. Sizes are in elements.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sdy.axes import Axes, AxisRef, is_prefix, merge_sub_axes, prefix_without_overlap, total_size
from sdy.factors import project
from sdy.mesh import Mesh
from sdy.rule import FactorKind, OpShardingRule
from sdy.sharding import TensorSharding

TensorAxes = Mapping[int, Axes]
"""Axes by factor, for the factors of one tensor. An operation's tensors are its operands, then its results."""


def common_axes(
    tensors: Sequence[TensorAxes],
    rule: OpShardingRule,
    tensor_sizes: Sequence[int],
    mesh: Mesh,
    moves_axes: bool = True,
) -> tuple[Axes, ...]:
    """Choose the axes of each factor of `rule` so that few elements are resharded.

    Args:
        tensors: The axes by factor of each operand and result.
        rule: The operation's sharding rule.
        tensor_sizes: The number of elements of each tensor, 0 if its shape is dynamic.
        mesh: The mesh of the axes.
        moves_axes: Whether to move the axes of need-replication factors to other factors, instead of dropping them.
    """
    agreed = agreed_axes(tensors, rule)
    if agreed is not None:
        return agreed

    with_dims = [index for index, mapping in enumerate(rule.tensors) if mapping]
    one_factor_per_dim = all(len(dim) <= 1 for mapping in rule.tensors for dim in mapping)
    if len(with_dims) == 2 and not rule.need_replication and one_factor_per_dim:
        # The sort is stable: the first tensor is kept on a tie.
        kept, other = sorted(
            with_dims, key=lambda t: _worth_keeping(tensors[t], rule, tensor_sizes[t], mesh), reverse=True
        )
        return _axes_of_pair(tensors[kept], tensors[other], rule)

    chosen = _choose_greedily(tensors, rule, tensor_sizes, mesh)
    if not moves_axes:
        return tuple(() if factor in rule.need_replication else axes for factor, axes in enumerate(chosen))
    return _move_to_batching_factors(chosen, rule, mesh)


def factor_axes_if_equal(tensors: Sequence[TensorAxes], factor: int) -> Axes | None:
    """Return the axes of `factor` if all tensors that have it agree, else None; () if no tensor has it."""
    seen = {tensor[factor] for tensor in tensors if factor in tensor}
    if len(seen) > 1:
        return None
    return seen.pop() if seen else ()


def agreed_axes(tensors: Sequence[TensorAxes], rule: OpShardingRule) -> tuple[Axes, ...] | None:
    """Return the axes of each factor if no tensor has to be resharded, else None."""
    axes_per_factor: list[Axes] = []
    used: list[AxisRef] = []
    for factor in range(rule.num_factors):
        axes = factor_axes_if_equal(tensors, factor)
        if axes is None or (axes and factor in rule.need_replication):
            return None
        if any(axis.conflicts_with(other) for axis in axes for other in used):
            return None
        axes_per_factor.append(axes)
        used += axes
    return tuple(axes_per_factor)


def _worth_keeping(tensor: TensorAxes, rule: OpShardingRule, size: int, mesh: Mesh) -> tuple[bool, int, int]:
    splits_permutation = any(tensor.get(factor) for factor in rule.permutation)
    splits = total_size((axis for axes in tensor.values() for axis in axes), mesh)
    return (not splits_permutation, size, splits)


def _axes_of_pair(kept: TensorAxes, other: TensorAxes, rule: OpShardingRule) -> tuple[Axes, ...]:
    """Return the axes of `kept`, and for factors that it lacks the unused prefix of their axes in `other`."""
    used = [axis for axes in kept.values() for axis in axes]
    return tuple(
        kept[factor] if factor in kept else prefix_without_overlap(other.get(factor, ()), used)
        for factor in range(rule.num_factors)
    )


_PREFERENCE = (
    FactorKind.NEED_REPLICATION,
    FactorKind.PERMUTATION,
    FactorKind.REDUCTION,
    FactorKind.PASS_THROUGH,
)
"""Kinds of factors from the least to the most preferred to split: each needs more communication than the next."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Candidate of the greedy choice: split `factor` over `axes`.

    Attributes:
        factor: The factor to split.
        axes: The axes to split it over.
        weight: The total number of elements of the tensors that have these axes already.
        gain: The increase of the number of shards, as a factor.
    """

    factor: int
    axes: Axes
    weight: int
    gain: int

    def worth(self, rule: OpShardingRule) -> tuple[int, int, int, int, int, list[tuple[str, int, float]]]:
        """Return the sort key of candidates. The last three entries only break ties deterministically."""
        order = [(axis.name, axis.start, axis.size or float("inf")) for axis in self.axes]
        return (self.weight, _PREFERENCE.index(rule.kind(self.factor)), self.gain, self.factor, len(self.axes), order)


def _choose_greedily(
    tensors: Sequence[TensorAxes], rule: OpShardingRule, tensor_sizes: Sequence[int], mesh: Mesh
) -> list[Axes]:
    """Accept the candidate of greatest worth, and repeat until none remains that fits."""
    chosen: list[Axes] = [()] * rule.num_factors
    candidates = _candidates(tensors, tensor_sizes, mesh)
    blockers = _blockers(rule)
    while eligible := [candidate for candidate in candidates if not blockers[candidate.factor]]:
        best = max(eligible, key=lambda candidate: candidate.worth(rule))
        chosen[best.factor] = best.axes
        if total_size(best.axes, mesh) == rule.factor_sizes[best.factor]:
            for blocking in blockers:
                blocking.discard(best.factor)
        candidates = [
            remaining
            for candidate in candidates
            if (remaining := _remaining(candidate, best, chosen[candidate.factor], mesh)) is not None
        ]
    return chosen


def _candidates(tensors: Sequence[TensorAxes], tensor_sizes: Sequence[int], mesh: Mesh) -> list[_Candidate]:
    """Return a candidate for every prefix of the axes of a factor of any tensor.

    Its weight counts all tensors that split the factor over axes with this prefix.
    """
    pairs = {
        (factor, axes[:length])
        for tensor in tensors
        for factor, axes in tensor.items()
        for length in range(1, len(axes) + 1)
    }
    return [
        _Candidate(
            factor,
            axes,
            weight=sum(
                size
                for tensor, size in zip(tensors, tensor_sizes, strict=True)
                if is_prefix(axes, tensor.get(factor, ()))
            ),
            gain=total_size(axes, mesh),
        )
        for factor, axes in pairs
    ]


def _blockers(rule: OpShardingRule) -> list[set[int]]:
    """Return, for each factor, the factors immediately major to it in some dimension.

    They must be split completely before the factor can be split: otherwise a shard would not be contiguous.
    """
    blockers: list[set[int]] = [set() for _ in range(rule.num_factors)]
    for mapping in rule.tensors:
        for dim in mapping:
            for major, minor in pairwise(dim):
                blockers[minor].add(major)
    return blockers


def _remaining(candidate: _Candidate, best: _Candidate, chosen: Axes, mesh: Mesh) -> _Candidate | None:
    """Return `candidate` without the axes that `best` uses; None unless it still splits its factor beyond `chosen`."""
    if candidate.factor == best.factor:
        if candidate.axes == chosen or not is_prefix(chosen, candidate.axes):
            return None
        return replace(candidate, gain=total_size(candidate.axes, mesh) // total_size(chosen, mesh))
    free = prefix_without_overlap(candidate.axes, best.axes)
    if free == candidate.axes:
        return replace(candidate, gain=total_size(free, mesh))
    if free == chosen:
        return None
    return replace(candidate, axes=free, gain=total_size(free, mesh) // total_size(chosen, mesh))


def _move_to_batching_factors(chosen: list[Axes], rule: OpShardingRule, mesh: Mesh) -> tuple[Axes, ...]:
    """Move the axes of need-replication factors to batching factors: pass-through factors of all tensors.

    The axes of a factor that some tensor lacks, and those that do not divide any batching factor, are dropped.
    """
    axes_per_factor = list(chosen)
    tensors = [{factor for dim in mapping for factor in dim} for mapping in rule.tensors if mapping]
    everywhere = [factor for factor in range(rule.num_factors) if all(factor in tensor for tensor in tensors)]
    batching = [factor for factor in everywhere if rule.kind(factor) is FactorKind.PASS_THROUGH]
    for factor in rule.need_replication:
        to_place = axes_per_factor[factor] if factor in everywhere else ()
        axes_per_factor[factor] = ()
        for target in batching:
            splits = total_size(axes_per_factor[target], mesh)
            size_left, excess = divmod(rule.factor_sizes[target], splits)
            if size_left == 0 or excess:
                continue
            while to_place and size_left % to_place[0].size_in(mesh) == 0:
                size_left //= to_place[0].size_in(mesh)
                axes_per_factor[target] = merge_sub_axes((*axes_per_factor[target], to_place[0]), mesh)
                to_place = to_place[1:]
    return tuple(axes_per_factor)


def uneven_factors(rule: OpShardingRule, shardings: Sequence[TensorSharding | None], mesh: Mesh) -> set[int]:
    """Return the factors that are uneven in one of the shardings of the operands, then the results."""
    filled = [
        sharding or TensorSharding.replicated_closed(mesh, len(mapping))
        for sharding, mapping in zip(shardings, rule.tensors, strict=True)
    ]
    return {
        factor
        for tensor in project(rule, filled, mesh).tensors
        for factor, part in tensor.factors.items()
        if rule.factor_sizes[factor] % total_size((*part.axes, *part.overflow), mesh)
    }
