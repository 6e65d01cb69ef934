"""Slices at places that are data: of a split dimension all is taken, or each device writes into its own part."""

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import SSAValue

from sdy.passes.spmd.clamped_indices import clamped
from sdy.passes.spmd.elements import bounds
from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.padded_site import PaddedSite
from sdy.passes.spmd.parts import offsets
from sdy.passes.spmd.replicate import replicate
from sdy.passes.spmd.site import Site
from sdy.stablehlo.attributes.operation_attributes import I64Array, i64_array
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.elementwise import SubtractOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.slicing import DynamicSliceOp, DynamicUpdateSliceOp


def _pad_slice(site: PaddedSite[DynamicSliceOp]) -> bool:
    if not site.carries():
        return False
    site.op.slice_sizes = _padded_sizes(site.op.slice_sizes.get_values(), site.results[0])
    return True


def _padded_sizes(sizes: Sequence[int], layout: Layout) -> I64Array:
    uneven = layout.uneven_dims
    return i64_array(*(layout.padded_shape[dim] if dim in uneven else size for dim, size in enumerate(sizes)))


def _lower_slice(site: Site[DynamicSliceOp]) -> None:
    """A dimension that is split is taken in full, at whatever index: an index that is too large counts as the last."""
    site.op.slice_sizes = i64_array(*tensor_type(site.op.result).get_shape())


def _pad_update(site: PaddedSite[DynamicUpdateSliceOp]) -> bool:
    """Where the update is a part of an uneven dimension, it begins no later than it would without padding."""
    op, operand, update = site.op, site.operands[0], site.operands[1]
    if not site.carries():
        return False
    for dim in operand.uneven_dims:
        if update.shape[dim] == operand.shape[dim]:
            continue
        start = op.start_indices[dim]
        op.operands[2 + dim] = clamped(site.site.before(), start, [operand.shape[dim] - update.shape[dim]], ())
    return True


def _lower_update(site: Site[DynamicUpdateSliceOp]) -> None:
    """Along a split dimension of which the update is a part, each device writes what falls into its own part.

    That is done in the window of its part that is nearest to the update: it is put between margins as wide as the
    update, into which goes what falls beside it, and then back in its place.
    """
    op, operand, update = site.op, site.operands[0], site.operands[1]
    partial = [dim for dim in operand.split_dims if update.shape[dim] != operand.shape[dim]]
    if any(update.axes[dim] for dim in partial):
        replicate(site, "its update is split along a dimension of which it is a part")
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


PARTITIONING: PartitioningTable = {
    DynamicSliceOp: OperationPartitioning(pad=_pad_slice, lower=_lower_slice),
    DynamicUpdateSliceOp: OperationPartitioning(pad=_pad_update, lower=_lower_update),
}
