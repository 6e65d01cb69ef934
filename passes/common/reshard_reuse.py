"""A reshard that has been made before is made once, even if reshapes and transposes stand between the two."""

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
    """Take the result of an earlier reshard to the same layout, and do the reshapes and transposes after it.

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
        """Look for an earlier reshard of what the input is made of."""
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

        found = earlier.result
        if found.type != root.type:
            found = _append(ReshapeOp.create(operands=[found], result_types=[root.type]), found, rewriter)
        for step in reversed(path):
            copy = step.clone()
            copy.operands[0] = found
            found = _append(copy, found, rewriter)
        rewriter.replace(op, (), (found,))


def _append(new: Operation, value: SSAValue, rewriter: PatternRewriter) -> SSAValue:
    assert isinstance(value.owner, Operation)
    rewriter.insert(new, InsertPoint.after(value.owner))
    return new.results[0]


def layout_before(op: Operation, sharding: TensorSharding, mesh: Mesh) -> TensorSharding | None:
    """Return the sharding of the operand of `op` with which each device has the elements of the result in `sharding`.

    None where `op` is neither a transpose nor a reshape, or where no sharding has these elements.
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
    found = strides(sharding, shape, mesh)
    dims: list[DimSharding] = []
    for index, size in enumerate(shape_before):
        first = math.prod(shape_before[index + 1 :])
        parts = (_part_between(axis, stride, first, first * size, mesh) for axis, stride in reversed(found))
        dims.append(DimSharding(tuple(part for part in parts if part is not None)))
    before = replace(sharding, dims=tuple(dims))
    return before if strides(before, shape_before, mesh) == found else None


def _part_between(axis: AxisRef, stride: int, low: int, high: int, mesh: Mesh) -> AxisRef | None:
    """The part of `axis`, whose own parts are `stride` apart, that has its parts from `low` to `high` apart."""
    end = stride * axis.size_in(mesh)
    low, high = max(low, stride), min(high, end)
    if low >= high or end % high or high % low:
        return None
    return axis_between(axis.name, axis.start * (end // high), axis.start * (end // low), mesh)


def _reshards_behind_reshapes(root: SSAValue) -> Iterator[ReshardOp]:
    """The reshards of `root`, and those of what reshapes make of it."""
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
    """Whether the two, reshapes of each other, have the same elements in row-major order on each device."""
    if first.type == second.type and first_sharding == second_sharding:
        return True
    if replace(first_sharding, dims=()) != replace(second_sharding, dims=()):
        return False
    if first_sharding.rank != len(shape(first.type)) or second_sharding.rank != len(shape(second.type)):
        return False
    return strides(first_sharding, shape(first.type), mesh) == strides(second_sharding, shape(second.type), mesh)


def strides(sharding: TensorSharding, shape: Sequence[int], mesh: Mesh) -> list[tuple[AxisRef, int]]:
    """How far apart, in row-major order, the parts along each axis begin; in elements, smallest first.

    Sub-axes that continue each other count as one axis.
    """
    found: list[tuple[AxisRef, int]] = []
    for index, dim in enumerate(sharding.dims):
        stride = math.prod(shape[index + 1 :]) * -(-shape[index] // dim.sharded_size(mesh))
        for axis in reversed(dim.axes):
            found.append((axis, stride))
            stride *= axis.size_in(mesh)
    merged: list[tuple[AxisRef, int]] = []
    for axis, stride in sorted(found, key=lambda entry: entry[1]):
        if merged:
            minor, minor_stride = merged[-1]
            if axis.can_merge(minor) and stride == minor_stride * minor.size_in(mesh):
                merged[-1] = (axis_between(axis.name, axis.start, minor.end_in(mesh), mesh), minor_stride)
                continue
        merged.append((axis, stride))
    return merged
