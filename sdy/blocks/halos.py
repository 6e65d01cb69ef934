"""Halos: the elements of an operand that a shard reads beyond its own shard."""

import numpy as np

from sdy.blocks.operation import BlockOperation
from sdy.box import Box, Ints


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
