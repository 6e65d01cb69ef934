"""`sdy-rewrite-as-hlo`: rewrite a program to the form that it has after a round trip through XLA's HLO."""

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.dialect.attributes import SHARDING, SHARDING_RULE
from sdy.dialect.ops import ShardingConstraintOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.editing import AnalysisPreservingPass, erase, insert, replace
from sdy.ir.shapes import is_static_tensor
from sdy.ir.walking import innermost_first, operations_of
from sdy.passes.common.known_scalars import static_slice
from sdy.passes.common.loops import carry_only
from sdy.passes.importing.cancelled_reshapes import without_reshape
from sdy.sharding import TensorSharding
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.emitter import before
from sdy.stablehlo.shape import ReshapeOp, TransposeOp
from sdy.stablehlo.slicing import DynamicSliceOp
from sdy.stablehlo.types.quantized import UniformQuantizedType


class RewriteAsHloPass(AnalysisPreservingPass):
    """Rewrite broadcasts, transposes, loops and slices to the form that they have in XLA's HLO.

    XLA converts the program that JAX lowers to HLO before it runs Shardy. HLO adds and removes dimensions of size 1 by
    reshapes, its loops carry no loop-invariant values, and its slices at constants, or at integers computed from
    constants, are static. The program computes the same, but shardings propagate differently: an axis propagates
    forward through a `broadcast_in_dim` in the last stage, but through a `reshape` in the first, where it wins over
    others; and along a sliced dimension only through a static slice. Before::

        %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<8x4xf32>) -> tensor<8x4x1xf32>
        %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2] : (tensor<8x4x1xf32>) -> tensor<8x4x16xf32>

    After::

        %0 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<8x4x1xf32>
        %1 = stablehlo.reshape %0 : (tensor<8x4x1xf32>) -> tensor<8x4xf32>
        %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<8x4xf32>) -> tensor<8x4x16xf32>

    A reshape of elementwise operations on reshapes of slices cancels those, as in the gradient of a column of a sharded
    dimension, which one device would otherwise broadcast.

    Operations with a sharding or a sharding rule are kept, as are those with dynamic shapes or quantized elements.
    """

    name = "sdy-rewrite-as-hlo"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in innermost_first(operations_of(op, *_REWRITES)):
            if _may_be_rewritten(inner):
                _REWRITES[type(inner)](inner)
        for reshape in operations_of(op, ReshapeOp):
            if _may_be_rewritten(reshape) and (value := without_reshape(reshape)) is not None:
                replace(reshape, [value])


def _may_be_rewritten(op: Operation) -> bool:
    """Return whether `op` has neither a sharding nor a sharding rule."""
    return op.attributes.keys().isdisjoint((SHARDING, SHARDING_RULE))


def _broadcast(op: BroadcastInDimOp) -> None:
    """Replace by a `reshape` if no dimension is expanded; else remove expanded dimensions by a `reshape` before."""
    old, new = _sizes(op.operand), _sizes(op.result)
    dims = op.broadcast_dimensions.get_values()
    if old is None or new is None:
        return
    kept = [dim for dim, target in enumerate(dims) if old[dim] == new[target]]
    emit = before(op)
    if list(dims) == sorted(dims) and _without_ones(old) == _without_ones(new):
        replace(op, [emit.reshape(op.operand, new)])
    elif len(kept) < len(old):
        value = emit.reshape(op.operand, [old[dim] for dim in kept])
        replace(op, [emit.broadcast(value, [dims[dim] for dim in kept], new)])


def _transpose(op: TransposeOp) -> None:
    """Compose two transposes into one; use a `reshape` if only dimensions of size 1 move."""
    old, new = _sizes(op.operand), _sizes(op.result)
    if old is None or new is None:
        return
    value, order, earlier = op.operand, list(op.permutation.get_values()), op.operand.owner
    if not isinstance(earlier, TransposeOp) or earlier.parent is not op.parent or not _may_be_rewritten(earlier):
        earlier = None
    else:
        first = earlier.permutation.get_values()
        value, order = earlier.operand, [first[dim] for dim in order]
    moved = [dim for dim in order if tensor_type(value).get_shape()[dim] != 1]
    emit = before(op)
    if moved == sorted(moved):
        replace(op, [emit.reshape(value, new)])
    elif earlier is not None:
        replace(op, [emit.transpose(value, order)])
    if earlier is not None and earlier.result.first_use is None:
        erase(earlier)


def _dynamic_slice(op: DynamicSliceOp) -> None:
    """Replace by a `slice` if the start indices are known: axes propagate through it along sliced dimensions, too."""
    is_static = all(map(is_static_tensor, (op.operand.type, op.result.type)))
    if is_static and (value := static_slice(op)) is not None:
        replace(op, [value])


def _while(op: WhileOp) -> None:
    """Remove loop-invariant values from the carried values, and use the values before the loop instead."""
    body = op.body.block
    assert body.last_op is not None
    pairs = zip(body.last_op.operands, body.args, strict=True)
    kept = {index for index, (returned, argument) in enumerate(pairs) if returned is argument and _is_tensor(argument)}
    carried = [index for index in range(len(body.args)) if index not in kept]
    if not kept or not carried:
        return
    for index in sorted(kept, reverse=True):
        outside = op.operands[index]
        inside = _constrained(outside, op)
        op.results[index].replace_all_uses_with(outside)
        for region in op.regions:
            region.block.args[index].replace_all_uses_with(inside)
    carry_only(op, carried)


def _constrained(value: SSAValue, loop: WhileOp) -> SSAValue:
    """Return `value` behind an open sharding constraint before `loop`, so that its uses can be sharded differently."""
    sharding = get_sharding(value)
    if sharding is None:
        return value
    constraint = ShardingConstraintOp(value, TensorSharding.replicated_open(sharding.mesh, sharding.rank))
    constraint.location = loop.location
    insert(constraint, InsertPoint.before(loop))
    return constraint.result


def _is_tensor(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)


def _sizes(value: SSAValue) -> Sequence[int] | None:
    """Return the shape of a static tensor without quantized elements; None for others, which are not reshaped."""
    type_ = tensor_type(value)
    return (
        None
        if isinstance(type_.element_type, UniformQuantizedType) or not type_.has_static_shape()
        else type_.get_shape()
    )


def _without_ones(sizes: Sequence[int]) -> list[int]:
    return [size for size in sizes if size != 1]


_REWRITES: dict[type[Operation], Callable[[Any], None]] = {
    BroadcastInDimOp: _broadcast,
    DynamicSliceOp: _dynamic_slice,
    TransposeOp: _transpose,
    WhileOp: _while,
}
