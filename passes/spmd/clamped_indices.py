"""Clamping of start indices, so that a slice is within the bounds of its operand."""

import math
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from sdy.passes.spmd.elements import bounds
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import Emitter, before
from sdy.stablehlo.gather import GatherOp
from sdy.stablehlo.slicing import DynamicSliceOp


def clamp_start_indices(op: Operation) -> None:
    """Clamp the start indices of `op`, if it is a dynamic slice, because its result will be sliced again.

    XLA merges the two slices and adds their start indices before it clamps them, which is wrong if the inner one is out
    of bounds. XLA also treats a gather with a single index vector as a slice.
    """
    emit = before(op)
    if isinstance(op, DynamicSliceOp):
        sizes = zip(tensor_type(op.operand).get_shape(), op.slice_sizes.get_values(), strict=True)
        for dim, (size, slice_size) in enumerate(sizes):
            op.operands[1 + dim] = clamped(emit, op.start_indices[dim], [size - slice_size], ())
    elif isinstance(op, GatherOp) and (dims := op.dimension_numbers.data.start_index_map):
        shape, vector_dim = tensor_type(op.start_indices).get_shape(), op.dimension_numbers.data.index_vector_dim
        if math.prod(shape) == len(dims):
            sizes, slice_sizes = tensor_type(op.operand).get_shape(), op.slice_sizes.get_values()
            along = (vector_dim,) if vector_dim < len(shape) else ()
            op.operands[1] = clamped(emit, op.start_indices, [sizes[dim] - slice_sizes[dim] for dim in dims], along)


def clamped(emit: Emitter, indices: SSAValue, last: Sequence[int], along: Sequence[int]) -> SSAValue:
    """Clamp `indices` to between 0 and `last`.

    Args:
        emit: The emitter of the clamp.
        indices: The start indices.
        last: The upper bounds, one for each position of the index vector.
        along: The dimension of the index vector, or empty for a single index.
    """
    type_ = tensor_type(indices)
    element_type = cast(IntegerType, type_.element_type)
    greatest = int(bounds(element_type)[1])
    limits = emit.integers([min(each, greatest) for each in last], [len(last)] * len(along), element_type)
    high = emit.broadcast(limits, along, type_.get_shape()) if type_.get_shape() else limits
    return emit.clamp(emit.filled(type_, 0), indices, high)
