"""Index vectors of a gather or a scatter, relative to the device's shard."""

from collections.abc import Collection, Sequence
from typing import cast

from xdsl.dialects.builtin import IntegerType, TensorType, i32, i64
from xdsl.ir import SSAValue

from sdy.passes.spmd.emit.device_shards import offsets
from sdy.passes.spmd.shards.elements import bounds
from sdy.passes.spmd.shards.layout import Layout
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.elementwise import AndOp, SubtractOp
from sdy.stablehlo.emitter import Emitter


class IndexVectors:
    """Builder of index vectors that are relative to the device's shard.

    Args:
        emit: Emitter of the operations.
        value: The index vectors, along dimension `vector_dim`.
        dims: The indexed dimension of each component.
        vector_dim: The dimension of the components in `value`, or its rank if vectors have one component.
        layout: The layout of the indexed tensor.
        local: The shape of a shard of the indexed tensor.
        split: The split dimensions for which indices become relative to the shard.
    """

    def __init__(
        self,
        emit: Emitter,
        value: SSAValue,
        dims: Sequence[int],
        vector_dim: int,
        layout: Layout,
        local: Sequence[int],
        split: Collection[int],
    ):
        # Narrow types may not represent all indices of the global tensor.
        wide = i32 if max(layout.shape, default=0) <= bounds(i32)[1] else i64
        is_narrow = cast(IntegerType, tensor_type(value).element_type).width.data < wide.width.data
        self.value = emit.convert(value, wide) if is_narrow else value
        self._emit, self._dims, self._vector_dim, self._split = emit, dims, vector_dim, split
        self._layout, self._local = layout, local

    def clamp(self) -> None:
        """Clamp indices to the bounds of the global tensor."""
        emit, type_ = self._emit, tensor_type(self.value)
        zero = emit.filled(type_, 0)
        last = [self._layout.shape[dim] - 1 for dim in self._dims]
        if len(last) > 1:
            element_type = cast(IntegerType, type_.element_type)
            border = self._along_vectors(emit.integers(last, (len(last),), element_type))
        else:
            border = emit.filled(type_, last[0])
        self.value = emit.clamp(zero, self.value, border)

    def count_from_part(self) -> None:
        """Subtract the offsets of the device's shard."""
        self.value = self._emit.binary(SubtractOp, self.value, self._like_indices(self._firsts()))

    def split_by_part(self) -> SSAValue:
        """Subtract the offsets of the device's shard, and return a mask of the components that were within it."""
        emit, firsts = self._emit, self._firsts()
        lasts = [self._last(dim, first) for dim, first in zip(self._dims, firsts, strict=True)]
        low, high, indices = self._like_indices(firsts), self._like_indices(lasts), self.value
        self.value = emit.binary(SubtractOp, indices, low)
        is_behind = emit.compare(ComparisonDirection.GE, indices, low)
        return emit.binary(AndOp, is_behind, emit.compare(ComparisonDirection.LE, indices, high))

    def _firsts(self) -> list[SSAValue]:
        """Return, as scalars, the offset of the device's shard for each component; 0 if its dimension is not split."""
        return [self._first(dim) if dim in self._split else self._scalar(0) for dim in self._dims]

    def _first(self, dim: int) -> SSAValue:
        starts = offsets(self._layout.axes[dim], self._local[dim], self._layout.mesh)
        return self._emit.convert(self._emit.of_device(starts), tensor_type(self.value).element_type)

    def _last(self, dim: int, first: SSAValue) -> SSAValue:
        if dim not in self._split:
            return self._scalar(self._layout.shape[dim] - 1)
        return self._emit.add(first, self._scalar(self._local[dim] - 1))

    def _scalar(self, number: int) -> SSAValue:
        return self._emit.filled(TensorType(tensor_type(self.value).element_type, ()), number)

    def _like_indices(self, components: Sequence[SSAValue]) -> SSAValue:
        """Broadcast one scalar for each component to the shape of the indices."""
        emit = self._emit
        if len(components) == 1:
            return emit.broadcast(components[0], (), tensor_type(self.value).get_shape())
        return self._along_vectors(emit.concatenate([emit.reshape(each, (1,)) for each in components], 0))

    def _along_vectors(self, vector: SSAValue) -> SSAValue:
        return self._emit.broadcast(vector, (self._vector_dim,), tensor_type(self.value).get_shape())


def all_of_vectors(emit: Emitter, components: SSAValue, vector_dim: int) -> SSAValue:
    """Reduce a mask of components by `and` to a mask of index vectors."""
    if vector_dim >= len(tensor_type(components).get_shape()):
        return components
    return emit.reduce(components, [vector_dim], AndOp, True)
