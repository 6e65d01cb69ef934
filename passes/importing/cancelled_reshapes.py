"""Reshapes that cancel earlier ones, with elementwise operations between them."""

from collections.abc import Sequence
from typing import Any, TypeGuard, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Block, Operation, SSAValue

from sdy.dialect.attributes import SHARDING, SHARDING_RULE
from sdy.dialect.constants import constant_value
from sdy.dialect.interfaces import Elementwise
from sdy.ir.elements import dense, splat
from sdy.ir.fast_access import has_trait
from sdy.ir.shapes import is_scalar, is_static_tensor, shape_of
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.emitter import Emitter, before, with_shape
from sdy.stablehlo.shape import ReshapeOp
from sdy.stablehlo.slicing import DynamicSliceOp, SliceOp

_MOST_OPERATIONS = 32
"""The most elementwise operations between two reshapes."""


def without_reshape(op: ReshapeOp) -> SSAValue | None:
    """Insert operations that compute the result of `op` from the operands of earlier reshapes, and return it.

    Operands of the elementwise operations between the reshapes have to be reshapes of tensors of the result's shape,
    scalars, or filled with one number. Return None if one is not, if nothing is between the reshapes, or if none is of
    a slice: only a row or a column of a sharded dimension is on one device.
    """
    ordered = _elementwise_before(op)
    if not any(_is_reshaped_slice(value) for each in ordered for value in each.operands):
        return None
    emit, moved = before(op), dict[SSAValue, SSAValue]()
    for each in ordered:
        operands = [moved.get(value) or _moved_leaf(value, op, emit) for value in each.operands]
        result = with_shape(each.results[0], shape_of(op.result))
        copy = type(each).create(
            operands=operands, properties=each.properties, attributes=each.attributes, result_types=[result]
        )
        moved[each.results[0]] = emit.insert(copy)
        copy.location = each.location
    return moved[op.operand]


def _elementwise_before(op: ReshapeOp) -> Sequence[Operation]:
    """Return the elementwise operations behind earlier reshapes, in topological order; none if they do not cancel."""
    ordered: dict[Operation | Block, Operation] = {}
    pending = [op.operand]
    while pending:
        owner = pending[-1].owner
        if owner in ordered or _is_leaf(pending[-1], op):
            pending.pop()
            continue
        if not _is_movable(owner, op) or len(ordered) == _MOST_OPERATIONS:
            return ()
        missing = [value for value in owner.operands if value.owner not in ordered and not _is_leaf(value, op)]
        pending += missing
        if not missing:
            pending.pop()
            ordered[owner] = owner
    return [*ordered.values()]


def _is_movable(op: Operation | Block, reshape: ReshapeOp) -> TypeGuard[Operation]:
    """Return whether `op` is an elementwise operation on tensors of the shape of the operand of `reshape`."""
    return (
        isinstance(op, Operation)
        and op.name.startswith("stablehlo.")
        and has_trait(op, Elementwise)
        and _may_be_rewritten(op)
        and is_static_tensor(op.results[0].type)
        and shape_of(op.results[0]) == shape_of(reshape.operand)
    )


def _is_leaf(value: SSAValue, reshape: ReshapeOp) -> bool:
    """Return whether `value` is a scalar, filled with one, or a reshape of a tensor of the result's shape."""
    match value.owner:
        case ReshapeOp() as earlier if _may_be_rewritten(earlier):
            return is_static_tensor(earlier.operand.type) and shape_of(earlier.operand) == shape_of(reshape.result)
        case BroadcastInDimOp() as broadcast if _may_be_rewritten(broadcast):
            return is_scalar(broadcast.operand)
        case _:
            return is_scalar(value) or _filling(value) is not None


def _is_reshaped_slice(value: SSAValue) -> bool:
    reshape = value.owner
    return isinstance(reshape, ReshapeOp) and isinstance(reshape.operand.owner, SliceOp | DynamicSliceOp)


def _moved_leaf(value: SSAValue, reshape: ReshapeOp, emit: Emitter) -> SSAValue:
    """Return a leaf in the shape of the result."""
    filling = _filling(value)
    match value.owner:
        case ReshapeOp() as earlier:
            return earlier.operand
        case BroadcastInDimOp() as broadcast:
            return emit.broadcast(broadcast.operand, [], shape_of(reshape.result))
        case _ if filling is not None and not is_scalar(value):
            type_ = cast(Any, with_shape(value, shape_of(reshape.result)))
            return emit.constant(dense(type_, filling.data.data))
        case _:
            return value


def _filling(value: SSAValue) -> DenseIntOrFPElementsAttr | None:
    constant = constant_value(value)
    return None if constant is None else splat(constant)


def _may_be_rewritten(op: Operation) -> bool:
    return op.attributes.keys().isdisjoint((SHARDING, SHARDING_RULE))
