"""The halo of a shard: what it needs of an operand beyond its own part."""

import numpy as np

from sdy.blocks.operation import BlockOperation
from sdy.box import Box, Ints


def halo(op: BlockOperation, operand: int, axis: int, shards: int) -> tuple[Ints, Ints]:
    """How many elements each of `shards` devices needs from before its part of `operand`, and from after it.

    The axis and the dimension of the operand along which it moves are both cut into equal parts, the last ones filled
    up with padding where the number of shards does not divide them. Negative where a device does not need all of its
    own part. Two arrays of shape (shards,).

    Raises:
        ValueError: the operand does not move along the axis.
    """
    access = op.operands[operand]
    moving = access.projection.matrix[axis].nonzero()[0]
    if len(moving) != 1:
        raise ValueError(f"operand {operand} of '{op.name}' is not cut along axis {axis}")
    dim = int(moving[0])
    steps, part = -(-op.axes[axis].extent // shards), -(-access.shape[dim] // shards)
    numbers = np.arange(shards)
    start, end = np.zeros((shards, len(op.axes)), np.int64), np.tile(np.array(op.index_shape, np.int64), (shards, 1))
    start[:, axis], end[:, axis] = numbers * steps, (numbers + 1) * steps
    needed = access.image(Box(start, end))
    return numbers * part - needed.start[:, dim], needed.end[:, dim] - (numbers + 1) * part
