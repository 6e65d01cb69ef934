"""Gather and scatter where the places that they index are split over devices.

Each device has the places from its offset on. It takes the offset off the indices; those that then lie outside its part
are another device's. A gather yields zero for them, so that the sum over the devices is the whole result; a scatter
ignores them by itself, as it does indices outside the whole.
"""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import IntegerType, TensorType, i1, i32
from xdsl.ir import SSAValue

from sdy.passes.common.device_groups import shard_indices
from sdy.passes.partitioning.collectives import offsets
from sdy.passes.partitioning.emitter import Emitter, after, before
from sdy.passes.partitioning.layout import Layout
from sdy.passes.partitioning.reductions import identity_of, on_leader
from sdy.passes.partitioning.site import Lowerings, Site
from sdy.passes.partitioning.whole import compute_whole
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.control_flow import OptimizationBarrierOp
from sdy.stablehlo.elementwise import AndOp, SubtractOp
from sdy.stablehlo.gather import GatherOp
from sdy.stablehlo.reduction import ReduceOp, reducer_body
from sdy.stablehlo.scatter import ScatterOp

INDEXING = Lowerings()


class _Indices:
    """Index vectors into a tensor: component c of each, along dimension `vector_dim`, is for dimension `dims[c]`."""

    def __init__(self, emit: Emitter, value: SSAValue, dims: Sequence[int], vector_dim: int):
        # Narrow types may not hold all places of the whole.
        is_narrow = cast(IntegerType, tensor_type(value).element_type).width.data < i32.width.data
        self._emit = emit
        self._value = emit.convert(value, i32) if is_narrow else value
        self._dims = dims
        self._vector_dim = vector_dim

    def clamp(self, shape: Sequence[int]) -> None:
        """Move indices outside a tensor of `shape` to its border."""
        type_ = tensor_type(self._value)
        first = self._emit.filled(TensorType(type_.element_type, ()), 0)
        last = self._emit.integers([shape[dim] - 1 for dim in self._dims], (len(self._dims),))
        self._value = self._emit.clamp(first, self._value, self._like_indices(last))

    def localize(self, layout: Layout, split_dims: Sequence[int], local_shape: Sequence[int]) -> SSAValue:
        """Count from the beginning of the device's part, along `split_dims`."""
        columns = [
            offsets(layout.axes[dim] if dim in split_dims else (), local_shape[dim], layout.mesh) for dim in self._dims
        ]
        offset = self._emit.row_of_device(list(zip(*columns, strict=True)))
        self._value = self._emit.binary(SubtractOp, self._value, self._like_indices(offset))
        return self._value

    def inside(self, sizes: Sequence[int]) -> SSAValue:
        """Which index vectors lie in a tensor of these sizes: booleans in the shape of the indices' batch."""
        emit, shape = self._emit, tensor_type(self._value).get_shape()
        zero = emit.filled(tensor_type(self._value), 0)
        end = self._like_indices(emit.integers([sizes[dim] for dim in self._dims], (len(self._dims),)))
        inside = emit.binary(
            AndOp,
            emit.compare(ComparisonDirection.GE, self._value, zero),
            emit.compare(ComparisonDirection.LT, self._value, end),
        )
        if self._vector_dim == len(shape):
            return inside
        batch = [size for dim, size in enumerate(shape) if dim != self._vector_dim]
        return emit.insert(
            ReduceOp.create(
                operands=[inside, emit.integers([1], (), i1)],
                properties={"dimensions": i64_array(self._vector_dim)},
                result_types=[TensorType(i1, batch)],
                regions=[reducer_body(AndOp, inside)],
            )
        )

    def _like_indices(self, components: SSAValue) -> SSAValue:
        """One number for each component, repeated to the shape of the indices."""
        shape = tensor_type(self._value).get_shape()
        components = self._emit.convert(components, tensor_type(self._value).element_type)
        if self._vector_dim == len(shape):
            return self._emit.broadcast(self._emit.reshape(components, ()), (), shape)
        return self._emit.broadcast(components, (self._vector_dim,), shape)


