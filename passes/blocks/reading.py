"""Assembly of a region of a tensor from the chunks that contain it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sdy.blocks.projection import Projection
from sdy.box import Box, Ints
from sdy.passes.blocks.graph import StoredTensor, Tensor, TensorView, overlaps

Array = npt.NDArray[Any]
ChunkOf = Callable[[StoredTensor, int], Array]
"""(tensor, number of a chunk) -> the elements of the chunk."""


def read_region(tensor: Tensor, region: Box, chunk_of: ChunkOf) -> Array:
    """Return the elements of a single `region`, without a copy if one chunk contains them all."""
    match tensor:
        case TensorView():
            return _read_view(tensor, region, chunk_of)
        case StoredTensor():
            return _read_stored(tensor, region, chunk_of)
        case _:
            raise TypeError(f"{tensor.name} is neither stored nor a view")


def read_operands(
    tensors: Sequence[Tensor],
    regions: Sequence[Box | None],
    shapes: Sequence[tuple[int, ...]],
    chunk_of: ChunkOf,
) -> list[Array]:
    """Return a region of each of `tensors`; for None, an all-padding region, an empty array of the given shape."""
    return [
        np.empty(shape, tensor.dtype) if region is None else read_region(tensor, region, chunk_of)
        for tensor, region, shape in zip(tensors, regions, shapes, strict=True)
    ]


def _read_stored(tensor: StoredTensor, region: Box, chunk_of: ChunkOf) -> Array:
    numbers = tensor.overlapping(region)
    if len(numbers) == 1:
        chunk = tensor.chunks[numbers[0]]
        return chunk_of(tensor, numbers[0])[_slices(region, chunk)]
    result = np.empty(region.shape, tensor.dtype)
    for number in numbers:
        chunk = tensor.chunks[number]
        shared = Box(np.maximum(chunk.start, region.start), np.minimum(chunk.end, region.end))
        result[_slices(shared, region)] = chunk_of(tensor, number)[_slices(shared, chunk)]
    return result


def _read_view(view: TensorView, region: Box, chunk_of: ChunkOf) -> Array:
    result = np.empty(region.shape, view.dtype)
    for part, shared in overlaps(view, region):
        needed = part.projection.image(shared)
        source = read_region(part.source, needed, chunk_of)
        result[_slices(shared, region)] = source[_elements(part.projection, shared, needed)]
    return result


def _slices(inner: Box, outer: Box) -> tuple[slice, ...]:
    """Return the slices of `inner` in an array of the elements of `outer`."""
    return tuple(map(slice, (inner.start - outer.start).tolist(), (inner.end - outer.start).tolist()))


def _elements(projection: Projection, shared: Box, needed: Box) -> tuple[Array, ...]:
    """Return the indices of the elements of a view's region, in an array of the elements of `needed`.

    Each index array varies only along the dimensions of the view that move it; NumPy broadcasts them together.
    """
    rank = shared.rank
    indices: list[Array] = []
    for dim in range(projection.rank):
        first = projection.offset[dim] + projection.start[dim] - needed.start[dim]
        index: Ints = np.full((1,) * rank, first, np.int64)
        for axis, stride in enumerate(projection.matrix[:, dim].tolist()):
            if stride:
                along = np.arange(int(shared.start[axis]), int(shared.end[axis])) * stride
                index = index + along.reshape((1,) * axis + (-1,) + (1,) * (rank - axis - 1))
        indices.append(index)
    return tuple(indices)
