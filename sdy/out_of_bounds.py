"""What a region that leaves its tensor reads: nothing, the other side, or padding."""

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from sdy.box import Box, Ints


class OutOfBounds(Enum):
    """How an index outside of a dimension is read."""

    REFUSE = "refuse"
    """It is an error."""
    WRAP = "wrap"
    """The dimension is a ring: after the last element comes the first."""
    FROM_END = "from_end"
    """As in NumPy: -1 is the last element, down to the first; all else is an error."""
    PAD = "pad"
    """It reads padding."""


def outside(box: Box, shape: Sequence[int]) -> tuple[Ints, Ints]:
    """How many elements of each box lie before a tensor of that shape, and how many after it, along each dimension."""
    before = np.minimum(-box.start, box.shape).clip(min=0)
    after = np.minimum(box.end - np.asarray(shape, np.int64), box.shape).clip(min=0)
    return before, after


def read(array: npt.NDArray[Any], box: Box, policy: OutOfBounds, padding: Any = 0) -> npt.NDArray[Any]:
    """The elements of `array` in a single `box`, whose indices are taken as `policy` says. The result has its shape.

    Raises:
        ValueError: the box has another rank than the array, or an index that the policy refuses.
    """
    if box.start.shape != (array.ndim,):
        raise ValueError(f"a box of shape {tuple(box.start.shape)} cannot read an array of rank {array.ndim}")
    if policy is OutOfBounds.PAD:
        return _read_padded(array, box, padding)
    bounds = zip(box.start.tolist(), box.end.tolist(), array.shape, strict=True)
    return array[np.ix_(*(_indices(dim, *bound, policy) for dim, bound in enumerate(bounds)))]


def _indices(dim: int, start: int, end: int, size: int, policy: OutOfBounds) -> npt.NDArray[np.int64]:
    if policy is OutOfBounds.WRAP and size:
        return np.arange(start, end) % size
    if start < (-size if policy is OutOfBounds.FROM_END else 0) or end > size:
        raise ValueError(f"elements {start} to {end - 1} of dimension {dim}, which has {size}")
    return np.arange(start, end)


def _read_padded(array: npt.NDArray[Any], box: Box, padding: Any) -> npt.NDArray[Any]:
    result = np.full(box.shape, padding, array.dtype)
    before, after = outside(box, array.shape)
    inside = tuple(slice(low, size - high) for low, size, high in zip(before, box.shape, after, strict=True))
    first = box.start + before
    result[inside] = array[
        tuple(slice(at, at + part.stop - part.start) for at, part in zip(first, inside, strict=True))
    ]
    return result
