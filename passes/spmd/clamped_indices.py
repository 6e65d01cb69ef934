"""Start indices clamped to those at which the slice lies inside of its operand."""

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
    """Clamp the indices of a slice, of which another slice is to be taken.

    XLA adds up the indices of both before it clamps them. It takes a gather with one vector of indices for a slice too.
    """
    emit = before(op)
    if isinstance(op, DynamicSliceOp):
        sizes = zip(tensor_type(op.operand).get_shape(), op.slice_sizes.get_values(), strict=True)
        for dim, (size, taken) in enumerate(sizes):
            op.operands[1 + dim] = clamped(emit, op.start_indices[dim], [size - taken], ())
    elif isinstance(op, GatherOp) and (dims := op.dimension_numbers.data.start_index_map):
        shape, vector_dim = tensor_type(op.start_indices).get_shape(), op.dimension_numbers.data.index_vector_dim
        if math.prod(shape) == len(dims):
            whole, taken = tensor_type(op.operand).get_shape(), op.slice_sizes.get_values()
            along = (vector_dim,) if vector_dim < len(shape) else ()
            op.operands[1] = clamped(emit, op.start_indices, [whole[dim] - taken[dim] for dim in dims], along)


def clamped(emit: Emitter, indices: SSAValue, last: Sequence[int], along: Sequence[int]) -> SSAValue:
    """`indices` clamped between 0 and the numbers `last`, of which there is one for each place along `along`."""
    type_ = tensor_type(indices)
    element_type = cast(IntegerType, type_.element_type)
    greatest = int(bounds(element_type)[1])
    limits = emit.integers([min(each, greatest) for each in last], [len(last)] * len(along), element_type)
    high = emit.broadcast(limits, along, type_.get_shape()) if type_.get_shape() else limits
    return emit.clamp(emit.filled(type_, 0), indices, high)
