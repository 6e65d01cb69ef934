"""Building a block operation, an axis at a time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from sdy.blocks.operation import Access, Axis, BlockOperation
from sdy.projection import Projection
from sdy.rule import FactorKind
from sdy.stablehlo.checks.agreement import bit_width

Place = int | tuple[int, int]
"""A dimension along which an axis moves, by one element for each step, or by as many as the second number says."""


@dataclass
class _DescribedTensor:
    """An operand or result as it is described: the strides by (axis, dimension), and what isn't as usual."""

    shape: tuple[int, ...]
    element_bytes: int
    strides: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    regions: dict[int, int] = field(default_factory=dict[int, int])
    offsets: dict[int, int] = field(default_factory=dict[int, int])
    spacing: dict[int, int] = field(default_factory=dict[int, int])

    def access(self, index_rank: int) -> Access:
        """The regions are single elements along the dimensions in which they move, and all of the others."""
        matrix = np.zeros((index_rank, len(self.shape)), np.int64)
        for (axis, dim), stride in self.strides.items():
            matrix[axis, dim] = stride
        moves = {dim for _, dim in self.strides}
        region = [self.regions.get(dim, 1 if dim in moves else max(size, 1)) for dim, size in enumerate(self.shape)]
        dims = range(len(self.shape))
        projection = Projection.of(matrix, region, [self.offsets.get(dim, 0) for dim in dims])
        return Access(projection, self.shape, self.element_bytes, tuple(self.spacing.get(dim, 1) for dim in dims))


class BlockBuilder:
    """The axes of one operation as they are found, major to minor in each dimension."""

    def __init__(self, op: Operation) -> None:
        self._name = op.name
        self._axes: list[Axis] = []
        self._operands = [_tensor(type_) for type_ in op.operand_types]
        self._results = [_tensor(type_) for type_ in op.result_types]

    def add(
        self,
        extent: int,
        operands: Mapping[int, Place],
        results: Mapping[int, Place],
        kind: FactorKind | None = None,
        size: int | None = None,
    ) -> None:
        """An axis of `extent` steps that moves along `{operand: dimension}` and `{result: dimension}`."""
        self._place(Axis(extent, kind, size), operands, results)

    def add_whole(
        self, size: int, operands: Mapping[int, int], results: Mapping[int, int], blocked: bool = False
    ) -> None:
        """An axis of one step, that has the dimensions of `size` given whole."""
        axis = Axis(1, FactorKind.NEED_REPLICATION, size, blocked)
        number = self._place(axis, operands, results)
        for tensors, places in ((self._operands, operands), (self._results, results)):
            for tensor, dim in places.items():
                whole = max(tensors[tensor].shape[dim], 1)
                tensors[tensor].strides[number, dim] = whole
                tensors[tensor].regions[dim] = whole

    def see_operand(self, operand: int, dim: int, region: int = 1, offset: int = 0, spacing: int = 1) -> None:
        """Along `dim`, a step reads `region` elements from `offset` on, of elements that stand `spacing` apart."""
        _see(self._operands[operand], dim, region, offset, spacing)

    def see_result(self, result: int, dim: int, region: int = 1, offset: int = 0) -> None:
        """Along `dim`, a step writes `region` elements from `offset` on."""
        _see(self._results[result], dim, region, offset, spacing=1)

    def read_backwards(self, operand: int, dim: int) -> None:
        """The axes along `dim` of an operand, which read all of it, read it from the last element on."""
        tensor = self._operands[operand]
        tensor.strides.update({place: -stride for place, stride in tensor.strides.items() if place[1] == dim})
        tensor.offsets[dim] = tensor.shape[dim] - 1

    def build(self, flops_per_step: float = 0) -> BlockOperation:
        """The operation."""
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


def _tensor(type_: Attribute) -> _DescribedTensor:
    """A tensor; anything else, such as a token, is a scalar that takes no space."""
    if not isinstance(type_, TensorType):
        return _DescribedTensor((), 0)
    tensor = cast(TensorType[Attribute], type_)
    return _DescribedTensor(tuple(tensor.get_shape()), -(-bit_width(tensor.element_type) // 8))


def _see(tensor: _DescribedTensor, dim: int, region: int, offset: int, spacing: int) -> None:
    tensor.regions[dim], tensor.offsets[dim], tensor.spacing[dim] = region, offset, spacing
