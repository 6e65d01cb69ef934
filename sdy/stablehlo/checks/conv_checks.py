"""Verification of a convolution's dimension numbers and groups."""

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes.conv_dimensions import ConvDimensionNumbers
from sdy.stablehlo.checks.shape_checks import compatible_shapes
from sdy.stablehlo.types.sizes import sizes_text


def verify_conv_dimensions(numbers: ConvDimensionNumbers, rank: int) -> None:
    """Raise VerifyException if dimension numbers are out of range, repeated, or of different lengths per tensor."""
    tensors = {"input": numbers.input, "kernel": numbers.kernel, "output": numbers.output}
    spatial = [len(dims) - 2 for dims in tensors.values()]
    if len(set(spatial)) > 1:
        raise VerifyException(
            "expects the same size for input, kernel and output spatial-dimensions, but got "
            f"{spatial[0]}, {spatial[1]}, and {spatial[2]} resp."
        )
    if any(not 0 <= dim < rank for dims in tensors.values() for dim in dims):
        raise VerifyException(f"expects input, kernel, and output dimension-numbers to be in-range [0, {rank}).")
    for name, dims in tensors.items():
        if len(set(dims)) != len(dims):
            raise VerifyException(f"expects {name} dimension-numbers to be unique, got {{{sizes_text(dims)}}}.")


def verify_groups(
    numbers: ConvDimensionNumbers, lhs: Sequence[int], rhs: Sequence[int], batch_groups: int, feature_groups: int
) -> None:
    """Raise VerifyException if the group counts do not divide the batch and feature dimensions."""
    if batch_groups > 1 and feature_groups > 1:
        raise VerifyException(
            "expects batch_group_count and feature_group_count not to be both greater than 1. Got "
            f"{batch_groups} and {feature_groups} resp."
        )
    batch, features = lhs[numbers.input_batch_dimension], lhs[numbers.input_feature_dimension]
    kernel_features = rhs[numbers.kernel_input_feature_dimension]
    output_features = rhs[numbers.kernel_output_feature_dimension]
    group_features = features if features == DYNAMIC_INDEX else features // feature_groups
    rules = (
        (
            _divides(batch_groups, batch),
            f"expects input batch dimension ({batch}) to be divisible by batch_group_count. "
            f"Got batch_group_count = {batch_groups}.",
        ),
        (
            _divides(feature_groups, features),
            f"expects input feature dimension ({features}) to be a multiple of feature_group_count. "
            f"Got feature_group_count = {feature_groups}.",
        ),
        (
            compatible_shapes((group_features,), (kernel_features,)),
            f"expects input feature dimension ({features}) / feature_group_count = kernel input feature dimension "
            f"({kernel_features}). Got feature_group_count = {feature_groups}.",
        ),
        (
            _divides(batch_groups, output_features),
            f"expects output feature dimension size ({output_features}) to be a multiple of batch_group_count. "
            f"Got batch_group_count = {batch_groups}.",
        ),
        (
            _divides(feature_groups, output_features),
            f"expects kernel output feature dimension ({output_features}) to be divisible by feature_group_count. "
            f"For feature_group_count = {feature_groups}.",
        ),
    )
    for holds, message in rules:
        if not holds:
            raise VerifyException(message)


def _divides(groups: int, size: int) -> bool:
    return size == DYNAMIC_INDEX or size % groups == 0
