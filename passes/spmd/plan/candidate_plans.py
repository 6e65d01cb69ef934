"""Candidate shardings for an operation whose operands and results have incompatible shardings.

*An operation with only pass-through factors* can run in the sharding of any of its tensors. For

    tensor<8x8x8xf32> [{"x", "y"}, {"z"}, {}] * [{}, {}, {"x"}] -> [{"z"}, {"y"}, {"x"}]

the majority vote of `common_axes` chooses a sharding that no tensor has, so that all three are resharded.

*A slice or a pad* is such an operation. In either sharding, devices exchange the rows that they need:

    tensor<16x8xf32> [{"x"}, {"y"}] -> tensor<2x8xf32> [{}, {"x"}]

so the smaller of operand and result is resharded.

*A reshape* can run in any sharding that splits factors of both sides. In

    tensor<1200x800xf32> [{}, {"x"}] -> tensor<1600x600xf32> [{"x"}, {}]

neither side can have the other side's sharding. But the factor 400, the greatest common divisor of the numbers of
rows, can be split on both sides: an all-to-all moves "x" from the columns to the rows, and the reshape is local.

*An uneven reshape* keeps the interval of elements that each device has on one side (see
`sdy.passes.spmd.shards.reshaped_layouts`), and devices exchange the elements at the ends of their intervals:

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
from sdy.passes.spmd.plan.operation_plan import (
    Axes,
    OperationShardings,
    Tensors,
    closed_if_missing,
    plan_with_axes,
)
from sdy.passes.spmd.reshard.collective_state import prime_pieces
from sdy.passes.spmd.shards.reshaped_layouts import carry_over
from sdy.rule import OpShardingRule, factors_in
from sdy.sharding import TensorSharding, equivalent

_MOST_PIECES = 4
"""Limit on the number of prime sub-axes: the number of candidate shardings of a reshape is exponential in it."""


def plans_of_tensors(
    tensors: Tensors, mesh_name: str | Mesh, mesh: Mesh, permutes: bool = False
) -> Iterator[OperationShardings]:
    """Yield plans that keep the sharding of one tensor, and split the factors that it lacks as another tensor does.

    For an operation with reduction factors, also yield the plans that split none of those.

    Args:
        tensors: The operation's sharding rule, shardings and sizes.
        mesh_name: The mesh of the planned shardings, by name or inlined.
        mesh: The mesh itself.
        permutes: Whether permutation factors may be split. The caller must then account for the cost of the exchange.
    """
    rule = tensors.rule
    if rule.permutation and not permutes:
        rule = rule.with_replicated(rule.permutation)
    yield from _plans_of_sides(replace(tensors, rule=rule), mesh_name, mesh)
    if rule.reduction:
        replicated_sums = replace(tensors, rule=rule.with_replicated(rule.reduction))
        yield from _plans_of_sides(replicated_sums, mesh_name, mesh)


def _plans_of_sides(tensors: Tensors, mesh_name: str | Mesh, mesh: Mesh) -> Iterator[OperationShardings]:
    rule = tensors.rule
    sides = [
        {factor: () if factor in rule.need_replication else part.axes for factor, part in tensor.factors.items()}
        for tensor in project(rule, closed_if_missing(tensors, mesh_name), mesh).tensors
    ]
    tried: dict[tuple[Axes, ...], None] = {}
    for kept, free in itertools.product(sides, (prefix_without_overlap, partial(_unused_parts, mesh=mesh))):
        used = [axis for axes in kept.values() for axis in axes]
        axes_per_factor: list[Axes] = []
        for factor in range(rule.num_factors):
            axes = kept.get(factor)
            if axes is None:
                wanted = max((side.get(factor, ()) for side in sides), key=lambda axes: total_size(axes, mesh))
                axes = free(wanted, used)
                used += axes
            axes_per_factor.append(axes)
        tried[tuple(axes_per_factor)] = None
    for each in tried:
        candidate = plan_with_axes(tensors, each, mesh_name, mesh)
        if _is_consistent(tensors, candidate, mesh):
            yield candidate


def _unused_parts(axes: Axes, used: Sequence[AxisRef], mesh: Mesh) -> Axes:
    """Return the parts of `axes` that overlap none of `used`, up to the first axis that cannot coexist with them."""
    coexisting = itertools.takewhile(lambda axis: all(map(axis.can_coexist, used)), axes)
    return subtract(coexisting, used, mesh)


def _is_consistent(tensors: Tensors, plan: OperationShardings, mesh: Mesh) -> bool:
    """Return whether every tensor can be split over the planned axes of its factors, without overflow."""
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
    """Return the plans that split factors shared by operand and result over sub-axes of their axes.

    The plans enumerate the assignments of each prime sub-axis to one shared factor or to none. The sub-axes of a factor
    are in the order in which they split the operand, or in that of the result.
    """
    rule = tensors.rule
    factors = sorted(_shared_factors(rule))
    assignments: dict[tuple[Axes, ...], None] = {}
    for pieces in _ordered_pieces(tensors, mesh_name, mesh):
        for places in itertools.product((*factors, None), repeat=len(pieces)):
            axes_per_factor = tuple(
                tuple(piece for piece, place in zip(pieces, places, strict=True) if place == factor)
                for factor in range(rule.num_factors)
            )
            if _is_contiguous(axes_per_factor, rule, mesh):
                assignments[tuple(merge_sub_axes(axes, mesh) for axes in axes_per_factor)] = None
    return tuple(plan_with_axes(tensors, axes_per_factor, mesh_name, mesh) for axes_per_factor in assignments)


@lru_cache(2**10)
def plans_of_exchanged_reshape(tensors: Tensors, mesh_name: str | Mesh, mesh: Mesh) -> tuple[OperationShardings, ...]:
    """Return the two plans that keep the sharding of the operand or of the result, also an uneven one.

    The other side is split into corresponding intervals of elements, and devices exchange the elements that their
    shards lack.
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
    """Yield the prime sub-axes of all axes, in the order of the operand and in that of the result."""
    sides = [[*itertools.chain(*side.dim_axes)] for side in closed_if_missing(tensors, mesh_name)]
    for first, other in (sides, sides[::-1]):
        axes = [*first, *_unused_parts(tuple(other), first, mesh)]
        pieces = [piece for axis in axes for piece in prime_pieces(axis, mesh)]
        if len(pieces) > _MOST_PIECES:
            pieces = axes
        if len(pieces) <= _MOST_PIECES:
            yield pieces


def _is_contiguous(axes_per_factor: Sequence[Axes], rule: OpShardingRule, mesh: Mesh) -> bool:
    """Return whether all shards are even, and contiguous in each dimension.

    A shard is contiguous in a dimension if each factor that is major to a split factor is split into pieces of size 1.
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
