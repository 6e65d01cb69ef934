"""Reshapes that split an uneven dimension: the parts of what comes of it begin elsewhere than its own.

A tensor of 6 over 4 devices reshaped to 2x3, both dimensions split in two, where a dot is an element that fills up:

    device    has       needs
    0         0 1       0 1
    1         2 3       2 .
    2         4 5       3 4
    3         . .       5 .
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from xdsl.rewriter import Rewriter

from sdy.axes import AxisRef, merge_sub_axes, subtract
from sdy.passes.common.reshard_reuse import strides
from sdy.passes.spmd.compatibility import factors_made, why_not_by_rule
from sdy.passes.spmd.exchange import DimExchange, Filler
from sdy.passes.spmd.exchange_builder import ExchangeBuilder
from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.padded_site import carries
from sdy.passes.spmd.reach import Exchange, Reach
from sdy.passes.spmd.replicated_factors import reshard_around
from sdy.passes.spmd.resolution import Resolution, cut_off, filled_up, layout_of, zero_filler
from sdy.sharding import TensorSharding
from sdy.stablehlo.shape import ReshapeOp

_FURTHEST = 1
"""So many parts away elements are sent from; from further away they are not worth it."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Dimensions of the operand and of the result that have the same elements, and no fewer of them do."""

    before: range
    after: range


@dataclass(frozen=True)
class _ReshapedLayouts:
    """The operand and the result of a reshape, and the groups of dimensions that make one the other."""

    before: Layout
    after: Layout

    @property
    def groups(self) -> list[_Group]:
        """All groups, in order."""
        return list(_groups(self.before.shape, self.after.shape))

    def is_uneven(self, group: _Group) -> bool:
        """Whether axes do not divide a dimension of the group."""
        return any(dim in self.before.uneven_dims for dim in group.before) or any(
            dim in self.after.uneven_dims for dim in group.after
        )

    @property
    def moving(self) -> list[_Group]:
        """The uneven groups in which one side has several dimensions where the other has one or several."""
        return [
            group
            for group in self.groups
            if self.is_uneven(group)
            and max(_num_larger(self.before, group.before), _num_larger(self.after, group.after)) > 1
        ]

    def has_same_parts(self, groups: Sequence[_Group]) -> bool:
        """Whether each device has the same elements of operand and result, as far as `groups` are concerned."""
        before = self.before.without({dim for group in self.groups if group not in groups for dim in group.before})
        after = self.after.without({dim for group in self.groups if group not in groups for dim in group.after})
        assert before.sharding is not None
        assert after.sharding is not None
        return strides(before.sharding, before.shape, before.mesh) == strides(after.sharding, after.shape, after.mesh)

    def axes(self, groups: Sequence[_Group]) -> list[AxisRef]:
        """The axes that split dimensions of `groups`."""
        return [axis for g in groups for dim in g.before for axis in self.before.axes[dim]] + [
            axis for g in groups for dim in g.after for axis in self.after.axes[dim]
        ]


def _exchange(op: ReshapeOp, resolution: Resolution) -> bool:
    """Exchange what the parts of the result lack, where each is one interval of the split dimension."""
    sides = _sides(op)
    if sides is None or not sides.moving or sides.has_same_parts(sides.groups):
        return True
    if not sides.has_same_parts([group for group in sides.groups if group not in sides.moving]):
        return False
    exchanges: dict[int, Exchange] = {}
    for group in sides.moving:
        if (reach := _reach(group, sides)) is None:
            return False
        exchanges[group.before[0]] = resolution.plan(reach, _FURTHEST)
    if not all(exchange.pays for exchange in exchanges.values()):
        return False
    _reshape_parts(op, sides, exchanges, resolution)
    return True


def _replicate(op: ReshapeOp, resolution: Resolution) -> bool:
    """Let operand and result have none of the axes of groups whose elements move."""
    sides = _sides(op)
    if sides is None or not sides.moving or sides.has_same_parts(sides.groups):
        return False
    axes = sides.axes(sides.moving)
    return reshard_around(op, [_without(layout, axes) for layout in (sides.before, sides.after)])


def _why_not(op: ReshapeOp, operands: Sequence[Layout], results: Sequence[Layout]) -> str | None:
    """Nothing is split that comes of no dimension of the operand."""
    return why_not_by_rule(op, operands, results, lambda _, rule: factors_made(rule))


