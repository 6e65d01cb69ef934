"""Boxes of integer points: the regions that a block operation reads, writes or iterates over, one or many at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import cast

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
"""64-bit integers; values that do not fit raise an error and never wrap around."""


def ints(values: npt.ArrayLike) -> Ints:
    """Convert `values` to 64-bit integers.

    Raises:
        ValueError: A value is not an integer, or does not fit in 64 bits.
    """
    array = np.asarray(values)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype == object or array.dtype == np.uint64:
        if any(not -(2**63) <= int(value) < 2**63 for value in array.flat):
            raise ValueError(f"{array.tolist()} does not fit in 64 bits")
    elif not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{array.tolist()} are not integers")
    return array.astype(np.int64)


def check_ints(**fields: object) -> None:
    """Check that all `fields`, given by name, are arrays of 64-bit integers.

    Raises:
        TypeError: A field is not.
    """
    for name, field in fields.items():
        if not isinstance(field, np.ndarray) or cast(Ints, field).dtype != np.int64:
            raise TypeError(f"'{name}' must be an array of 64-bit integers, as returned by ints(...), not {field!r}")


@dataclass(frozen=True, eq=False)
class Box:
    """The points from `start` (inclusive) to `end` (exclusive) in each of `rank` dimensions.

    Both have the shape `(..., rank)`: leading dimensions make an array of boxes, and every method works on all of them
    at once.

    Raises:
        TypeError: `start` or `end` is not an array of 64-bit integers.
        ValueError: The two have different shapes, or a box is empty.
    """

    start: Ints
    end: Ints

    def __post_init__(self) -> None:
        check_ints(start=self.start, end=self.end)
        if self.start.shape != self.end.shape or not self.start.ndim:
            raise ValueError(
                f"the start {self.start.tolist()} and end {self.end.tolist()} of a box have different ranks"
            )
        if (self.start >= self.end).any():
            raise ValueError(f"the box from {self.start.tolist()} to {self.end.tolist()} is empty")

    @classmethod
    def of(cls, start: npt.ArrayLike, end: npt.ArrayLike) -> "Box":
        """Return the box between two points, or the boxes between two arrays of points."""
        return cls(*np.broadcast_arrays(ints(start), ints(end)))

    @classmethod
    def of_shape(cls, shape: Sequence[int]) -> "Box":
        """Return the box of all points of a tensor of `shape`."""
        return cls.of([0] * len(shape), shape)

    @property
    def rank(self) -> int:
        """Number of dimensions of the space."""
        return self.start.shape[-1]

    @property
    def shape(self) -> Ints:
        """Extent along each dimension, of shape `(..., rank)`."""
        return self.end - self.start

    @property
    def size(self) -> Ints:
        """Number of points in each box."""
        return self.shape.prod(axis=-1)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Box) and np.array_equal(self.start, other.start) and np.array_equal(self.end, other.end)
        )

    def __getitem__(self, index: int) -> "Box":
        """Return one box of an array of boxes, or a subarray."""
        if self.start.ndim == 1:
            raise IndexError("a single box cannot be indexed; an array of boxes can")
        return Box(self.start[index], self.end[index])

    def __len__(self) -> int:
        return len(self.start) if self.start.ndim > 1 else 1

    def __iter__(self) -> Iterator["Box"]:
        return (self[index] for index in range(len(self)))

    def shifted(self, by: npt.ArrayLike) -> "Box":
        """Return the boxes translated by `by`."""
        return Box(self.start + ints(by), self.end + ints(by))

    def shared(self, other: "Box") -> Ints:
        """Return the number of points in the intersection of each box with the one in `other`."""
        shape = np.minimum(self.end, other.end) - np.maximum(self.start, other.start)
        return shape.clip(min=0).prod(axis=-1)

    def points(self) -> Iterator[tuple[int, ...]]:
        """Yield each point of a single box, the last dimension fastest."""
        return product(*(range(start, end) for start, end in zip(self.start.tolist(), self.end.tolist(), strict=True)))

    def blocks(self, shape: Sequence[int]) -> "Box":
        """Partition a single box into blocks of `shape`, `(count, rank)`, the last dimension fastest.

        The last block along a dimension is smaller if `shape` does not divide it.

        Raises:
            ValueError: `shape` has another rank, or is not positive.
        """
        if len(shape) != self.rank or min(shape, default=1) < 1:
            raise ValueError(
                f"blocks of shape {tuple(shape)} cannot partition a box of shape {tuple(self.shape.tolist())}"
            )
        starts_by_dim = [
            range(start, end, step)
            for start, end, step in zip(self.start.tolist(), self.end.tolist(), shape, strict=True)
        ]
        corners = list(product(*starts_by_dim))
        starts = ints(corners).reshape(len(corners), self.rank)
        return Box(starts, np.minimum(starts + ints(shape), self.end))
