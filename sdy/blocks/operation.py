"""Block operations: an operation as a grid of independent steps, and the regions that blocks of them read and write.

A matmul of (8, 3) by (3, 5) is a grid of 8 by 5 by 3 steps. The axes of the grid are partitioned into blocks; a block
is computed by one device or worker, and the projections give the regions that it reads and writes. An axis that no
result depends on, here the last one, is a reduction: its blocks give partial results, to be combined later.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sdy.blocks.projection import Projection
from sdy.box import Box, Ints
from sdy.rule import FactorKind


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis of the grid.

    Attributes:
        extent: The number of steps.
        kind: The kind of the factor; None to derive it from the projections: whether elements move between blocks. A
            need-replication axis is a single step that reads the full dimension.
        size: The size of the factor in the sharding rule, if it differs from the extent.
        blocked: Whether propagation along the axis is blocked.
    """

    extent: int
    kind: FactorKind | None = None
    size: int | None = None
    blocked: bool = False

    @property
    def factor_size(self) -> int:
        """The size of this axis' factor in a sharding rule."""
        return self.extent if self.size is None else self.size


@dataclass(frozen=True, eq=False)
class Access:
    """The region of one operand or result that a step accesses.

    Attributes:
        projection: Maps a step to its region of the tensor as the operation sees it: with base dilation, and with as
            much padding around it as regions need.
        shape: The shape of the tensor.
        element_bytes: The bytes of an element.
        spacing: The base dilation: there are `spacing[d] - 1` holes between neighbouring elements of dimension `d`.
    """

    projection: Projection
    shape: tuple[int, ...]
    element_bytes: int
    spacing: tuple[int, ...]

    def image(self, block: Box) -> Box:
        """Return the bounding box of the elements that each block accesses, including padding."""
        seen = self.projection.image(block)
        spacing = np.asarray(self.spacing, np.int64)
        start = -(-seen.start // spacing)
        return Box(start, np.maximum(-(-seen.end // spacing), start + 1))

    def touched(self, block: Box) -> Ints:
        """Return the shape of the region of the tensor that each block accesses; 0 if it is all padding."""
        image = self.image(block)
        return (np.minimum(image.end, self.shape) - np.maximum(image.start, 0)).clip(min=0)

    def bytes(self, block: Box) -> Ints:
        """Return the bytes of the tensor that each block accesses."""
        return self.touched(block).prod(axis=-1) * self.element_bytes

    def axes_of(self, dim: int) -> Sequence[int]:
        """Return the axes along which the region moves in dimension `dim`, the longest stride first."""
        strides = abs(self.projection.matrix[:, dim])
        return sorted(strides.nonzero()[0].tolist(), key=lambda axis: -strides[axis])


@dataclass(frozen=True, eq=False)
class BlockOperation:
    """An operation as a grid of steps.

    Attributes:
        name: The name of the operation.
        axes: The axes of the grid.
        operands: The access of each operand.
        results: The access of each result.
        flops_per_step: Arithmetic operations of each step.
    """

    name: str
    axes: tuple[Axis, ...]
    operands: tuple[Access, ...]
    results: tuple[Access, ...]
    flops_per_step: float

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The accesses of the operands, then of the results."""
        return self.operands + self.results

    @property
    def index_shape(self) -> tuple[int, ...]:
        """The extent of each axis."""
        return tuple(axis.extent for axis in self.axes)

    @property
    def index_space(self) -> Box:
        """The box of all steps.

        Raises:
            ValueError: An axis has no steps.
        """
        return Box.of_shape(self.index_shape)
