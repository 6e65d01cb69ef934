"""Sums of products: dot_general, einsum and convolution."""

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import cast

import numpy as np
from xdsl.interpreter import Interpreter, PythonValues

from sdy import stablehlo
from sdy.interpreter.reductions import at_step, pad_for, places_in, steps
from sdy.interpreter.shaping import broadcast, iota
from sdy.interpreter.tables import numeric
from sdy.interpreter.values import Array, DType, dtype_of, of_type, sum_of_products, widened
from sdy.stablehlo import ConvDimensionNumbers, DotDimensionNumbers
from sdy.stablehlo.checks.windows import padding_pairs, window_dimensions
from sdy.stablehlo.chlo.ragged_dot import RaggedDotOp
from sdy.stablehlo.convolution import ConvolutionBase

_SHORT = 16


def _summands(lhs: Array, rhs: Array, dtype: DType) -> tuple[Array, Array]:
    """Convert the operands to the accumulation type: the type of the result, or float32 for narrow floats."""
    sum_type = widened(np.empty(0, dtype)).dtype
    return widened(lhs).astype(sum_type, copy=False), widened(rhs).astype(sum_type, copy=False)


def dot(lhs: Array, rhs: Array, numbers: DotDimensionNumbers) -> Array:
    """Compute a dot product; the result has the batch dimensions, then the free ones of lhs, then those of rhs."""
    batch = len(numbers.lhs_batching_dimensions)
    lhs = _batched(lhs, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions)
    rhs = _batched(rhs, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions)
    contracted = len(numbers.lhs_contracting_dimensions)
    sizes, lhs_free, summed = _split(lhs.shape, batch, contracted)
    _, rhs_free, _ = _split(rhs.shape, batch, contracted)
    left = lhs.reshape((*sizes, math.prod(lhs_free), math.prod(summed)))
    right = rhs.reshape((*sizes, math.prod(rhs_free), math.prod(summed)))
    return _row_products(left, right).reshape((*sizes, *lhs_free, *rhs_free))


def _row_products(left: Array, right: Array) -> Array:
    """Compute the dot product of each row of `left` with each row of `right`.

    Short sums are accumulated from the first element, so that padding with zeros does not change the result: NumPy's
    order of summation and its use of fused operations depend on the sizes.
    """
    if left.shape[-1] > _SHORT:
        return np.matmul(left, np.swapaxes(right, -1, -2))
    sums = np.zeros((*left.shape[:-1], right.shape[-2]), left.dtype)
    for place in range(left.shape[-1]):
        sums = sums + left[..., :, None, place] * right[..., None, :, place]
    return sums


def _batched(array: Array, batch: Sequence[int], contracted: Sequence[int]) -> Array:
    free = (dim for dim in range(array.ndim) if dim not in batch and dim not in contracted)
    return array.transpose(*batch, *free, *contracted)


def _split(shape: tuple[int, ...], batch: int, contracted: int) -> tuple[tuple[int, ...], ...]:
    end = len(shape) - contracted
    return shape[:batch], shape[batch:end], shape[end:]


def _dot_general(interpreter: Interpreter, op: stablehlo.DotGeneralOp, args: PythonValues) -> PythonValues:
    lhs, rhs = _summands(args[0], args[1], dtype_of(op.result))
    return (of_type(dot(lhs, rhs, op.dot_dimension_numbers.data), op.result),)


def _dot(interpreter: Interpreter, op: stablehlo.DotOp, args: PythonValues) -> PythonValues:
    lhs, rhs = _summands(args[0], args[1], dtype_of(op.result))
    numbers = DotDimensionNumbers(lhs_contracting_dimensions=(lhs.ndim - 1,), rhs_contracting_dimensions=(0,))
    return (of_type(dot(lhs, rhs, numbers), op.result),)


def _einsum(
    interpreter: Interpreter, op: stablehlo.EinsumOp | stablehlo.UnaryEinsumOp, args: PythonValues
) -> PythonValues:
    dtype = dtype_of(op.result)
    operands = [widened(operand).astype(widened(np.empty(0, dtype)).dtype) for operand in args]
    return (of_type(sum_of_products(op.einsum_config.data, *operands), op.result),)


def _convolution(interpreter: Interpreter, op: stablehlo.ConvolutionOp, args: PythonValues) -> PythonValues:
    return (_convolved(op, args[0], args[1], padding_pairs(op.padding)),)


def _dynamic_conv(interpreter: Interpreter, op: stablehlo.DynamicConvOp, args: PythonValues) -> PythonValues:
    lhs, rhs, padding = args
    return (_convolved(op, lhs, rhs, [(int(low), int(high)) for low, high in padding]),)


