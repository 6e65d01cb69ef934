"""Reuse of equal reshards, through reshapes and transposes."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from sdy.axes import AxisRef, axis_between
from sdy.dialect.meshes import mesh_of
from sdy.dialect.ops import ReshardOp
from sdy.ir.shapes import shape
from sdy.mesh import Mesh
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo.shape import ReshapeOp, TransposeOp


class ReuseReshard(RewritePattern):
    """Reuse an earlier reshard to the same layout, and apply the reshapes and transposes to its result.

    Before::

        %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<4x8xf32>
        %1 = stablehlo.reshape %arg0 : (tensor<4x8xf32>) -> tensor<32xf32>
        %2 = sdy.reshard %1 <@mesh, [{"x"}]> : tensor<32xf32>

    After::

        %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<4x8xf32>
        %1 = stablehlo.reshape %0 : (tensor<4x8xf32>) -> tensor<32xf32>
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReshardOp, rewriter: PatternRewriter) -> None:
        """Replace a reshard by an earlier one of the same source."""
        mesh = mesh_of(op.sharding.data, op)
        path: list[Operation] = []
        root, sharding = op.input, op.sharding.data
        while isinstance(step := root.owner, Operation) and (before := layout_before(step, sharding, mesh)) is not None:
            path.append(step)
            root, sharding = step.operands[0], before

        for earlier in _reshards_behind_reshapes(root):
            if _comes_before(earlier, op) and _same_layout(earlier.result, earlier.sharding.data, root, sharding, mesh):
                break
        else:
            return

        value = earlier.result
        if value.type != root.type:
            value = _append(ReshapeOp.create(operands=[value], result_types=[root.type]), value, rewriter)
        for step in reversed(path):
            copy = step.clone()
            copy.operands[0] = value
            value = _append(copy, value, rewriter)
        rewriter.replace(op, (), (value,))


def _append(new: Operation, value: SSAValue, rewriter: PatternRewriter) -> SSAValue:
    assert isinstance(value.owner, Operation)
    rewriter.insert(new, InsertPoint.after(value.owner))
    return new.results[0]


def layout_before(op: Operation, sharding: TensorSharding, mesh: Mesh) -> TensorSharding | None:
    """Return the operand sharding of a reshape or transpose that is equivalent to `sharding` of its result.

    Each device then holds the same elements before and after `op`. None if `op` is another operation, or no sharding of
    the operand is equivalent.
    """
    match op:
        case TransposeOp() if sharding.rank == len(op.permutation):
            permutation = op.permutation.get_values()
            return replace(sharding, dims=tuple(sharding.dims[permutation.index(d)] for d in range(sharding.rank)))
        case ReshapeOp() if sharding.rank == len(shape(op.result.type)):
            return _before_reshape(sharding, shape(op.result.type), shape(op.operand.type), mesh)
        case _:
            return None


def _before_reshape(
    sharding: TensorSharding, shape: Sequence[int], shape_before: Sequence[int], mesh: Mesh
) -> TensorSharding | None:
    axis_strides = _strides(sharding, shape, mesh)
    dims: list[DimSharding] = []
    for index, size in enumerate(shape_before):
        first = math.prod(shape_before[index + 1 :])
        parts = (_sub_axis_between(axis, stride, first, first * size, mesh) for axis, stride in reversed(axis_strides))
        dims.append(DimSharding(tuple(part for part in parts if part is not None)))
    before = replace(sharding, dims=tuple(dims))
    return before if has_same_parts(before, shape_before, sharding, shape, mesh) else None


def _sub_axis_between(axis: AxisRef, stride: int, low: int, high: int, mesh: Mesh) -> AxisRef | None:
    """Return the sub-axis of `axis`, with shards `stride` apart, whose shards are `low` to `high` apart."""
    end = stride * axis.size_in(mesh)
    low, high = max(low, stride), min(high, end)
    if low >= high or end % high or high % low:
        return None
    return axis_between(axis.name, axis.start * (end // high), axis.start * (end // low), mesh)


def _reshards_behind_reshapes(root: SSAValue) -> Iterator[ReshardOp]:
    """Yield the reshards of `root` and of its reshapes."""
    pending = [root]
    while pending:
        for use in pending.pop().uses:
            if isinstance(use.operation, ReshardOp):
                yield use.operation
            elif isinstance(use.operation, ReshapeOp):
                pending.append(use.operation.results[0])


def _comes_before(first: Operation, second: Operation) -> bool:
    return first is not second and first.parent is second.parent and first.is_before_in_block(second)


def _same_layout(
    first: SSAValue, first_sharding: TensorSharding, second: SSAValue, second_sharding: TensorSharding, mesh: Mesh
) -> bool:
    """Return whether two reshapes of the same value have the same elements in row-major order on each device."""
    if first.type == second.type and first_sharding == second_sharding:
        return True
    if replace(first_sharding, dims=()) != replace(second_sharding, dims=()):
        return False
    if first_sharding.rank != len(shape(first.type)) or second_sharding.rank != len(shape(second.type)):
        return False
    return has_same_parts(first_sharding, shape(first.type), second_sharding, shape(second.type), mesh)


def has_same_parts(
    first: TensorSharding, first_shape: Sequence[int], second: TensorSharding, second_shape: Sequence[int], mesh: Mesh
) -> bool:
    """Return whether each device has the same elements of a tensor and of its reshape, in row-major order.

    Equal strides are not sufficient: over 8 devices, the columns of 2x4 and the elements of 8 have stride 1, but a
    shard of columns has two elements.
    """
    return _strides(first, first_shape, mesh) == _strides(second, second_shape, mesh) and (
        _shard_size(first, first_shape, mesh) == _shard_size(second, second_shape, mesh)
    )


def _shard_size(sharding: TensorSharding, shape: Sequence[int], mesh: Mesh) -> int:
    """Return the number of elements of a shard, padding included."""
    return math.prod(-(-size // dim.sharded_size(mesh)) for size, dim in zip(shape, sharding.dims, strict=True))


def _strides(sharding: TensorSharding, shape: Sequence[int], mesh: Mesh) -> list[tuple[AxisRef, int]]:
    """Return the row-major stride in elements between adjacent shards along each axis, smallest first.

    Adjacent sub-axes are merged.
    """
    axis_strides: list[tuple[AxisRef, int]] = []
    for index, dim in enumerate(sharding.dims):
        stride = math.prod(shape[index + 1 :]) * -(-shape[index] // dim.sharded_size(mesh))
        for axis in reversed(dim.axes):
            axis_strides.append((axis, stride))
            stride *= axis.size_in(mesh)
    merged: list[tuple[AxisRef, int]] = []
    for axis, stride in sorted(axis_strides, key=lambda entry: entry[1]):
        if merged:
            minor, minor_stride = merged[-1]
            if axis.can_merge(minor) and stride == minor_stride * minor.size_in(mesh):
                merged[-1] = (axis_between(axis.name, axis.start, minor.end_in(mesh), mesh), minor_stride)
                continue
        merged.append((axis, stride))
    return merged
