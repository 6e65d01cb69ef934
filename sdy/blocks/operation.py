"""Block operations: an operation as a grid of independent steps, and what each block of them reads and writes.

A matmul of (8, 3) by (3, 5) is a grid of 8 by 5 by 3 steps. The axes of the grid are cut into blocks; a block is what
one device or one worker computes, and the projections say what it needs and gives. An axis that no result depends on,
the last one here, is that of a reduction: its blocks give partial results, which are still to be combined.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sdy.box import Box, Ints
from sdy.projection import Projection
from sdy.rule import FactorKind


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis of the grid, of `extent` steps.

    `kind` is what cutting it asks of the operation; where it is None, the projections say whether elements move between
    the blocks. A need-replication axis is a single step that reads the dimension whole. `size` is that of the factor
    in the sharding rule, if it isn't the extent, and nothing is propagated along an axis that is `blocked`.
    """

    extent: int
    kind: FactorKind | None = None
    size: int | None = None
    blocked: bool = False

    @property
    def factor_size(self) -> int:
        """The size of the factor that stands for this axis in a sharding rule."""
        return self.extent if self.size is None else self.size


@dataclass(frozen=True, eq=False)
class Access:
    """What the steps touch of one operand or result, of `shape`, whose elements take `element_bytes` each.

    The projection is onto the tensor as the operation sees it, with `spacing[d] - 1` holes between each two elements of
    dimension `d`, and with as much padding around it as regions that leave it need.
    """

    projection: Projection
    shape: tuple[int, ...]
    element_bytes: int
    spacing: tuple[int, ...]

    def image(self, block: Box) -> Box:
        """The bounds of the elements that each block touches, those in the padding included."""
        seen = self.projection.image(block)
        spacing = np.asarray(self.spacing, np.int64)
        start = -(-seen.start // spacing)
        return Box(start, np.maximum(-(-seen.end // spacing), start + 1))

    def touched(self, block: Box) -> Ints:
        """The shape of what each block touches within the tensor; 0 where all of that is padding."""
        image = self.image(block)
        return (np.minimum(image.end, self.shape) - np.maximum(image.start, 0)).clip(min=0)

    def bytes(self, block: Box) -> Ints:
        """How many bytes of the tensor each block touches."""
        return self.touched(block).prod(axis=-1) * self.element_bytes

    def axes_of(self, dim: int) -> Sequence[int]:
        """The axes along which the region moves in dimension `dim`, the longest stride first."""
        strides = abs(self.projection.matrix[:, dim])
        return sorted(strides.nonzero()[0].tolist(), key=lambda axis: -strides[axis])


@dataclass(frozen=True, eq=False)
class BlockOperation:
    """The axes of an operation's grid, what its steps touch, and the arithmetic operations in each step."""

    name: str
    axes: tuple[Axis, ...]
    operands: tuple[Access, ...]
    results: tuple[Access, ...]
    flops_per_step: float

    @property
    def accesses(self) -> tuple[Access, ...]:
        """Those of the operands, then those of the results."""
        return self.operands + self.results

    @property
    def index_shape(self) -> tuple[int, ...]:
        """The extent of each axis."""
        return tuple(axis.extent for axis in self.axes)

    @property
    def index_space(self) -> Box:
        """The whole grid.

        Raises:
            ValueError: an axis has no steps.
        """
        return Box.whole(self.index_shape)