@INDEXING.of(GatherOp)
def _gather(site: Site[GatherOp]) -> None:
    op, operand, emit = site.op, site.operands[0], before(site.op)
    numbers = op.dimension_numbers.data
    local_shape = tensor_type(op.operand).get_shape()
    sizes = list(op.slice_sizes.get_values())
    single = [dim for dim in operand.split_dims if sizes[dim] == 1 and dim not in numbers.operand_batching_dims]
    for dim in operand.split_dims:
        sizes[dim] = min(sizes[dim], local_shape[dim])
    op.slice_sizes = i64_array(*sizes)
    if not single:
        return

    result_shape = tensor_type(op.result).get_shape()
    conditions: list[SSAValue] = []
    indexed = [dim for dim in single if dim in numbers.start_index_map]
    if indexed:
        indices = _Indices(emit, op.start_indices, numbers.start_index_map, numbers.index_vector_dim)
        indices.clamp(operand.shape)
        op.operands[1] = indices.localize(operand, indexed, local_shape)
        inside = indices.inside([local_shape[d] if d in indexed else operand.shape[d] for d in range(len(local_shape))])
        batch_dims = [dim for dim in range(len(result_shape)) if dim not in numbers.offset_dims]
        conditions.append(emit.broadcast(inside, batch_dims, result_shape))
    # A dimension that is not indexed is read at 0, which the first device along its axes has.
    others = [axis for dim in single if dim not in indexed for axis in operand.axes[dim]]
    if others:
        index = emit.of_device(shard_indices(others, operand.mesh))
        is_first = emit.compare(ComparisonDirection.EQ, index, emit.integers([0], ()))
        conditions.append(emit.broadcast(is_first, (), result_shape))
    is_mine = conditions[0] if len(conditions) == 1 else emit.binary(AndOp, *conditions)

    users = list(op.result.uses)
    emit = after(op)
    mine = emit.select(is_mine, op.result, emit.filled(tensor_type(op.result), 0))
    for use in users:
        use.operation.operands[use.index] = mine


@INDEXING.of(ScatterOp)
def _scatter(site: Site[ScatterOp]) -> None:
    op, emit = site.op, before(site.op)
    count = len(op.inputs)
    input_, updates = site.operands[0], site.operands[count + 1]
    numbers = op.scatter_dimension_numbers.data

    inserted = [dim for dim in input_.split_dims if dim in numbers.inserted_window_dims]
    if any(dim not in numbers.scatter_dims_to_operand_dims for dim in inserted):
        compute_whole(site, "it updates a dimension, which is split, at index 0 only")
        return
    batch_axes = [
        axis
        for dim in updates.split_dims
        if dim not in numbers.update_window_dims
        for axis in updates.axes[dim]
        if not any(axis in axes for axes in input_.axes)
    ]
    if batch_axes:
        identity = identity_of(op.update_computation, tensor_type(op.inputs[0]).element_type)
        if identity is None:
            compute_whole(site, "what it updates would count several times")
            return
        op.operands[0] = on_leader(emit, op.inputs[0], identity, batch_axes, site.mesh)
    if inserted:
        if _is_single_vector(site.operands[count], numbers.index_vector_dim):
            # XLA reads and writes a slice instead, whose limits it forgets where the input is a slice itself.
            op.operands[0] = emit.insert(
                OptimizationBarrierOp.create(operands=[op.inputs[0]], result_types=[op.inputs[0].type])
            )
        indices = _Indices(emit, op.scatter_indices, numbers.scatter_dims_to_operand_dims, numbers.index_vector_dim)
        op.operands[count] = indices.localize(input_, inserted, tensor_type(op.inputs[0]).get_shape())


def _is_single_vector(indices: Layout, vector_dim: int) -> bool:
    return all(size == 1 for dim, size in enumerate(indices.shape) if dim != vector_dim)
