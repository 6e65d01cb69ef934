"""Costs of blocks: arithmetic, traffic and memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sdy.blocks.operation import BlockOperation
from sdy.box import Box, Ints

Memory = Callable[[BlockOperation, Box], Ints]
"""(operation, blocks) -> the bytes of each block's intermediate values."""


@dataclass(frozen=True, eq=False)
class Cost:
    """Costs of an array of blocks.

    Attributes:
        flops: Arithmetic operations of each block.
        bytes_read: Bytes of the operands' regions.
        bytes_written: Bytes of the results' regions.
        memory: Bytes of operands, results and intermediate values.
    """

    flops: npt.NDArray[np.float64]
    bytes_read: Ints
    bytes_written: Ints
    memory: Ints


_intermediates: dict[str, Memory] = {}


def override_memory(name: str, intermediates: Memory) -> None:
    """Declare the memory of intermediate values of operations called `name`, 0 by default.

    Projections determine the regions that a block reads and writes, but not the temporaries of an implementation.
    """
    _intermediates[name] = intermediates


def cost(op: BlockOperation, blocks: Box) -> Cost:
    """Return the cost of each of `blocks` of the index space."""
    read = sum((access.bytes(blocks) for access in op.operands), np.zeros(blocks.start.shape[:-1], np.int64))
    written = sum((access.bytes(blocks) for access in op.results), np.zeros(blocks.start.shape[:-1], np.int64))
    intermediates = _intermediates.get(op.name)
    memory = read + written + (intermediates(op, blocks) if intermediates else 0)
    return Cost(np.asarray(blocks.size * op.flops_per_step, np.float64), read, written, memory)


def cost_per_step(op: BlockOperation, block_shape: Sequence[int]) -> Cost:
    """Return the marginal cost of one more step along each axis of a block: arrays of shape (axes,)."""
    start = np.zeros((len(block_shape), len(block_shape)), np.int64)
    shape = np.tile(np.asarray(block_shape, np.int64), (len(block_shape), 1))
    longer, block = cost(op, Box(start, shape + np.eye(len(block_shape), dtype=np.int64))), cost(op, Box(start, shape))
    return Cost(
        longer.flops - block.flops,
        longer.bytes_read - block.bytes_read,
        longer.bytes_written - block.bytes_written,
        longer.memory - block.memory,
    )
