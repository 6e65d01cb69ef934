"""Gather and scatter along split dimensions.

Each device subtracts the offset of its shard from the indices. An index that is then out of bounds belongs to another
device. A gather yields zero for it, so that an all-reduce sums up the result; a scatter drops its update, because
StableHLO ignores updates that are out of bounds.
"""

from dataclasses import replace
from functools import reduce

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import OpResult, SSAValue

from sdy.passes.spmd.emit.device_shards import clamped, mask_to_first_shard, offsets, shape_of
from sdy.passes.spmd.emit.illegality import Reason
from sdy.passes.spmd.emit.op_conversion import OpConversion, PaddedConversion
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.emit.padding import Insertion
from sdy.passes.spmd.emit.replicate import replicate
from sdy.passes.spmd.ops.gather_scatter.index_vectors import IndexVectors, all_of_vectors
from sdy.passes.spmd.plan.special_rules import rule_of_scatter
from sdy.passes.spmd.shards.elements import identities_of
from sdy.passes.spmd.shards.layout import Layout
from sdy.rule import FactorKind
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.attributes.operation_attributes import ScatterDimensionNumbersAttr, i64_array
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.control_flow import OptimizationBarrierOp
from sdy.stablehlo.elementwise import AndOp
from sdy.stablehlo.emitter import Emitter
from sdy.stablehlo.gather import GatherOp
from sdy.stablehlo.scatter import ScatterOp


def _lower_gather(conversion: OpConversion[GatherOp]) -> None:
    """Lower a gather.

    Along a split dimension, a full slice becomes a slice of the shard, and a slice of size 1 is read by the device that
    holds it.
    """
    op, operand = conversion.op, conversion.operands[0]
    batching = op.dimension_numbers.data.operand_batching_dims
    local = shape_of(op.operand)
    sizes = list(op.slice_sizes.get_values())
    single = [dim for dim in operand.split_dims if sizes[dim] == 1 and dim not in batching]
    op.slice_sizes = i64_array(*(min(size, part) for size, part in zip(sizes, local, strict=True)))
    if not single:
        return
    users = list(op.result.uses)
    is_mine = _is_mine(conversion, single)
    emit, result = conversion.after(), tensor_type(op.result)
    if shape_of(is_mine):
        is_mine = all_of_vectors(emit, is_mine, op.dimension_numbers.data.index_vector_dim)
        batch_dims = [dim for dim in range(len(result.shape)) if dim not in op.dimension_numbers.data.offset_dims]
    else:
        batch_dims = []
    is_mine = emit.broadcast(is_mine, batch_dims, result.get_shape())
    mine = emit.select(is_mine, op.result, emit.filled(result, 0))
    for use in users:
        use.operation.operands[use.index] = mine


def _is_mine(conversion: OpConversion[GatherOp], single: list[int]) -> SSAValue:
    """Make the gather's indices relative to the device's shard, and return a mask of those within the shard.

    The mask has the shape of the indices, or is a scalar if no split dimension is indexed.
    """
    op, operand, emit = conversion.op, conversion.operands[0], conversion.before()
    numbers = op.dimension_numbers.data
    others = [dim for dim in single if dim not in numbers.start_index_map]
    if len(others) == len(single):
        return _has_first(emit, others, conversion)
    indices = IndexVectors(
        emit,
        op.start_indices,
        numbers.start_index_map,
        numbers.index_vector_dim,
        operand,
        shape_of(op.operand),
        single,
    )
    indices.clamp()
    is_mine = indices.split_by_part()
    if others:
        has_first = emit.broadcast(_has_first(emit, others, conversion), (), shape_of(is_mine))
        is_mine = emit.binary(AndOp, is_mine, has_first)
    op.operands[1] = indices.value
    return is_mine


def _has_first(emit: Emitter, dims: list[int], conversion: OpConversion[GatherOp]) -> SSAValue:
    """Emit whether the device's shard is the first along `dims`: the start of a dimension that is not indexed is 0."""
    operand, local = conversion.operands[0], shape_of(conversion.op.operand)
    firsts: list[SSAValue] = []
    for dim in dims:
        offset = emit.of_device(offsets(operand.axes[dim], local[dim], operand.mesh))
        firsts.append(emit.compare(ComparisonDirection.EQ, offset, emit.integers([0], ())))
    return reduce(lambda condition, first: emit.binary(AndOp, condition, first), firsts)


def _lower_scatter(conversion: OpConversion[ScatterOp]) -> None:
    op, emit = conversion.op, conversion.before()
    count = len(op.inputs)
    input_, updates = conversion.operands[0], conversion.operands[count + 1]
    numbers = op.scatter_dimension_numbers.data
    batch_axes = [
        axis
        for dim in updates.split_dims
        if dim not in numbers.update_window_dims
        for axis in updates.axes[dim]
        if not any(axis in axes for axes in input_.axes)
    ]
    if batch_axes:
        identities = identities_of(op.update_computation, [tensor_type(each).element_type for each in op.inputs])
        if identities is None:
            replicate(conversion, Reason.INPUTS_COMBINED)
            return
        for index, identity in enumerate(identities):
            op.operands[index] = mask_to_first_shard(emit, op.operands[index], identity, batch_axes, conversion.mesh)
    sizes = op.update_sizes(updates.shape)
    counted = [
        dim
        for dim in input_.split_dims
        if dim in numbers.inserted_window_dims
        or (dim in numbers.scatter_dims_to_operand_dims and sizes[dim] < input_.shape[dim])
    ]
    if counted:
        _count_from_part(conversion, emit, counted)


