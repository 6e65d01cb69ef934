"""Index projections: the region of a tensor that each point of an operation's index space reads or writes.

An operation is an index space, the grid of its independent steps, and for each operand and result a projection from a
point of that grid to the region of the tensor that the step accesses. A matmul of (8, 3) by (3, 5) has an index space
of (8, 5). Step (m, n) writes one element of the result, and reads a row of the left operand and a column of the right
one:

    left    start (m, 0)   shape (1, 3)
    right   start (0, n)   shape (3, 1)
    result  start (m, n)   shape (1, 1)

The start is affine in the point and the shape is constant, so a step along an index axis moves the region by a constant
vector. This determines exactly which region a block of steps accesses, and how much two neighbouring blocks share: the
halo of a shard, and the cost of splitting an axis.

Source: Tapestry's index projections (crutcher/tapestry, IndexProjectionDesign).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sdy.box import Box, Ints, check_ints, ints


@dataclass(frozen=True, eq=False)
class Projection:
    """Affine map from index point `c` to the region of `shape` that starts at `c @ matrix + offset + start`.

    The point `c @ matrix + offset` is the reference point of a region, such as the centre of a window; `start` is the
    start of the region relative to it.

    Attributes:
        matrix: Movement of the region along each index axis, of shape (index rank, tensor rank).
        offset: Reference point of index point 0, of shape (tensor rank,).
        shape: Shape of each region.
        start: Start of the region relative to the reference point, of shape (tensor rank,).

    Raises:
        TypeError: An attribute is not an array of 64-bit integers.
        ValueError: The attributes have different ranks, or `shape` is not positive.
    """

    matrix: Ints
    offset: Ints
    shape: Ints
    start: Ints

    def __post_init__(self) -> None:
        check_ints(**vars(self))
        rank = self.matrix.shape[-1] if self.matrix.ndim == 2 else None
        if {self.offset.shape, self.shape.shape, self.start.shape} != {(rank,)}:
            raise ValueError(
                f"a matrix of shape {self.matrix.shape}, an offset of shape {self.offset.shape}, a start of shape "
                f"{self.start.shape} and a region of rank {self.shape.shape} do not make a projection; "
                "expected shapes are (index rank, tensor rank) and three times (tensor rank,)"
            )
        if (self.shape < 1).any():
            raise ValueError(f"regions of shape {tuple(self.shape.tolist())} are empty")

    @classmethod
    def of(
        cls,
        matrix: npt.ArrayLike,
        shape: Sequence[int],
        offset: Sequence[int] | None = None,
        start: Sequence[int] | None = None,
    ) -> "Projection":
        """Return a projection from array-likes; `offset` and `start` are 0 by default."""
        zeros = [0] * len(shape)
        rows = ints(matrix)
        return cls(
            rows if rows.ndim == 2 else rows.reshape(-1, len(shape)),
            ints(zeros if offset is None else offset),
            ints(shape),
            ints(start or zeros),
        )

    @classmethod
    def fixed(cls, index_rank: int, shape: Sequence[int], offset: Sequence[int] | None = None) -> "Projection":
        """Return the projection of every point to the same region, of `shape` at `offset`."""
        return cls.of(np.zeros((index_rank, len(shape)), np.int64), shape, offset)

    @classmethod
    def along(
        cls,
        index_rank: int,
        axes: Sequence[int | None],
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        offset: Sequence[int] | None = None,
        start: Sequence[int] | None = None,
    ) -> "Projection":
        """Return a projection whose tensor dimension `d` advances by `strides[d]` with index axis `axes[d]`.

        Args:
            index_rank: The number of axes of the index space.
            axes: The index axis of each tensor dimension, None for a fixed dimension.
            shape: The shape of regions, by default single elements.
            strides: The stride along each tensor dimension, 1 by default.
            offset: The offset, 0 by default.
            start: The start, 0 by default.
        """
        rank = len(axes)
        matrix = np.zeros((index_rank, rank), np.int64)
        for dim, (axis, stride) in enumerate(zip(axes, strides or [1] * rank, strict=True)):
            if axis is not None:
                matrix[axis, dim] = stride
        return cls.of(matrix, shape or [1] * rank, offset, start)

    @property
    def index_rank(self) -> int:
        """The number of axes of the index space."""
        return self.matrix.shape[0]

    @property
    def rank(self) -> int:
        """The number of dimensions of the tensor."""
        return self.matrix.shape[1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Projection) and all(
            np.array_equal(mine, its) for mine, its in zip(vars(self).values(), vars(other).values(), strict=True)
        )

    def __call__(self, points: npt.ArrayLike) -> Box:
        """Return the region that each of `points`, `(..., index rank)`, accesses.

        Raises:
            ValueError: The points have another rank, or a region exceeds 64-bit coordinates.
        """
        first = exact_product(ints(points), self.matrix) + self.offset + self.start
        return Box(first, first + self.shape)

    def image(self, block: Box) -> Box:
        """Return the bounding box of the regions that each block of steps accesses.

        Along a negative stride, the last step of a block accesses the lowest elements.
        """
        first, last = block.start, block.end - 1
        low = exact_product(first, self._rising) + exact_product(last, self._falling)
        high = exact_product(last, self._rising) + exact_product(first, self._falling)
        origin = self.offset + self.start
        return Box(low + origin, high + origin + self.shape)

    def image_shape(self, block_shape: Sequence[int]) -> Ints:
        """Return the shape of the image of a block of `block_shape`, which is the same for all such blocks."""
        return exact_product(ints(block_shape) - 1, abs(self.matrix)) + self.shape

    def gaps(self, block_shape: Sequence[int]) -> list[int]:
        """Return the dimensions along which the steps of a block leave elements between them that none accesses."""
        moving = [(extent, axis) for axis, extent in enumerate(block_shape) if extent > 1]
        return [dim for dim in range(self.rank) if self._leaves_gaps(dim, moving)]

    def overlap(self, block_shape: Sequence[int]) -> Ints:
        """Return the number of elements that the image of a block shares with that of the next block along each axis.

        All elements for a fixed region, 0 for elements read once, the halo for a window. The shape is (index rank,).
        """
        image = self.image_shape(block_shape)
        moved = abs(self.matrix) * ints(block_shape)[:, np.newaxis]
        return (image - moved).clip(min=0).prod(axis=-1)

    def then(self, inner: "Projection") -> "Projection":
        """Compose with `inner`: this projection's region is a block of points of the index space of `inner`.

        The region of the result is the image under `inner` of the region of this projection.
        """
        return Projection(
            exact_product(self.matrix, inner.matrix),
            exact_product(self.offset + self.start, inner.matrix) + inner.offset,
            inner.image_shape(self.shape.tolist()),
            exact_product(self.shape - 1, inner._falling) + inner.start,
        )

    def reversed(self, dim: int, size: int) -> "Projection":
        """Return the projection onto the tensor with dimension `dim`, of `size`, reversed.

        The reference point stays the same element; the region starts at its former end.
        """
        matrix, offset, start = self.matrix.copy(), self.offset.copy(), self.start.copy()
        matrix[:, dim] *= -1
        offset[dim] = size - 1 - offset[dim]
        start[dim] = 1 - self.shape[dim] - start[dim]
        return Projection(matrix, offset, self.shape, start)

    @property
    def _rising(self) -> Ints:
        return self.matrix.clip(min=0)

    @property
    def _falling(self) -> Ints:
        return self.matrix.clip(max=0)

    def _leaves_gaps(self, dim: int, moving: Sequence[tuple[int, int]]) -> bool:
        """Return whether regions along `dim` leave gaps, for (extent, axis) pairs of axes that move one dimension."""
        starts = ints([0])
        for extent, axis in moving:
            if stride := int(self.matrix[axis, dim]):
                starts = np.unique(starts[:, np.newaxis] + stride * np.arange(extent))
        return bool((np.diff(starts) > self.shape[dim]).any())


def exact_product(points: Ints, matrix: Ints) -> Ints:
    """Return `points @ matrix`.

    Raises:
        ValueError: The two have different ranks, or the product may exceed 64 bits.
    """
    if points.ndim == 0 or points.shape[-1] != len(matrix):
        raise ValueError(f"points of shape {points.shape} do not match an index space of rank {len(matrix)}")
    if int(abs(points).max(initial=0)) * int(abs(matrix).sum(axis=0).max(initial=0)) >= 2**61:
        raise ValueError("the projected coordinates may not fit in 64 bits")
    return points @ matrix
