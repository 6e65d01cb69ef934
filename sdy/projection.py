"""Index projections: what each point of an operation's index space reads or writes of a tensor.

An operation is an index space, the grid of its independent steps, and for each operand and result a projection from a
point of that grid to the region of the tensor that the step touches. A matmul of (8, 3) by (3, 5) has an index space of
(8, 5). Step (m, n) writes one element of the result, and reads a row of the left operand and a column of the right one:

    left    start (m, 0)   shape (1, 3)
    right   start (0, n)   shape (3, 1)
    result  start (m, n)   shape (1, 1)

The start is affine in the point and the shape is the same for all, so a step along an index axis moves the region by
the same vector everywhere. From that follow exactly what a block of steps touches, and how much two neighbouring blocks
share: the halo that a shard needs, and what splitting an axis costs.

Source: Tapestry's index projections (crutcher/tapestry, IndexProjectionDesign).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sdy.box import Box, Ints, check_ints, ints


@dataclass(frozen=True, eq=False)
class Projection:
    """Index point `c` -> the region of `shape` that starts at `c @ matrix + offset + start`.

    `matrix` has the shape (index rank, tensor rank), the others (tensor rank,). The point `c @ matrix + offset` is the
    one that a person thinks of, such as the centre of a window; `start` is where the region begins, seen from there.

    Raises:
        TypeError: a part is not an array of 64-bit integers.
        ValueError: the parts have different ranks, or `shape` is not positive.
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
                f"{self.start.shape} and a region of rank {self.shape.shape} do not make a projection: they are to be "
                "(index rank, tensor rank) and three times (tensor rank,)"
            )
        if (self.shape < 1).any():
            raise ValueError(f"a projection to regions of shape {tuple(self.shape.tolist())}, which are empty")

    @classmethod
    def of(
        cls,
        matrix: npt.ArrayLike,
        shape: Sequence[int],
        offset: Sequence[int] | None = None,
        start: Sequence[int] | None = None,
    ) -> "Projection":
        """A projection with an offset and a start of 0 where none is given."""
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
        """Every point touches the same view: that of `shape` at `offset`."""
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
        """Tensor dimension `d` advances by `strides[d]` with index axis `axes[d]`, and with none where that is None.

        Regions are single elements, and strides 1, where they are not given.
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
        """The region that each of `points`, `(..., index rank)`, touches.

        Raises:
            ValueError: the points have another rank, or a region lies beyond what 64 bits can number.
        """
        first = exact_product(ints(points), self.matrix) + self.offset + self.start
        return Box(first, first + self.shape)

    def delta(self, axis: int) -> Ints:
        """How far a step along index axis `axis` moves the region, the same everywhere."""
        return self.matrix[axis]

    def image(self, block: Box) -> Box:
        """The bounds of what each block of steps touches: the smallest boxes that have the regions of all its points.

        Along a negative stride it is the last step of a block that touches what comes first.
        """
        first, last = block.start, block.end - 1
        low = exact_product(first, self._rising) + exact_product(last, self._falling)
        high = exact_product(last, self._rising) + exact_product(first, self._falling)
        origin = self.offset + self.start
        return Box(low + origin, high + origin + self.shape)

    def image_shape(self, block_shape: Sequence[int]) -> Ints:
        """The shape of the image of each block of that shape, which is the same for all."""
        return exact_product(ints(block_shape) - 1, abs(self.matrix)) + self.shape

    def is_sparse(self, block_shape: Sequence[int]) -> bool:
        """Whether the image of such a block has elements that none of its steps touches.

        It has where an axis moves the region along two dimensions at once, as along a diagonal, and where the steps
        along a dimension leave gaps.
        """
        moving = [axis for axis, extent in enumerate(block_shape) if extent > 1]
        diagonal = any(np.count_nonzero(self.matrix[axis]) > 1 for axis in moving)
        return diagonal or bool(self.gaps(block_shape))

    def gaps(self, block_shape: Sequence[int]) -> list[int]:
        """The dimensions along which the steps of such a block leave elements between them that none touches."""
        moving = [(extent, axis) for axis, extent in enumerate(block_shape) if extent > 1]
        return [dim for dim in range(self.rank) if self._leaves_gaps(dim, moving)]

    def overlap(self, block_shape: Sequence[int]) -> Ints:
        """The number of elements that the image of such a block shares with that of the next block along each axis.

        All of them for a fixed view, none for what is read once, and the halo's for a window. Shape (index rank,).
        """
        image = self.image_shape(block_shape)
        moved = abs(self.matrix) * ints(block_shape)[:, np.newaxis]
        return (image - moved).clip(min=0).prod(axis=-1)

    def marginal_sharing(self, block_shape: Sequence[int]) -> npt.NDArray[np.float64]:
        """`overlap` as a part of the image, from 0 to 1 along each axis. Shape (index rank,)."""
        return self.overlap(block_shape) / self.image_shape(block_shape).prod()

    def then(self, inner: "Projection") -> "Projection":
        """What a step touches through what it reads: this gives the points of `inner`'s index space.

        The region is the image under `inner` of the region here.
        """
        return Projection(
            exact_product(self.matrix, inner.matrix),
            exact_product(self.offset + self.start, inner.matrix) + inner.offset,
            inner.image_shape(self.shape.tolist()),
            exact_product(self.shape - 1, inner._falling) + inner.start,
        )

    def reversed(self, dim: int, size: int) -> "Projection":
        """The same onto the tensor whose dimension `dim`, of that size, runs the other way.

        What a person thinks of stays the same element; the region begins at what was its end.
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
        """Whether regions along `dim` do not touch, for steps of (extent, axis) that each move along one dimension."""
        starts = ints([0])
        for extent, axis in moving:
            if stride := int(self.matrix[axis, dim]):
                starts = np.unique(starts[:, np.newaxis] + stride * np.arange(extent))
        return bool((np.diff(starts) > self.shape[dim]).any())


def exact_product(points: Ints, matrix: Ints) -> Ints:
    """`points @ matrix`.

    Raises:
        ValueError: the two have different ranks, or the product could take more than 64 bits.
    """
    if points.ndim == 0 or points.shape[-1] != len(matrix):
        raise ValueError(f"points of shape {points.shape} in an index space of rank {len(matrix)}")
    if int(abs(points).max(initial=0)) * int(abs(matrix).sum(axis=0).max(initial=0)) >= 2**61:
        raise ValueError("a projection to what 64 bits cannot number")
    return points @ matrix
