"""Operations that name sizes or places of whole tensors, which become those of a device's part.

Where a dimension is split that such an operation does more with than carry it along, it is computed whole.
"""

import math
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import I64, IntegerAttr, TensorType, i64
from xdsl.ir import SSAValue

from sdy.passes.spmd.elements import bounds
from sdy.passes.spmd.local.whole import compute_whole
from sdy.passes.spmd.parts import offsets
from sdy.passes.spmd.site import Lowerings, Site
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.broadcast import BroadcastOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.elementwise import SubtractOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.slicing import DynamicSliceOp, DynamicUpdateSliceOp

SHAPES = Lowerings()


@SHAPES.of(DynamicSliceOp)
def _dynamic_slice(site: Site[DynamicSliceOp]) -> None:
    """A dimension that is split is taken in full, at whatever index: an index that is too large counts as the last."""
    site.op.slice_sizes = i64_array(*tensor_type(site.op.result).get_shape())


@SHAPES.of(DynamicUpdateSliceOp)
def _dynamic_update_slice(site: Site[DynamicUpdateSliceOp]) -> None:
    """Along a split dimension of which the update is a part, each device writes what falls into its own part.

    That is done in the window of its part that is nearest to the update: it is put between margins as wide as the
    update, into which goes what falls beside it, and then back in its place.
    """
    op, operand, update = site.op, site.operands[0], site.operands[1]
    partial = [dim for dim in operand.split_dims if update.shape[dim] != operand.shape[dim]]
    if any(update.axes[dim] for dim in partial):
        compute_whole(site, "its update is split along a dimension of which it is a part")
        return
    if not partial:
        return
    emit = site.before()
    shape, sizes = (list(tensor_type(value).get_shape()) for value in (op.operand, op.update))
    zero = emit.integers([0], ())
    starts = [emit.convert(start, i64) for start in op.start_indices]  # of the window
    inside = [zero] * len(shape)  # where the update begins in the window between its margins
    margins = [update.shape[dim] if dim in partial else 0 for dim in range(len(shape))]
    for dim in partial:
        type_ = tensor_type(op.start_indices[dim])
        first = offsets(operand.axes[dim], shape[dim], operand.mesh)
        last = emit.filled(type_, min(operand.shape[dim] - update.shape[dim], bounds(type_.element_type)[1]))
        start = emit.convert(emit.clamp(emit.filled(type_, 0), op.start_indices[dim], last), i64)
        sizes[dim] = min(sizes[dim], shape[dim])
        start = emit.add(start, emit.of_device([-offset for offset in first]))
        starts[dim] = emit.clamp(zero, start, emit.integers([shape[dim] - sizes[dim]], ()))
        beside = emit.binary(SubtractOp, start, starts[dim])
        inside[dim] = emit.add(beside, emit.integers([margins[dim]], ()))
    window = emit.dynamic_slice(op.operand, starts, sizes)
    filling = emit.filled(TensorType(tensor_type(window).element_type, ()), 0)
    with_margins = emit.insert(PadOp(window, filling, margins, margins))
    updated = emit.insert(_update(with_margins, op.update, inside))
    limits = [margin + size for margin, size in zip(margins, sizes, strict=True)]
    site.replace(emit.insert(_update(op.operand, emit.slice(updated, margins, limits), starts)))


def _update(operand: SSAValue, update: SSAValue, starts: Sequence[SSAValue]) -> DynamicUpdateSliceOp:
    return DynamicUpdateSliceOp.create(operands=[operand, update, *starts], result_types=[operand.type])


@SHAPES.of(ConvolutionOp)
def _convolution(site: Site[ConvolutionOp]) -> None:
    """A device that has a part of the groups of features or of batches computes these groups."""
    op, (lhs, rhs) = site.op, site.operands
    dims = op.dimension_numbers.data
    properties = {
        **op.properties,
        "feature_group_count": _local_groups(op.feature_group_count, rhs.parts(dims.kernel_output_feature_dimension)),
        "batch_group_count": _local_groups(op.batch_group_count, lhs.parts(dims.input_batch_dimension)),
    }
    local = ConvolutionOp.create(operands=op.operands, properties=properties, result_types=op.result_types)
    site.replace(site.before().insert(local))


def _local_groups(groups: IntegerAttr[Any], parts: int) -> IntegerAttr[I64]:
    count = groups.value.data
    return IntegerAttr(count // math.gcd(count, parts), i64)


@SHAPES.of(BroadcastOp)
def _broadcast(site: Site[BroadcastOp]) -> None:
    sizes = site.op.broadcast_sizes
    site.op.broadcast_sizes = i64_array(*tensor_type(site.op.result).get_shape()[: len(sizes)])
