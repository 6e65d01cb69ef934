"""What a block of steps costs: arithmetic, traffic, and memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sdy.blocks.operation import BlockOperation
from sdy.box import Box, Ints

Memory = Callable[[BlockOperation, Box], Ints]
"""(operation, blocks) -> the bytes that computing each block takes besides its operands and results."""


@dataclass(frozen=True, eq=False)
class Cost:
    """The cost of each of an array of blocks; the bytes are those of operands, of results, and of all at once."""

    flops: npt.NDArray[np.float64]
    bytes_read: Ints
    bytes_written: Ints
    memory: Ints


_intermediates: dict[str, Memory] = {}


def override_memory(name: str, intermediates: Memory) -> None:
    """Declare what operations called `name` take besides their operands and results, instead of nothing.

    The projections say what a block reads and writes, not what an implementation keeps meanwhile.
    """
    _intermediates[name] = intermediates


def cost(op: BlockOperation, blocks: Box) -> Cost:
    """What each of `blocks` of the index space costs."""
    read = sum((access.bytes(blocks) for access in op.operands), np.zeros(blocks.start.shape[:-1], np.int64))
    written = sum((access.bytes(blocks) for access in op.results), np.zeros(blocks.start.shape[:-1], np.int64))
    intermediates = _intermediates.get(op.name)
    memory = read + written + (intermediates(op, blocks) if intermediates else 0)
    return Cost(np.asarray(blocks.size * op.flops_per_step, np.float64), read, written, memory)


def cost_per_step(op: BlockOperation, block_shape: Sequence[int]) -> Cost:
    """What a block of that shape costs more for being a step longer along each axis: arrays of shape (axes,)."""
    start = np.zeros((len(block_shape), len(block_shape)), np.int64)
    shape = np.tile(np.asarray(block_shape, np.int64), (len(block_shape), 1))
    longer, block = cost(op, Box(start, shape + np.eye(len(block_shape), dtype=np.int64))), cost(op, Box(start, shape))
    return Cost(
        longer.flops - block.flops,
        longer.bytes_read - block.bytes_read,
        longer.bytes_written - block.bytes_written,
        longer.memory - block.memory,
    )
