"""Operations that only move elements, whose results are views of their operands."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from sdy.blocks import block_operation
from sdy.blocks.projection import Projection
from sdy.box import Box, ints
from sdy.ir.shapes import shape
from sdy.passes.blocks.graph import Part, Tensor
from sdy.rules import movement
from sdy.stablehlo import (
    ConcatenateOp,
    PadOp,
    ReshapeOp,
    SliceOp,
)

Parts = tuple[Part, ...]


def view_parts(op: Operation, operands: Sequence[Tensor]) -> Parts | None:
    """Return the parts of the view that is the result of `op`; None if `op` must be computed."""
    find = _VIEWS.get(type(op)) or (_moved if movement(op.name) else None)
    return None if find is None or 0 in shape(op.results[0].type) else find(op, operands)


def _moved(op: Operation, operands: Sequence[Tensor]) -> Parts:
    """Build a view from a block operation whose steps are the elements of its result, each reading one element."""
    blocks = block_operation(op)
    assert blocks is not None
    to_index = _index_of(op.results[0], blocks.results[0].projection)
    return (Part(Box.of_shape(shape(op.results[0].type)), operands[0], to_index.then(blocks.operands[0].projection)),)


def _index_of(result: SSAValue, projection: Projection) -> Projection:
    """Return the map from an element to the step that writes it: the inverse of a permutation of dimensions."""
    return Projection.of(projection.matrix.T, [1] * projection.index_rank)


def _concatenated(op: ConcatenateOp, operands: Sequence[Tensor]) -> Parts:
    along, size = op.dimension.value.data, shape(op.result.type)
    ends = list(accumulate(operand.shape[along] for operand in operands))
    parts: list[Part] = []
    for operand, end in zip(operands, ends, strict=True):
        if 0 not in operand.shape:
            start = [0] * len(size)
            start[along] = end - operand.shape[along]
            offset = [-first for first in start]
            region = Box.of(start, np.add(start, operand.shape))
            parts.append(
                Part(region, operand, Projection.of(np.eye(len(size), dtype=np.int64), [1] * len(size), offset))
            )
    return tuple(parts)


def _padded(op: PadOp, operands: Sequence[Tensor]) -> Parts | None:
    """Build a view of the operand and of slabs of the padding value; None with interior padding, which is computed.

    An operand without elements gives the padding value only.
    """
    operand, value = operands
    if any(op.interior_padding.get_values()) and 0 not in operand.shape:
        return None
    size, rank = shape(op.result.type), len(operand.shape)
    low = np.array(op.edge_padding_low.get_values(), np.int64)
    start, end = np.maximum(low, 0), np.minimum(low + ints(operand.shape), ints(size))
    around = Projection.of(np.zeros((rank, 0), np.int64), [])
    if (start >= end).any():
        return (Part(Box.of_shape(size), value, around),)
    parts = [Part(Box(start, end), operand, Projection.of(np.eye(rank, dtype=np.int64), [1] * rank, (-low).tolist()))]
    slab = np.stack([np.zeros(rank, np.int64), np.array(size, np.int64)])
    for dim in range(rank):
        for first, last in ((0, start[dim]), (end[dim], size[dim])):
            if first < last:
                slab[:, dim] = first, last
                parts.append(Part(Box(*slab.copy()), value, around))
        slab[:, dim] = start[dim], end[dim]
    return tuple(parts)


def _reshaped(op: ReshapeOp, operands: Sequence[Tensor]) -> Parts | None:
    """Build a view for a reshape that splits dimensions or adds some of size 1: element (i, j) is i * size of j + j."""
    source, result = operands[0].shape, shape(op.results[0].type)
    matrix = np.zeros((len(result), len(source)), np.int64)
    next_dim = 0
    for dim, size in enumerate(source):
        group: list[int] = []
        while next_dim < len(result) and prod(result[number] for number in group) < size:
            group.append(next_dim)
            next_dim += 1
        if prod(result[number] for number in group) != size:
            return None
        for place, number in enumerate(group):
            matrix[number, dim] = prod(result[later] for later in group[place + 1 :])
    if any(size != 1 for size in result[next_dim:]):
        return None
    return (Part(Box.of_shape(result), operands[0], Projection.of(matrix, [1] * len(source))),)


_VIEWS: dict[type[Operation], Callable[[Any, Sequence[Tensor]], Parts | None]] = {
    SliceOp: _moved,
    ConcatenateOp: _concatenated,
    PadOp: _padded,
    ReshapeOp: _reshaped,
}
