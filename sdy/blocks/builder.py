"""Builder of block operations, one axis at a time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from sdy.blocks.operation import Access, Axis, BlockOperation
from sdy.blocks.projection import Projection
from sdy.ir.walking import captured_values
from sdy.rule import FactorKind
from sdy.stablehlo import ConstantOp
from sdy.stablehlo.checks.agreement import bit_width

Place = int | tuple[int, int]
"""A dimension along which an axis moves, by one element per step or by the stride in the second number."""


@dataclass
class _TensorDescription:
    """Description of an operand or result: strides by (axis, dimension), and exceptions by dimension."""

    shape: tuple[int, ...]
    element_bytes: int
    strides: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    regions: dict[int, int] = field(default_factory=dict[int, int])
    offsets: dict[int, int] = field(default_factory=dict[int, int])
    spacing: dict[int, int] = field(default_factory=dict[int, int])

    def access(self, index_rank: int) -> Access:
        """Return the access; regions are single elements along moving dimensions, and full along the others."""
        matrix = np.zeros((index_rank, len(self.shape)), np.int64)
        for (axis, dim), stride in self.strides.items():
            matrix[axis, dim] = stride
        moves = {dim for _, dim in self.strides}
        region = [self.regions.get(dim, 1 if dim in moves else max(size, 1)) for dim, size in enumerate(self.shape)]
        dims = range(len(self.shape))
        projection = Projection.of(matrix, region, [self.offsets.get(dim, 0) for dim in dims])
        return Access(projection, self.shape, self.element_bytes, tuple(self.spacing.get(dim, 1) for dim in dims))


def operands_of(op: Operation) -> list[SSAValue]:
    """Return the operands of the block operation of `op`: its own, then the values that its regions capture.

    Constants that the regions capture are not operands.
    """
    captured = captured_values(op) if op.regions else []
    return [*op.operands, *(value for value in captured if not isinstance(value.owner, ConstantOp))]


class BlockBuilder:
    """Builder of the axes of one operation, major to minor in each dimension."""

    def __init__(self, op: Operation) -> None:
        self._name = op.name
        self._axes: list[Axis] = []
        self._operands = [_tensor(operand.type) for operand in operands_of(op)]
        self._results = [_tensor(type_) for type_ in op.result_types]

    def add(
        self,
        extent: int,
        operands: Mapping[int, Place],
        results: Mapping[int, Place],
        kind: FactorKind | None = None,
        size: int | None = None,
    ) -> None:
        """Add an axis of `extent` steps that moves along `{operand: dimension}` and `{result: dimension}`."""
        self._place(Axis(extent, kind, size), operands, results)

    def add_whole(
        self,
        size: int,
        operands: Mapping[int, int],
        results: Mapping[int, int],
        blocked: bool = False,
        kind: FactorKind = FactorKind.NEED_REPLICATION,
    ) -> None:
        """Add an axis of one step that accesses the dimensions, of `size`, in full."""
        axis = Axis(1, kind, size, blocked)
        number = self._place(axis, operands, results)
        for tensors, places in ((self._operands, operands), (self._results, results)):
            for tensor, dim in places.items():
                full = max(tensors[tensor].shape[dim], 1)
                tensors[tensor].strides[number, dim] = full
                tensors[tensor].regions[dim] = full

    def see_operand(self, operand: int, dim: int, region: int = 1, offset: int = 0, spacing: int = 1) -> None:
        """Let a step read `region` elements along `dim`, from `offset` on, of elements `spacing` apart."""
        _see(self._operands[operand], dim, region, offset, spacing)

    def see_result(self, result: int, dim: int, region: int = 1, offset: int = 0) -> None:
        """Let a step write `region` elements along `dim`, from `offset` on."""
        _see(self._results[result], dim, region, offset, spacing=1)

    def read_backwards(self, operand: int, dim: int) -> None:
        """Reverse the direction of axes along `dim` of an operand, which read all of it."""
        tensor = self._operands[operand]
        tensor.strides.update({place: -stride for place, stride in tensor.strides.items() if place[1] == dim})
        tensor.offsets[dim] = tensor.shape[dim] - 1

    def build(self, flops_per_step: float = 0) -> BlockOperation:
        """Return the block operation."""
        rank = len(self._axes)
        operands = tuple(tensor.access(rank) for tensor in self._operands)
        results = tuple(tensor.access(rank) for tensor in self._results)
        return BlockOperation(self._name, tuple(self._axes), operands, results, flops_per_step)

    def _place(self, axis: Axis, operands: Mapping[int, Place], results: Mapping[int, Place]) -> int:
        number = len(self._axes)
        self._axes.append(axis)
        for tensors, places in ((self._operands, operands), (self._results, results)):
            for tensor, place in places.items():
                dim, stride = place if isinstance(place, tuple) else (place, 1)
                tensors[tensor].strides[number, dim] = stride
        return number


def _tensor(type_: Attribute) -> _TensorDescription:
    """Describe a tensor; other types, such as tokens, are scalars of no bytes."""
    if not isinstance(type_, TensorType):
        return _TensorDescription((), 0)
    tensor = cast(TensorType[Attribute], type_)
    return _TensorDescription(tuple(tensor.get_shape()), -(-bit_width(tensor.element_type) // 8))


def _see(tensor: _TensorDescription, dim: int, region: int, offset: int, spacing: int) -> None:
    tensor.regions[dim], tensor.offsets[dim], tensor.spacing[dim] = region, offset, spacing
