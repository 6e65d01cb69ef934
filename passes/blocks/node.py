"""Operations of a program in the form that fusion reads: axes, and the dimensions that they move along."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from sdy.blocks import Access, BlockOperation, block_operation, operands_of
from sdy.blocks.builder import BlockBuilder
from sdy.ir.elements import splat
from sdy.ir.shapes import shape, shape_of
from sdy.rule import FactorKind
from sdy.rules import movement
from sdy.stablehlo import ConstantOp, IotaOp, ReshapeOp, SliceOp

_WHOLE_KINDS = (FactorKind.REDUCTION, FactorKind.NEED_REPLICATION)


class Dim(NamedTuple):
    """A dimension of a tensor that an operation accesses.

    Attributes:
        size: The number of elements.
        region: The number of elements that a step accesses.
        spacing: The base dilation.
        moves: The axes that move the region, with the absolute strides, the smallest first.
        is_aligned: Whether step `i` of a single axis accesses element `i`.
    """

    size: int
    region: int
    spacing: int
    moves: tuple[tuple[int, int], ...]
    is_aligned: bool

    def extent(self, shape: Sequence[int]) -> int:
        """Return the largest number of elements that a block of `shape` accesses, wherever it is."""
        extent = self.region
        for axis, stride in self.moves:
            extent += stride * (shape[axis] - 1)
        return min(self.size, -(-extent // self.spacing))

    def has_gaps(self, shape: Sequence[int]) -> bool:
        """Return whether the steps of a block of `shape` leave elements between them that none accesses."""
        covered = self.region
        for axis, stride in self.moves:
            if shape[axis] > 1:
                if stride > covered:
                    return True
                covered += stride * (shape[axis] - 1)
        return False


@dataclass(eq=False)
class Node:
    """An operation of a program.

    Attributes:
        op: The operation.
        position: Its position in the program.
        blocks: Its axes; None if it is computed in one block.
        is_view: Whether each group of operations that reads its results computes them anew, as it takes no arithmetic.
    """

    op: Operation
    position: int
    blocks: BlockOperation | None
    is_view: bool

    @classmethod
    def of(cls, op: Operation, position: int) -> "Node":
        """Return the node of `op`."""
        if is_generated(op):
            return cls(op, position, _generated(op), is_view=True)
        blocks = block_operation(op)
        if blocks is None or any(0 in access.shape for access in blocks.accesses):
            return cls(op, position, None, is_view=False)
        return cls(op, position, blocks, isinstance(op, SliceOp | ReshapeOp) or movement(op.name) is not None)

    @cached_property
    def values(self) -> Sequence[SSAValue]:
        """The values that it reads: its operands, and what its regions capture."""
        return operands_of(self.op)

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """The number of steps along each axis."""
        return () if self.blocks is None else self.blocks.index_shape

    @cached_property
    def whole_axes(self) -> Sequence[int]:
        """The axes that cannot be split: reductions, and dimensions that are accessed in full."""
        axes = () if self.blocks is None else self.blocks.axes
        return [number for number, axis in enumerate(axes) if axis.kind in _WHOLE_KINDS]

    @cached_property
    def operand_dims(self) -> Sequence[Sequence[Dim]]:
        """The dimensions of each of `values`."""
        if self.blocks is None:
            return [_whole(value) for value in self.values]
        return [_dims(access, self.extents) for access in self.blocks.operands]

    @cached_property
    def result_dims(self) -> Sequence[Sequence[Dim]]:
        """The dimensions of each result."""
        if self.blocks is None:
            return [_whole(result) for result in self.op.results]
        return [_dims(access, self.extents) for access in self.blocks.results]

    def can_be_computed(self, shape: Sequence[int]) -> bool:
        """Return whether blocks of `shape` leave no gaps that the whole does not leave, and write a regular grid."""
        for dims in (*self.operand_dims, *self.result_dims):
            for dim in dims:
                if len(dim.moves) > 1 and dim.has_gaps(shape) and not dim.has_gaps(self.extents):
                    return False
        return all(
            self.extents[axis] % shape[axis] == 0
            for dims in self.result_dims
            for dim in dims
            for axis, _ in dim.moves[:-1]
        )


def is_generated(op: Operation) -> bool:
    """Return whether the elements of the result of `op` are known from their positions."""
    is_splat = isinstance(op, ConstantOp) and splat(op.value) is not None
    return (is_splat or isinstance(op, IotaOp)) and 0 not in shape(op.results[0].type)


def _generated(op: Operation) -> BlockOperation:
    block = BlockBuilder(op)
    for dim, size in enumerate(shape_of(op.results[0])):
        block.add(size, {}, {0: dim})
    return block.build()


def _whole(value: SSAValue) -> Sequence[Dim]:
    return [Dim(size, size, 1, (), False) for size in shape(value.type)]


def _dims(access: Access, extents: Sequence[int]) -> Sequence[Dim]:
    projection = access.projection
    start = (projection.offset + projection.start).tolist()
    matrix, regions = projection.matrix.tolist(), projection.shape.tolist()
    dims: list[Dim] = []
    for dim, size in enumerate(access.shape):
        moves = sorted((abs(row[dim]), axis) for axis, row in enumerate(matrix) if row[dim] and extents[axis] > 1)
        strides = [row[dim] for row in matrix if row[dim]]
        is_aligned = (
            len(moves) == len(strides) == strides.count(1) == 1
            and (start[dim], regions[dim], access.spacing[dim]) == (0, 1, 1)
            and extents[moves[0][1]] == size
        )
        moving = tuple((axis, stride) for stride, axis in moves)
        dims.append(Dim(size, regions[dim], access.spacing[dim], moving, is_aligned))
    return dims
