"""Assembly of a region of a tensor from the chunks that contain it."""

from collections.abc import Callable, Sequence

import numpy as np

from sdy.blocks.projection import Projection
from sdy.box import Box, Ints
from sdy.passes.blocks.arrays import Array, empty
from sdy.passes.blocks.graph import StoredTensor, Tensor, TensorView, overlaps

ReadStored = Callable[[StoredTensor, Sequence[int], Sequence[int]], Array]
"""(tensor, start, end) -> elements of a stored tensor."""

ReadChunk = Callable[[StoredTensor, int, Sequence[int], Sequence[int]], Array]
"""(tensor, number of a chunk, start, end) -> elements of the chunk; start and end are positions in the tensor."""


def read_region(tensor: Tensor, start: Sequence[int], end: Sequence[int], read: ReadStored) -> Array:
    """Return the elements from `start` to `end`, which `read` returns of stored tensors.

    A region that is all padding is an empty array.
    """
    if any(map(int.__ge__, start, end)):
        return np.empty(tuple(map(int.__sub__, end, start)), tensor.dtype)
    match tensor:
        case TensorView():
            return _read_view(tensor, Box.of(start, end), read)
        case StoredTensor():
            return read(tensor, start, end)
        case _:
            raise TypeError(f"{tensor.name} is neither stored nor a view")


def read_chunks(tensor: StoredTensor, start: Sequence[int], end: Sequence[int], read_chunk: ReadChunk) -> Array:
    """Return the elements from `start` to `end` of a stored tensor, without a copy if one chunk contains them all."""
    numbers = tensor.overlapping(start, end)
    if len(numbers) == 1:
        return read_chunk(tensor, numbers[0], start, end)
    result = empty(tuple(map(int.__sub__, end, start)), tensor.dtype)
    for number in numbers:
        first, last = tensor.bounds(number)
        first, last = [*map(max, first, start)], [*map(min, last, end)]
        result[_slices(first, last, start)] = read_chunk(tensor, number, first, last)
    return result


def _read_view(view: TensorView, region: Box, read: ReadStored) -> Array:
    result = empty(region.shape.tolist(), view.dtype)
    for part, shared in overlaps(view, region):
        needed = part.projection.image(shared)
        start, end = needed.start.tolist(), needed.end.tolist()
        source = read_region(part.source, start, end, read)
        target = _slices(shared.start.tolist(), shared.end.tolist(), region.start.tolist())
        result[target] = source[_elements(part.projection, shared, needed)]
    return result


def _slices(start: Sequence[int], end: Sequence[int], origin: Sequence[int]) -> tuple[slice, ...]:
    """Return the slices of a region in an array whose first element is at `origin`."""
    return tuple(map(slice, map(int.__sub__, start, origin), map(int.__sub__, end, origin)))


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