def _sides(op: ReshapeOp) -> _ReshapedLayouts | None:
    before, after = layout_of(op.operand), layout_of(op.result)
    if before.sharding is None or after.sharding is None or before.mesh != after.mesh or 0 in before.shape:
        return None
    return _ReshapedLayouts(before, after)


def _groups(before: Sequence[int], after: Sequence[int]) -> Iterator[_Group]:
    """Pairs of the shortest runs of dimensions with as many elements on both sides; sizes of 1 join the next run."""
    first, other = 0, 0
    while first < len(before) or other < len(after):
        end, other_end = min(first + 1, len(before)), min(other + 1, len(after))
        while (size := math.prod(before[first:end])) != (other_size := math.prod(after[other:other_end])):
            if size < other_size:
                end += 1
            else:
                other_end += 1
        yield _Group(range(first, end), range(other, other_end))
        first, other = end, other_end


def _num_larger(layout: Layout, dims: Sequence[int]) -> int:
    return sum(layout.shape[dim] != 1 for dim in dims)


def _without(layout: Layout, axes: Sequence[AxisRef]) -> TensorSharding:
    assert layout.sharding is not None
    return layout.sharding.map_dims(lambda dim: replace(dim, axes=subtract(dim.axes, axes, layout.mesh)))


def _reach(group: _Group, sides: _ReshapedLayouts) -> Reach | None:
    """What each part of the result needs of a split dimension; None where it is not one interval for each part."""
    before, after, dims = sides.before, sides.after, group.after
    axes = tuple(axis for dim in dims for axis in after.axes[dim])
    if len(group.before) != 1 or any(after.shape[dim] == 1 for dim in dims):
        return None
    [split] = group.before
    if merge_sub_axes(axes, after.mesh) != merge_sub_axes(before.axes[split], before.mesh):
        return None
    shards = [after.padded_shape[dim] // after.parts(dim) for dim in dims]
    last = max(index for index, dim in enumerate(dims) if after.axes[dim])
    if (
        any(shard > 1 for shard in shards[:last])
        or math.prod(after.padded_shape[dim] for dim in dims) != (before.padded_shape[split])
    ):
        return None
    starts: list[int] = []
    matters: list[range] = []
    for places in product(*(range(after.parts(dim)) for dim in dims)):
        begins = [place * shard for place, shard in zip(places, shards, strict=True)]
        inner = math.prod(after.shape[dim] for dim in dims[last + 1 :])
        starts.append(_row_major(begins, [after.shape[dim] for dim in dims]))
        rows = min(shards[last], after.shape[dims[last]] - begins[last])
        exists = all(begin < after.shape[dim] for begin, dim in zip(begins, dims, strict=True))
        matters.append(range(rows * inner if exists else 0))
    shard = before.padded_shape[split] // before.parts(split)
    return Reach(before.shape[split], shard, tuple(starts), tuple(matters), shard)


def _row_major(place: Sequence[int], shape: Sequence[int]) -> int:
    index = 0
    for begin, size in zip(place, shape, strict=True):
        index = index * size + begin
    return index


def _reshape_parts(
    op: ReshapeOp, sides: _ReshapedLayouts, exchanges: dict[int, Exchange], resolution: Resolution
) -> None:
    before, after = sides.before, sides.after
    assert before.sharding is not None
    assert after.sharding is not None
    filler = zero_filler(op, op.operand)
    operand = filled_up(op, op.operand, before.padded_shape, filler, before.sharding)
    names = {axis.name for axis in sides.axes([group for group in sides.groups if sides.is_uneven(group)])}
    scalar = TensorSharding.replicated_open(before.sharding.mesh, 0)
    builder = ExchangeBuilder(
        op, [(operand, before.sharding), (filler.value, scalar)], names, resolution.devices(before.mesh)
    )
    value, inner_filler = builder.arguments
    for dim, exchange in exchanges.items():
        value = DimExchange(builder, before.sharding, dim, Filler(inner_filler, is_zero=True)).run(value, exchange)
    type_ = after.padded_type()
    local = builder.local_type(type_, after.sharding)
    value = builder.tensors(after.sharding).insert(ReshapeOp.create(operands=[value], result_types=[local]))
    [result] = builder.finish([value], [type_], [after.sharding])
    Rewriter.replace_op(op, [], [cut_off(op, result, after.shape, after.sharding)])


PARTITIONING: PartitioningTable = {ReshapeOp: OperationPartitioning(_exchange, _replicate, carries, _why_not)}