def _convolved(op: ConvolutionBase, lhs: Array, rhs: Array, padding: Sequence[tuple[int, int]]) -> Array:
    dims: ConvDimensionNumbers = op.dimension_numbers.data
    lhs, rhs = _summands(lhs, rhs, dtype_of(op.result))
    # Input [batch, features, spatial...], kernel [input features, output features, spatial...].
    inputs, kernel = lhs.transpose(dims.input), rhs.transpose(dims.kernel)
    if op.window_reversal is not None:
        reversed_dims = tuple(dim + 2 for dim, flag in enumerate(op.window_reversal.get_values()) if flag)
        kernel = np.flip(kernel, reversed_dims)
    window = window_dimensions(kernel.shape[2:], op.window_strides, padding, op.lhs_dilation, op.rhs_dilation)
    places = places_in(inputs.shape[2:], window)
    trivial = window_dimensions((1, 1))
    padded = pad_for(inputs, np.zeros((), inputs.dtype), [*trivial, *window])
    groups, batch_groups = op.feature_group_count.value.data, op.batch_group_count.value.data
    count = max(groups, batch_groups)
    parts = np.stack(np.split(padded, count, axis=1 if groups > 1 else 0))
    kernels = np.stack(np.split(kernel, count, axis=1))
    sums: Array | None = None
    for place, step in zip(np.ndindex(*kernel.shape[2:]), steps(window), strict=True):
        elements = at_step(
            parts,
            (0, 0, 0, *step),
            (*parts.shape[:3], *places),
            [*window_dimensions((1,)), *trivial, *window],
        )
        product = sum_of_products("gnc...,gco->gno...", elements, cast(Array, kernels[(..., *place)]))
        sums = product if sums is None else sums + product
    if sums is None:
        sums = np.zeros((count, parts.shape[1], kernels.shape[2], *places), inputs.dtype)
    # Concatenate the output features of the groups.
    joined = np.concatenate(list(sums), axis=1)
    return of_type(joined.transpose(np.argsort(dims.output)), op.result)


def _ragged_dot(interpreter: Interpreter, op: RaggedDotOp, args: PythonValues) -> PythonValues:
    """Compute a dot product for each group, with the lhs elements of the group along the ragged dimension."""
    lhs, rhs = _summands(args[0], args[1], dtype_of(op.result))
    ragged = op.ragged_dot_dimension_numbers.data
    (dim,) = ragged.lhs_ragged_dimensions
    names = [field.name for field in fields(DotDimensionNumbers)]
    numbers = DotDimensionNumbers(**{name: getattr(ragged, name) for name in names})
    if dim in ragged.lhs_batching_dimensions:
        return (of_type(dot(lhs, rhs, numbers), op.result),)
    in_group = _group_masks(lhs.shape, dim, ragged.lhs_batching_dimensions, args[2])
    if dim in ragged.lhs_contracting_dimensions:
        return (of_type(np.stack([dot(np.where(mask, lhs, 0), rhs, numbers) for mask in in_group]), op.result),)
    (group_dim,) = ragged.rhs_group_dimensions

    def without_group(dims: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(place - (place > group_dim) for place in dims)

    of_one = replace(
        numbers,
        rhs_batching_dimensions=without_group(numbers.rhs_batching_dimensions),
        rhs_contracting_dimensions=without_group(numbers.rhs_contracting_dimensions),
    )
    parts = [dot(np.where(mask, lhs, 0), rhs.take(group, group_dim), of_one) for group, mask in enumerate(in_group)]
    return (of_type(sum(parts), op.result),)


def _group_masks(shape: Sequence[int], dim: int, batch: Sequence[int], sizes: Array) -> list[Array]:
    """Return a mask of the elements of each group; the groups are consecutive along `dim`."""
    ends = np.cumsum(widened(sizes).astype(np.int64), axis=-1)
    place = iota(shape, dim)
    masks: list[Array] = []
    for group in range(sizes.shape[-1]):
        end = ends[..., group]
        start = end - sizes[..., group]
        start, end = (broadcast(limit, batch[: limit.ndim], shape) for limit in (start, end))
        masks.append((place >= start) & (place < end))
    return masks


PRODUCTS = numeric(
    {
        stablehlo.ConvolutionOp: _convolution,
        stablehlo.DotGeneralOp: _dot_general,
        stablehlo.DotOp: _dot,
        stablehlo.DynamicConvOp: _dynamic_conv,
        stablehlo.EinsumOp: _einsum,
        stablehlo.UnaryEinsumOp: _einsum,
        RaggedDotOp: _ragged_dot,
    }
)