def _count_from_part(conversion: OpConversion[ScatterOp], emit: Emitter, dims: list[int]) -> None:
    """Make the scatter's indices along the split dimensions `dims` relative to the device's shard."""
    op, indices = conversion.op, conversion.operands[len(conversion.op.inputs)]
    may_be_slice = isinstance(op.inputs[0], OpResult) or conversion.target.planner.preserves_semantics
    if may_be_slice and _is_single_vector(indices, op.scatter_dimension_numbers.data.index_vector_dim):
        # XLA rewrites a scatter of a single index vector as a slice update, and drops its bounds check if the input is
        # itself a slice. A function argument may be a slice in the caller.
        op.operands[0] = emit.insert(
            OptimizationBarrierOp.create(operands=[op.inputs[0]], result_types=[op.inputs[0].type])
        )
    _index_all(op, emit, dims)
    numbers = op.scatter_dimension_numbers.data
    vectors = IndexVectors(
        emit,
        op.scatter_indices,
        numbers.scatter_dims_to_operand_dims,
        numbers.index_vector_dim,
        conversion.operands[0],
        shape_of(op.inputs[0]),
        dims,
    )
    vectors.count_from_part()
    op.operands[len(op.inputs)] = vectors.value


def _index_all(op: ScatterOp, emit: Emitter, dims: list[int]) -> None:
    """Append a zero component to the index vectors for each of `dims` without one, which means the same."""
    numbers = op.scatter_dimension_numbers.data
    missing = [dim for dim in dims if dim not in numbers.scatter_dims_to_operand_dims]
    if not missing:
        return
    vectors, vector_dim = op.scatter_indices, numbers.index_vector_dim
    shape = list(shape_of(vectors))
    if vector_dim == len(shape):
        shape.append(1)
        vectors = emit.reshape(vectors, shape)
    shape[vector_dim] = len(missing)
    zeros = emit.filled(TensorType(tensor_type(vectors).element_type, shape), 0)
    op.operands[len(op.inputs)] = emit.concatenate([vectors, zeros], vector_dim)
    indexed = (*numbers.scatter_dims_to_operand_dims, *missing)
    op.scatter_dimension_numbers = ScatterDimensionNumbersAttr(replace(numbers, scatter_dims_to_operand_dims=indexed))


def _is_single_vector(indices: Layout, vector_dim: int) -> bool:
    return all(size == 1 for dim, size in enumerate(indices.shape) if dim != vector_dim)


def _pad_gather(conversion: PaddedConversion[GatherOp]) -> bool:
    """Pad the tensors of a gather, with the indices clamped to the unpadded operand."""
    op, operand, indices = conversion.op, conversion.operands[0], conversion.operands[1]
    numbers = op.dimension_numbers.data
    if not conversion.carries(FactorKind.REDUCTION):
        return False
    sizes = list(op.slice_sizes.get_values())
    if set(conversion.reduced_dims(0)) & set(numbers.start_index_map):
        last = [operand.shape[dim] - sizes[dim] for dim in numbers.start_index_map]
        along = (numbers.index_vector_dim,) if numbers.index_vector_dim < len(indices.shape) else ()
        op.operands[1] = clamped(
            conversion.padding.emitter(Insertion.before(op), indices), op.start_indices, last, along
        )
    for dim in operand.uneven_dims:
        if dim not in conversion.reduced_dims(0) and dim not in numbers.operand_batching_dims:
            sizes[dim] = operand.padded_shape[dim]
    op.slice_sizes = i64_array(*sizes)
    return True


def _pad_scatter(conversion: PaddedConversion[ScatterOp]) -> bool:
    """Pad the tensors of a scatter; index vectors in the padding are -1, so that their updates are out of bounds."""
    op = conversion.op
    place = len(op.inputs)
    dims = conversion.reduced_dims(place)
    if not conversion.carries(FactorKind.REDUCTION) or (
        dims and not op.scatter_dimension_numbers.data.scatter_dims_to_operand_dims
    ):
        return False
    if dims:
        # No unsigned index is always out of bounds.
        op.operands[place] = conversion.padding.emitter(Insertion.before(op), conversion.operands[place]).convert(
            op.scatter_indices, i64
        )
        conversion.fill(place, dims, -1)
    return True


PARTITIONING: PartitioningTable = {
    GatherOp: OperationPartitioning(pad=_pad_gather, lower=_lower_gather),
    ScatterOp: OperationPartitioning(pad=_pad_scatter, lower=_lower_scatter, rule=rule_of_scatter),
}
