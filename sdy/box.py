"""Boxes of integer points: what a block operation reads, writes or iterates over, one box or many at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import cast

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
"""Integers, exactly: a value that does not fit in 64 bits is refused, never wrapped around."""


def ints(values: npt.ArrayLike) -> Ints:
    """`values` as 64-bit integers.

    Raises:
        ValueError: one of them is not an integer, or does not fit.
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
    """Make sure of fields by their name.

    Raises:
        TypeError: one of them is not an array of 64-bit integers.
    """
    for name, field in fields.items():
        if not isinstance(field, np.ndarray) or cast(Ints, field).dtype != np.int64:
            raise TypeError(f"'{name}' is to be an array of 64-bit integers, as ints(...) makes it, not {field!r}")


@dataclass(frozen=True, eq=False)
class Box:
    """The points from `start`, included, to `end`, excluded, in each of `rank` dimensions.

    Both have the shape `(..., rank)`: the leading dimensions, if any, are those of an array of boxes, and every method
    works on all of them at once.

    Raises:
        TypeError: they are not arrays of 64-bit integers.
        ValueError: the two have different shapes, or a box has no points.
    """

    start: Ints
    end: Ints

    def __post_init__(self) -> None:
        check_ints(start=self.start, end=self.end)
        if self.start.shape != self.end.shape or not self.start.ndim:
            raise ValueError(f"a box from {self.start.tolist()} to {self.end.tolist()} mismatches in rank")
        if (self.start >= self.end).any():
            raise ValueError(f"the box from {self.start.tolist()} to {self.end.tolist()} is empty")

    @classmethod
    def of(cls, start: npt.ArrayLike, end: npt.ArrayLike) -> "Box":
        """The box between two points, or the boxes between two arrays of points."""
        return cls(*np.broadcast_arrays(ints(start), ints(end)))

    @classmethod
    def whole(cls, shape: Sequence[int]) -> "Box":
        """All points of a tensor of that shape."""
        return cls.of([0] * len(shape), shape)

    @property
    def rank(self) -> int:
        """The number of dimensions of the space that the boxes are in."""
        return self.start.shape[-1]

    @property
    def shape(self) -> Ints:
        """The number of points along each dimension, `(..., rank)`."""
        return self.end - self.start

    @property
    def size(self) -> Ints:
        """The number of points in each box."""
        return self.shape.prod(axis=-1)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Box) and np.array_equal(self.start, other.start) and np.array_equal(self.end, other.end)
        )

    def __getitem__(self, index: int) -> "Box":
        """One box of an array of them, or an array with a dimension less."""
        if self.start.ndim == 1:
            raise IndexError("a single box has no parts; an array of boxes has")
        return Box(self.start[index], self.end[index])

    def __len__(self) -> int:
        return len(self.start) if self.start.ndim > 1 else 1

    def __iter__(self) -> Iterator["Box"]:
        return (self[index] for index in range(len(self)))

    def shifted(self, by: npt.ArrayLike) -> "Box":
        """The boxes, moved."""
        return Box(self.start + ints(by), self.end + ints(by))

    def shared(self, other: "Box") -> Ints:
        """The number of points that each box and the one in `other` both have."""
        shape = np.minimum(self.end, other.end) - np.maximum(self.start, other.start)
        return shape.clip(min=0).prod(axis=-1)

    def hull(self) -> "Box":
        """The smallest box that has all points of an array of boxes."""
        axes = tuple(range(self.start.ndim - 1))
        return Box(self.start.min(axis=axes), self.end.max(axis=axes))

    def points(self) -> Iterator[tuple[int, ...]]:
        """Each point of a single box, the last dimension fastest."""
        return product(*(range(start, end) for start, end in zip(self.start.tolist(), self.end.tolist(), strict=True)))

    def blocks(self, shape: Sequence[int]) -> "Box":
        """A single box cut into blocks of that shape, `(count, rank)`, the last dimension fastest.

        The last block along a dimension is what is left of it.

        Raises:
            ValueError: `shape` has another rank, or is not positive.
        """
        if len(shape) != self.rank or min(shape, default=1) < 1:
            raise ValueError(f"blocks of shape {tuple(shape)} do not cut a box of shape {tuple(self.shape.tolist())}")
        along = [
            range(start, end, step)
            for start, end, step in zip(self.start.tolist(), self.end.tolist(), shape, strict=True)
        ]
        starts = ints(list(product(*along))).reshape(-1, self.rank)
        return Box(starts, np.minimum(starts + ints(shape), self.end))
