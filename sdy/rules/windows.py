"""Rules of operations with sliding windows: convolution, window reduction, and its gradient."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sdy.ir.shapes import shape_of
from sdy.rule import FactorKind
from sdy.rules.builder import NEED_REPLICATION, PERMUTATION, REDUCTION, RuleBuilder
from sdy.rules.registry import register
from sdy.stablehlo.checks.windows import padding_pairs

if TYPE_CHECKING:
    from sdy.stablehlo.convolution import ConvolutionOp
    from sdy.stablehlo.windows import ReduceWindowOp, SelectAndScatterOp


@register("stablehlo.convolution")
def convolution(op: "ConvolutionOp", rule: RuleBuilder) -> None:
    """Add the factors of the batch, spatial and feature dimensions of `lhs` (input), `rhs` (kernel) and the result.

    A batch or feature dimension with groups has a factor for the groups, which are independent, and one for the
    elements of each group.
    """
    dims = op.dimension_numbers.data
    lhs, rhs, result = shape_of(op.lhs), shape_of(op.rhs), shape_of(op.result)
    lhs_batch, result_batch = dims.input_batch_dimension, dims.output_batch_dimension
    lhs_feature, result_feature = dims.input_feature_dimension, dims.output_feature_dimension
    rhs_in, rhs_out = dims.kernel_input_feature_dimension, dims.kernel_output_feature_dimension
    batch_groups, feature_groups = op.batch_group_count.value.data, op.feature_group_count.value.data
    features = result[result_feature] // (batch_groups * feature_groups)

    if batch_groups > 1:
        rule.add(batch_groups, {0: lhs_batch, 1: rhs_out}, {0: result_feature})
    rule.add(result[result_batch], {0: lhs_batch}, {0: result_batch})
    if not rule.conservative:
        spatial = dims.input_spatial_dimensions, dims.kernel_spatial_dimensions, dims.output_spatial_dimensions
        for spatial_dims in zip(*spatial, strict=True):
            _add_spatial(rule, (lhs, rhs, result), spatial_dims)
    if feature_groups > 1:
        rule.add(feature_groups, {0: lhs_feature, 1: rhs_out}, {0: result_feature})
    rule.add(rhs[rhs_in], {0: lhs_feature, 1: rhs_in}, {}, REDUCTION)
    if features > 1:
        rule.add(features, {1: rhs_out}, {0: result_feature})


def _add_spatial(rule: RuleBuilder, shapes: Sequence[Sequence[int]], dims: Sequence[int]) -> None:
    """Add the factors of a spatial dimension, whose numbers in input, kernel and result are `dims`.

    The input can be sharded by windows, like the result, or within windows, like the kernel.
    """
    input_size, window_size, num_windows = (shape[dim] for shape, dim in zip(shapes, dims, strict=True))
    input_dim, kernel_dim, result_dim = dims
    places = {
        PERMUTATION: ({0: input_dim}, {0: result_dim}),
        REDUCTION: ({0: input_dim, 1: kernel_dim}, dict[int, int]()),
    }
    for kind, size in spatial_factors(input_size, num_windows, window_size).items():
        rule.add(size, *places[kind], kind)


def spatial_factors(input_size: int, num_windows: int, window_size: int) -> dict[FactorKind, int]:
    """Return the sizes of the two factors of a spatial input dimension: a permutation by windows, a reduction within.

    The larger factor comes first; each is as large as the dimension allows. Factors of size 1 are omitted.
    """
    max_sizes = {PERMUTATION: num_windows, REDUCTION: window_size}
    factors: dict[FactorKind, int] = {}
    for kind in sorted(max_sizes, key=max_sizes.__getitem__, reverse=True):
        if (size := min(max_sizes[kind], input_size)) > 1:
            factors[kind] = size
            input_size //= size
    return factors


@register("stablehlo.reduce_window")
def reduce_window(op: "ReduceWindowOp", rule: RuleBuilder) -> None:
    """Add pointwise factors; those along windows are permutation factors, which need a halo exchange."""
    shape = shape_of(op.results[0])
    sliding = sliding_dims(op, len(shape))
    rule.add_pointwise(shape, kinds=dict.fromkeys(sliding, PERMUTATION), blocked=sliding if rule.conservative else ())


@register("stablehlo.select_and_scatter")
def select_and_scatter(op: "SelectAndScatterOp", rule: RuleBuilder) -> None:
    """Add the factors of select-and-scatter.

    Along windows, the source requires replication, and operand and result share a permutation factor, which needs a
    halo exchange.
    """
    source = shape_of(op.source)
    sliding = sliding_dims(op, len(source))
    for dim, size in enumerate(shape_of(op.results[0])):
        if dim in sliding:
            rule.add(source[dim], {1: dim}, {}, NEED_REPLICATION, blocked=rule.conservative)
            rule.add(size, {0: dim}, {0: dim}, PERMUTATION, blocked=rule.conservative)
        else:
            rule.add(size, {0: dim, 1: dim}, {0: dim})


def sliding_dims(op: "ReduceWindowOp | SelectAndScatterOp", rank: int) -> Sequence[int]:
    """Return the dimensions along which the window size or stride is not 1, or there is padding."""
    sizes = op.window_dimensions.get_values() if op.window_dimensions else [1] * rank
    strides = op.window_strides.get_values() if op.window_strides else [1] * rank
    padding = padding_pairs(op.padding) or [(0, 0)] * rank
    return [dim for dim in range(rank) if (sizes[dim], strides[dim], padding[dim]) != (1, 1, (0, 0))]
