"""Slices of padded tensors at places that are data: these are as they would be without the padding."""

from collections.abc import Sequence

from xdsl.dialects.builtin import i64

from sdy.passes.spmd.inside import clamped
from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.padded.padding import Place
from sdy.passes.spmd.padded.site import PaddedSite, PadOperations
from sdy.rule import FactorKind
from sdy.stablehlo.attributes.operation_attributes import I64Array, i64_array
from sdy.stablehlo.gather import GatherOp
from sdy.stablehlo.scatter import ScatterOp
from sdy.stablehlo.slicing import DynamicSliceOp, DynamicUpdateSliceOp

PADDED_INDEXING = PadOperations()


@PADDED_INDEXING.of(DynamicSliceOp)
def _dynamic_slice(site: PaddedSite[DynamicSliceOp]) -> bool:
    if not site.carries():
        return False
    site.op.slice_sizes = _padded_sizes(site.op.slice_sizes.get_values(), site.results[0])
    return True


@PADDED_INDEXING.of(DynamicUpdateSliceOp)
def _dynamic_update_slice(site: PaddedSite[DynamicUpdateSliceOp]) -> bool:
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


@PADDED_INDEXING.of(GatherOp)
def _gather(site: PaddedSite[GatherOp]) -> bool:
    """Indices are clamped to the unpadded operand first."""
    op, operand, indices = site.op, site.operands[0], site.operands[1]
    numbers = op.dimension_numbers.data
    if not site.carries(FactorKind.REDUCTION):
        return False
    sizes = list(op.slice_sizes.get_values())
    if set(site.reduced_dims(0)) & set(numbers.start_index_map):
        last = [operand.shape[dim] - sizes[dim] for dim in numbers.start_index_map]
        along = (numbers.index_vector_dim,) if numbers.index_vector_dim < len(indices.shape) else ()
        op.operands[1] = clamped(site.padding.emitter(Place.before(op), indices), op.start_indices, last, along)
    for dim in operand.uneven_dims:
        if dim not in site.reduced_dims(0) and dim not in numbers.operand_batching_dims:
            sizes[dim] = operand.padded_shape[dim]
    op.slice_sizes = i64_array(*sizes)
    return True


@PADDED_INDEXING.of(ScatterOp)
def _scatter(site: PaddedSite[ScatterOp]) -> bool:
    """Index vectors in the padding are filled with -1, so that their updates are ignored."""
    op = site.op
    place = len(op.inputs)
    dims = site.reduced_dims(place)
    if not site.carries(FactorKind.REDUCTION) or (
        dims and not op.scatter_dimension_numbers.data.scatter_dims_to_operand_dims
    ):
        return False
    if dims:
        # Unsigned indices have no number that is always outside.
        op.operands[place] = site.padding.emitter(Place.before(op), site.operands[place]).convert(
            op.scatter_indices, i64
        )
        site.fill(place, dims, -1)
    return True


def _padded_sizes(sizes: Sequence[int], layout: Layout) -> I64Array:
    uneven = layout.uneven_dims
    return i64_array(*(layout.padded_shape[dim] if dim in uneven else size for dim, size in enumerate(sizes)))
