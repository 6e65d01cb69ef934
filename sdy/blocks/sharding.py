"""Sharding of block operations: the sharding rule, whose factors are the axes, and the halos of operands."""

from collections.abc import Sequence
from math import prod

import numpy as np

from sdy.blocks.operation import Access, BlockOperation
from sdy.box import Box, Ints
from sdy.rule import FactorKind, OpShardingRule
from sdy.rules.builder import RuleBuilder


def derived_rule(op: BlockOperation) -> OpShardingRule:
    """Return the rule in which each axis is a factor of the dimensions along which it moves.

    An axis of size 1 with more than one step, for which its dimensions are too small, is not a factor.
    """
    rule = RuleBuilder((len(access.shape) for access in op.operands), (len(access.shape) for access in op.results))
    for number, axis in enumerate(op.axes):
        if axis.factor_size == 1 < axis.extent:
            continue
        places = [_dim(access, number) for access in op.accesses]
        operands, results = places[: len(op.operands)], places[len(op.operands) :]
        rule.add(axis.factor_size, _present(operands), _present(results), axis.kind or _kind(op, places), axis.blocked)
    return rule.build()


def _dim(access: Access, axis: int) -> int | None:
    return next((dim for dim in range(len(access.shape)) if access.projection.matrix[axis, dim]), None)


def _present(dims: Sequence[int | None]) -> dict[int, int]:
    return {tensor: dim for tensor, dim in enumerate(dims) if dim is not None}


def _kind(op: BlockOperation, places: Sequence[int | None]) -> FactorKind:
    moves = any(
        dim is not None and not _in_place(op, access, dim) for access, dim in zip(op.accesses, places, strict=True)
    )
    return FactorKind.PERMUTATION if moves else FactorKind.PASS_THROUGH


def _in_place(op: BlockOperation, access: Access, dim: int) -> bool:
    """Return whether blocks of steps are blocks of the dimension: its axes enumerate it, each element once."""
    extents = [op.axes[axis].extent for axis in access.axes_of(dim)]
    strides = [access.projection.matrix[axis, dim] for axis in access.axes_of(dim)]
    counting = all(
        stride == prod(extents[number + 1 :]) or extents[number] == 1 for number, stride in enumerate(strides)
    )
    origin = access.projection.offset[dim] + access.projection.start[dim]
    return counting and origin == 0 and access.projection.shape[dim] == 1 and prod(extents) == access.shape[dim]


def halo(op: BlockOperation, operand: int, axis: int, shards: int) -> tuple[Ints, Ints]:
    """Return the number of elements that each of `shards` devices reads before and after its shard of `operand`.

    The axis, and the operand's dimension along which it moves, are both split evenly, with padding of the last shards
    if they are not divisible. A number is negative if a device does not read all of its own shard.

    Returns:
        Two arrays of shape (shards,).

    Raises:
        ValueError: The operand does not move along the axis.
    """
    access = op.operands[operand]
    moving = access.projection.matrix[axis].nonzero()[0]
    if len(moving) != 1:
        raise ValueError(f"operand {operand} of '{op.name}' is not split along axis {axis}")
    dim = int(moving[0])
    steps, part = -(-op.axes[axis].extent // shards), -(-access.shape[dim] // shards)
    numbers = np.arange(shards)
    start, end = np.zeros((shards, len(op.axes)), np.int64), np.tile(np.array(op.index_shape, np.int64), (shards, 1))
    start[:, axis], end[:, axis] = numbers * steps, (numbers + 1) * steps
    needed = access.image(Box(start, end))
    return numbers * part - needed.start[:, dim], needed.end[:, dim] - (numbers + 1) * part
