"""Operations on sliding windows: convolution and window reduction."""

from math import prod

from sdy.blocks.arithmetic import MULTIPLY_AND_ADD
from sdy.blocks.builder import BlockBuilder
from sdy.blocks.registry import register
from sdy.ir.shapes import shape_of
from sdy.rules.builder import PASS_THROUGH, PERMUTATION, REDUCTION
from sdy.rules.windows import sliding_dims, spatial_factors
from sdy.stablehlo import ConvolutionOp, ReduceWindowOp
from sdy.stablehlo.checks.windows import WindowDimension, dilated


@register("stablehlo.reduce_window")
def reduce_window(op: ReduceWindowOp, block: BlockBuilder) -> float:
    """Add an axis per dimension; a step combines a window of each input. Overlapping windows share elements."""
    window, sliding = op.window(), sliding_dims(op, len(op.window()))
    every_input, every_result = range(len(op.inputs)), range(len(op.results))
    for dim, (size, along) in enumerate(zip(shape_of(op.results[0]), window, strict=True)):
        block.add(
            size,
            dict.fromkeys(every_input, (dim, along.stride)),
            dict.fromkeys(every_result, dim),
            PERMUTATION if dim in sliding else PASS_THROUGH,
        )
        for operand in every_input:
            block.see_operand(
                operand, dim, dilated(along.size or 1, along.window_dilation), -along.padding[0], along.base_dilation
            )
    return prod(along.size or 1 for along in window)


@register("stablehlo.convolution")
def convolution(op: ConvolutionOp, block: BlockBuilder) -> float:
    """Add the axes of a convolution; a step multiplies an element of the input by one of the kernel.

    A spatial dimension of the input has an axis for the window and one within the window, the one with more steps
    first. A grouped feature or batch dimension has an axis for the groups and one within them.
    """
    dims = op.dimension_numbers.data
    lhs, rhs, result = shape_of(op.lhs), shape_of(op.rhs), shape_of(op.result)
    lhs_batch, lhs_feature = dims.input_batch_dimension, dims.input_feature_dimension
    rhs_in, rhs_out = dims.kernel_input_feature_dimension, dims.kernel_output_feature_dimension
    result_batch, result_feature = dims.output_batch_dimension, dims.output_feature_dimension
    batch_groups, feature_groups = op.batch_group_count.value.data, op.feature_group_count.value.data
    features = result[result_feature] // (batch_groups * feature_groups)

    if batch_groups > 1:
        batch = (lhs_batch, result[result_batch])
        block.add(batch_groups, {0: batch, 1: (rhs_out, features)}, {0: (result_feature, features)})
    block.add(result[result_batch], {0: lhs_batch}, {0: result_batch})
    reversals = op.window_reversal.get_values() if op.window_reversal else [False] * len(op.window(op.padding))
    spatial = zip(
        dims.input_spatial_dimensions,
        dims.kernel_spatial_dimensions,
        dims.output_spatial_dimensions,
        op.window(op.padding),
        reversals,
        strict=True,
    )
    for *dims_along, window, backwards in spatial:
        input_dim, kernel_dim, result_dim = dims_along
        sizes = (lhs[input_dim], rhs[kernel_dim], result[result_dim])
        _add_spatial(block, (input_dim, kernel_dim, result_dim), sizes, window, bool(backwards))
    if feature_groups > 1:
        block.add(
            feature_groups, {0: (lhs_feature, rhs[rhs_in]), 1: (rhs_out, features)}, {0: (result_feature, features)}
        )
    block.add(rhs[rhs_in], {0: lhs_feature, 1: rhs_in}, {}, REDUCTION)
    if features > 1:
        block.add(features, {1: rhs_out}, {0: result_feature})
    return MULTIPLY_AND_ADD


def _add_spatial(
    block: BlockBuilder,
    dims: tuple[int, int, int],
    sizes: tuple[int, int, int],
    window: WindowDimension,
    backwards: bool,
) -> None:
    """Add the axes of a spatial dimension, with its `dims` and `sizes` in input, kernel and result.

    Axes of a single step are omitted. A reversed kernel is read from its last element on.
    """
    (input_dim, kernel_dim, result_dim), (input_size, taps, num_windows) = dims, sizes
    factors = spatial_factors(input_size, num_windows, taps)
    places = {
        PERMUTATION: (num_windows, {0: (input_dim, window.stride)}, {0: result_dim}),
        REDUCTION: (
            taps,
            {0: (input_dim, window.window_dilation), 1: (kernel_dim, -1 if backwards else 1)},
            dict[int, int](),
        ),
    }
    for kind in [*factors, *(places.keys() - factors.keys())]:
        extent, operands, results = places[kind]
        if extent > 1:
            block.add(extent, operands, results, kind, size=factors.get(kind, 1))
    block.see_operand(0, input_dim, 1, -window.padding[0], window.base_dilation)
    block.see_operand(1, kernel_dim, 1, taps - 1 if backwards else 0)
