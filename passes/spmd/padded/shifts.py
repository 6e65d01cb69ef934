"""Slices, pads and convolutions of padded tensors, whose results are of the padded size that they are to have."""

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.rewriter import Rewriter

from sdy.diagnostics import warn
from sdy.passes.spmd.padded.padding import Place
from sdy.passes.spmd.padded.site import PaddedSite, PadOperations
from sdy.rule import FactorKind
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.emitter import with_shape
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.slicing import SliceOp

PADDED_SHIFTS = PadOperations()


@PADDED_SHIFTS.of(SliceOp)
def _slice(site: PaddedSite[SliceOp]) -> bool:
    """The padding of the result is what follows in the operand, if there is enough."""
    op, operand, result = site.op, site.operands[0], site.results[0]
    limits = list(op.limit_indices.get_values())
    for dim in result.uneven_dims:
        start, stride = op.start_indices.get_values()[dim], op.strides.get_values()[dim]
        limits[dim] = start + (result.padded_shape[dim] - 1) * stride + 1
        if limits[dim] > operand.padded_shape[dim]:
            return False
    op.limit_indices = i64_array(*limits)
    return True


@PADDED_SHIFTS.of(PadOp)
def _pad(site: PaddedSite[PadOp]) -> bool:
    """The padding of the operand is in the place of what is put at the end, and so filled with that.

    Shardy fills it where less is then put at the end than before, which is not always needed and not always enough.
    """
    op, operand, result = site.op, site.operands[0], site.results[0]
    low, high, interior = (
        list(each.get_values()) for each in (op.edge_padding_low, op.edge_padding_high, op.interior_padding)
    )
    padded, padded_result = operand.padded_shape, result.padded_shape
    for dim in {*operand.uneven_dims, *result.uneven_dims}:
        step = interior[dim] + 1
        before, high[dim] = high[dim], padded_result[dim] - low[dim] - ((padded[dim] - 1) * step + 1)
        shows = dim in operand.uneven_dims and low[dim] + operand.shape[dim] * step < result.shape[dim]
        if shows if site.site.target.preserve_semantics else high[dim] < before:
            site.fill(0, [dim], op.padding_value)
        elif shows:
            warn(
                op,
                f"'{op.name}' op shows what its operand is padded with along dimension {dim}, in the place of its own "
                "padding: ask for preserve-semantics to have it masked",
            )
    op.edge_padding_high = i64_array(*high)
    return True


@PADDED_SHIFTS.of(ConvolutionOp)
def _convolution(site: PaddedSite[ConvolutionOp]) -> bool:
    """Along a spatial dimension the padding holds zeros, as what is beyond the border does, and makes more windows.

    A padded dimension of groups, each of which has one element of it, has more groups.
    """
    op, lhs, result = site.op, site.operands[0], site.results[0]
    dims = op.dimension_numbers.data
    moved = {0: dims.input_spatial_dimensions, 2: dims.output_spatial_dimensions}
    if set(site.operands[1].uneven_dims) & set(dims.kernel_spatial_dimensions):
        return False
    if not site.carries(FactorKind.REDUCTION, moved=moved):
        return False
    made, wanted = list(op.output_shape(op.window(op.padding))), result.padded_shape
    has_more_batch_groups = dims.input_batch_dimension in lhs.uneven_dims and op.batch_group_count.value.data > 1
    if has_more_batch_groups:
        made[dims.output_batch_dimension] = 1
    if any(axes and made[dim] != wanted[dim] for dim, axes in enumerate(result.axes)):
        return False
    if has_more_batch_groups:
        op.batch_group_count = IntegerAttr(lhs.padded_shape[dims.input_batch_dimension], i64)
    if dims.input_feature_dimension in lhs.uneven_dims and op.feature_group_count.value.data > 1:
        op.feature_group_count = IntegerAttr(lhs.padded_shape[dims.input_feature_dimension], i64)
    for operand in (0, 1):
        site.fill(operand, [*site.reduced_dims(operand), *moved.get(operand, ())], 0)
    if tuple(made) != wanted:
        users = list(op.result.uses)
        whole = Rewriter.replace_value_with_new_type(op.result, with_shape(op.result, made))
        cut = site.padding.resize(Place.after(op), whole, result, wanted)
        for use in users:
            use.operation.operands[use.index] = cut
    return True
