"""Candidates for how an operation whose tensors disagree can run.

*An operation whose factors all pass through* can run with the layout that one of its tensors has. Of three tensors

    tensor<8x8x8xf32> [{"x", "y"}, {"z"}, {}] * [{}, {}, {"x"}] -> [{"z"}, {"y"}, {"x"}]

the vote of `common_axes` is a layout that none of them has, and from which and to which more is sent.

*A slice or a pad* is one of these. In both layouts devices exchange the rows that they need:

    tensor<16x8xf32> [{"x"}, {"y"}] -> tensor<2x8xf32> [{}, {"x"}]

so the smaller of operand and result is resharded.

*A reshape* can run with any layout that splits factors of both sides. Of

    tensor<1200x800xf32> [{}, {"x"}] -> tensor<1600x600xf32> [{"x"}, {}]

neither layout of columns is one of the other side. Yet 400, the greatest divisor of the numbers of rows, can be split
on both sides: an all-to-all of the columns comes before the reshape, for which nothing is sent then.

*An uneven reshape* keeps the intervals of elements that one side has on each device, as
`sdy.passes.spmd.reshaped_layouts` says, and devices exchange the elements at the ends of their intervals:

    tensor<9x9xf32> [{"x"}, {}] -> tensor<3x27xf32> [{"x"}, {}]
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from sdy.axes import AxisRef, merge_sub_axes, prefix_without_overlap, subtract, total_size
from sdy.factors import project
from sdy.mesh import Mesh
from sdy.passes.spmd.reshaped_layouts import carry_over
from sdy.passes.spmd.reshards.axis_pieces import prime_pieces
from sdy.passes.spmd.reshards.operation_plan import (
    Axes,
    OperationShardings,
    Tensors,
    closed_if_missing,
    plan_with_axes,
)
from sdy.rule import OpShardingRule, factors_in
from sdy.sharding import TensorSharding, equivalent

_MOST_PIECES = 4
"""Over more pieces of axes there are too many layouts of a reshape."""


def plans_of_tensors(
    tensors: Tensors, mesh_name: str | Mesh, mesh: Mesh, permutes: bool = False
) -> Iterator[OperationShardings]:
    """The plans with the layout of one tensor, and of what that has no factors for the layout of the others.

    An operation that reduces factors also has those plans in which none of them is split. One that permutes factors
    splits them only with `permutes`, by which the caller says that it knows what an exchange costs.
    """
    rule = tensors.rule
    if rule.permutation and not permutes:
        rule = rule.with_replicated(rule.permutation)
    yield from _plans_of_sides(replace(tensors, rule=rule), mesh_name, mesh)
    if rule.reduction:
        whole_sums = replace(tensors, rule=rule.with_replicated(rule.reduction))
        yield from _plans_of_sides(whole_sums, mesh_name, mesh)


def _plans_of_sides(tensors: Tensors, mesh_name: str | Mesh, mesh: Mesh) -> Iterator[OperationShardings]:
    rule = tensors.rule
    sides = [
        {factor: () if factor in rule.need_replication else part.axes for factor, part in tensor.factors.items()}
        for tensor in project(rule, closed_if_missing(tensors, mesh_name), mesh).tensors
    ]
    for kept, free in itertools.product(sides, (prefix_without_overlap, partial(subtract, mesh=mesh))):
        used = [axis for axes in kept.values() for axis in axes]
        axes_per_factor: list[Axes] = []
        for factor in range(rule.num_factors):
            axes = kept.get(factor)
            if axes is None:
                given = max((side.get(factor, ()) for side in sides), key=lambda axes: total_size(axes, mesh))
                axes = free(given, used)
                used += axes
            axes_per_factor.append(axes)
        candidate = plan_with_axes(tensors, tuple(axes_per_factor), mesh_name, mesh)
        if _splits_alike(tensors, candidate, mesh):
            yield candidate


def _splits_alike(tensors: Tensors, plan: OperationShardings, mesh: Mesh) -> bool:
    """Whether each tensor has the axes of all its factors: none overflows, and none is behind one that is not split."""
    shardings = [new or old for new, old in zip(plan.shardings, tensors.shardings, strict=True)]
    return all(
        part.axes == plan.axes_per_factor[factor] and not part.overflow
        for tensor in project(tensors.rule, shardings, mesh).tensors
        for factor, part in tensor.factors.items()
    )


def _shared_factors(rule: OpShardingRule) -> set[int]:
    [operand, result] = rule.tensors
    return factors_in([operand]) & factors_in([result])


@lru_cache(2**10)
def plans_of_reshape(tensors: Tensors, mesh_name: str | Mesh, mesh: Mesh) -> tuple[OperationShardings, ...]:
    """The plans that split factors of both sides over pieces of the axes of operand and result.

    Each piece splits any factor or none. Pieces on one factor are in the order that they have on one side.
    """
    rule = tensors.rule
    factors = sorted(_shared_factors(rule))
    found: dict[tuple[Axes, ...], None] = {}
    for pieces in _ordered_pieces(tensors, mesh_name, mesh):
        for places in itertools.product((*factors, None), repeat=len(pieces)):
            axes_per_factor = tuple(
                tuple(piece for piece, place in zip(pieces, places, strict=True) if place == factor)
                for factor in range(rule.num_factors)
            )
            if _is_contiguous(axes_per_factor, rule, mesh):
                found[tuple(merge_sub_axes(axes, mesh) for axes in axes_per_factor)] = None
    return tuple(plan_with_axes(tensors, axes_per_factor, mesh_name, mesh) for axes_per_factor in found)


@lru_cache(2**10)
def plans_of_exchanged_reshape(tensors: Tensors, mesh_name: str | Mesh, mesh: Mesh) -> tuple[OperationShardings, ...]:
    """The plans that keep the intervals of elements that operand or result has on each device, even or not.

    The other side is split likewise, and devices exchange the elements that their parts lack.
    """
    rule = tensors.rule
    before, after = closed_if_missing(tensors, mesh_name)
    shape, new_shape = (
        [math.prod(rule.factor_sizes[factor] for factor in dim) for dim in mapping] for mapping in rule.tensors
    )
    kept, carried = carry_over(before, shape, new_shape, mesh)
    kept_behind, carried_before = carry_over(after, new_shape, shape, mesh)
    return tuple(
        _plan_with_shardings(tensors, shardings, mesh_name, mesh)
        for shardings in ((kept, carried), (carried_before, kept_behind))
    )


def _plan_with_shardings(
    tensors: Tensors, shardings: Sequence[TensorSharding], mesh_name: str | Mesh, mesh: Mesh
) -> OperationShardings:
    rule = tensors.rule
    operand = project(rule, shardings, mesh).tensors[0].factors
    axes_per_factor = tuple(
        operand[factor].axes + operand[factor].overflow if factor in operand else ()
        for factor in range(rule.num_factors)
    )
    changed = (None if equivalent(new, old) else new for new, old in zip(shardings, tensors.shardings, strict=True))
    return OperationShardings(tuple(changed), axes_per_factor, ())


def _ordered_pieces(tensors: Tensors, mesh_name: str | Mesh, mesh: Mesh) -> Iterator[list[AxisRef]]:
    """The pieces of all axes, in the order of the operand, and in that of the result."""
    sides = [[*itertools.chain(*side.dim_axes)] for side in closed_if_missing(tensors, mesh_name)]
    for first, other in (sides, sides[::-1]):
        axes = [*first, *subtract(other, first, mesh)]
        pieces = [piece for axis in axes for piece in prime_pieces(axis, mesh)]
        if len(pieces) > _MOST_PIECES:
            pieces = axes
        if len(pieces) <= _MOST_PIECES:
            yield pieces


def _is_contiguous(axes_per_factor: Sequence[Axes], rule: OpShardingRule, mesh: Mesh) -> bool:
    """Whether the parts are even, and each is a contiguous part of its dimension.

    It is one if of the factors of a dimension those in front of one that is split have parts of size 1.
    """
    parts = [total_size(axes, mesh) for axes in axes_per_factor]
    if any(size % number for size, number in zip(rule.factor_sizes, parts, strict=True)):
        return False
    return all(
        parts[minor] == 1 or parts[major] == rule.factor_sizes[major]
        for mapping in rule.tensors
        for dim in mapping
        for major, minor in itertools.pairwise(dim)
    )
