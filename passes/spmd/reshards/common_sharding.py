"""Choosing, for one operation, the axes that each of its factors is split over in all of its tensors.

An operation needs no reshard when every operand and result splits each factor over the same axes, and no axis splits
two factors. Where the tensors disagree, the choice decides which of them are resharded, that is, how much is sent:

 1. Where they agree, nothing is chosen.
 2. Where only two tensors have dimensions, as in an elementwise operation of one operand, one of them is kept as it is.
 3. Otherwise axes are given to factors one choice at a time, those that fit the most elements first.
 4. The axes of factors that must be whole go to factors that split all tensors alike, if their sizes allow.

Everything here is a function of values: `TensorAxes` says how a tensor splits its factors, the rule what the factors
are. Sizes are in elements.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sdy.axes import AxisRef, is_prefix, merge_sub_axes, prefix_without_overlap, total_size
from sdy.mesh import Mesh
from sdy.rule import FactorKind, OpShardingRule

Axes = tuple[AxisRef, ...]
TensorAxes = Mapping[int, Axes]
"""The axes of each factor that a tensor has. An operation's tensors are its operands, then its results."""


def common_axes(
    tensors: Sequence[TensorAxes],
    rule: OpShardingRule,
    tensor_sizes: Sequence[int],
    mesh: Mesh,
    moves_axes: bool = True,
) -> tuple[Axes, ...]:
    """The axes that each factor of `rule` is to be split over, chosen so that little is resharded.

    `tensor_sizes` are the numbers of elements of the tensors, 0 where a size is dynamic. Without `moves_axes`, the axes
    of factors that must be whole are not given to others.
    """
    agreed = agreed_axes(tensors, rule)
    if agreed is not None:
        return agreed

    with_dims = [index for index, mapping in enumerate(rule.tensors) if mapping]
    one_factor_per_dim = all(len(dim) <= 1 for mapping in rule.tensors for dim in mapping)
    if len(with_dims) == 2 and not rule.need_replication and one_factor_per_dim:
        # The first is preferred where both are as good.
        kept, other = sorted(
            with_dims, key=lambda t: _worth_keeping(tensors[t], rule, tensor_sizes[t], mesh), reverse=True
        )
        return _axes_of_pair(tensors[kept], tensors[other], rule)

    chosen = _choose_greedily(tensors, rule, tensor_sizes, mesh)
    if not moves_axes:
        return tuple(() if factor in rule.need_replication else axes for factor, axes in enumerate(chosen))
    return _move_to_batching_factors(chosen, rule, mesh)


def factor_axes_if_equal(tensors: Sequence[TensorAxes], factor: int) -> Axes | None:
    """The axes over which all tensors that have `factor` split it, () where none has it, None where they disagree."""
    seen = {tensor[factor] for tensor in tensors if factor in tensor}
    if len(seen) > 1:
        return None
    return seen.pop() if seen else ()


def agreed_axes(tensors: Sequence[TensorAxes], rule: OpShardingRule) -> tuple[Axes, ...] | None:
    """The axes of each factor if no tensor has to be resharded, else None."""
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
    """The axes of `kept`, and for factors that it lacks those of `other` that `kept` leaves free."""
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
"""Which kind of factor to split rather than another, worst first: each asks for more communication than the next."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Splitting `factor` over `axes`, `gain` times as much as before, as tensors of `weight` elements in all do."""

    factor: int
    axes: Axes
    weight: int
    gain: int

    def worth(self, rule: OpShardingRule) -> tuple[int, int, int, int, int, list[tuple[str, int, float]]]:
        """What candidates are compared by. The last three only make the choice the same on each run."""
        order = [(axis.name, axis.start, axis.size or float("inf")) for axis in self.axes]
        return (self.weight, _PREFERENCE.index(rule.kind(self.factor)), self.gain, self.factor, len(self.axes), order)


def _choose_greedily(
    tensors: Sequence[TensorAxes], rule: OpShardingRule, tensor_sizes: Sequence[int], mesh: Mesh
) -> list[Axes]:
    """Give axes to factors, the candidate of the greatest worth first, until none is left that fits."""
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
    """Every prefix of the axes over which some tensor splits a factor; it fits all tensors that begin with it."""
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
    """For each factor, those right before it in some dimension.

    They are to be split completely before it can be split at all: a device would otherwise hold a part of the dimension
    with gaps.
    """
    blockers: list[set[int]] = [set() for _ in range(rule.num_factors)]
    for mapping in rule.tensors:
        for dim in mapping:
            for major, minor in pairwise(dim):
                blockers[minor].add(major)
    return blockers


def _remaining(candidate: _Candidate, best: _Candidate, chosen: Axes, mesh: Mesh) -> _Candidate | None:
    """What is left of `candidate` now that `best` is chosen: None unless it splits its factor beyond `chosen`."""
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
    """Leave factors that must be whole unsplit; the axes of one that all tensors have go to others that all have."""
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
