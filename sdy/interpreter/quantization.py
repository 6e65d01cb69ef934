"""Quantized tensors: arrays of the integers that are stored.

Operations that compute with them are those on the numbers that the integers stand for, rounded to what their results
can store. What only moves elements moves the integers; any other operation is refused.
"""

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from sdy.array_types import element_dtype
from sdy.diagnostics import op_error
from sdy.interpreter.values import Array, DType, dtype_of, element_type, of_type, widened
from sdy.ir.shapes import shape_of
from sdy.stablehlo.types.quantized import UniformQuantization, UniformQuantizedType


def quantization(value: SSAValue) -> UniformQuantization | None:
    """How the elements of a tensor are quantized, if they are."""
    type_: Attribute = element_type(value)
    return type_.data if isinstance(type_, UniformQuantizedType) else None


def _levels(op: Operation, how: UniformQuantization, rank: int) -> tuple[Array, Array]:
    """Scales and zero points in a shape that fits a tensor of this rank. Raises DiagnosticError for blocks."""
    if how.blocks is not None:
        raise op_error(op, "with elements that are quantized in blocks cannot be interpreted")
    scales, zero_points = (np.array(values) for values in zip(*how.levels, strict=True))
    sizes = [1] * rank
    if how.axis is not None:
        sizes[how.axis] = len(how.levels)
    return scales.astype(element_dtype(how.expressed)).reshape(sizes), zero_points.reshape(sizes)


def dequantized(op: Operation, value: SSAValue, array: Array) -> Array:
    """The numbers that the elements of an operand stand for."""
    how = quantization(value)
    if how is None:
        return array
    scales, zero_points = _levels(op, how, array.ndim)
    stored = widened(array).astype(np.int64)
    if how.low >= 0:
        # The stored type says nothing of a sign.
        stored &= (1 << how.bits) - 1
    return ((stored - zero_points) * scales).astype(element_dtype(how.expressed))


def quantized(op: Operation, value: SSAValue, array: Array) -> Array:
    """The stored integers nearest to numbers, if a result is quantized."""
    how = quantization(value)
    if how is None:
        return of_type(array, value)
    scales, zero_points = _levels(op, how, array.ndim)
    stored = np.rint(np.clip(widened(array) / scales + zero_points, how.low, how.high))
    return stored.astype(np.int64).astype(element_dtype(how.stored))


def on_numbers(op: Operation) -> Operation:
    """`op`, but for operands and results that are the numbers that quantized ones stand for."""
    operands = Block(arg_types=[_of_numbers(operand) for operand in op.operands]).args
    return op.create(
        operands=operands,
        result_types=[_of_numbers(result) for result in op.results],
        properties=op.properties,
        attributes=op.attributes,
        regions=[region.clone() for region in op.regions],
        location=op.location,
    )


def _of_numbers(value: SSAValue) -> Attribute:
    how = quantization(value)
    return value.type if how is None else TensorType(how.expressed, shape_of(value))


def storage_dtype(value: SSAValue) -> DType:
    """The type of the elements that are stored; that of the elements themselves where they are not quantized."""
    how = quantization(value)
    dtype = None if how is None else element_dtype(how.stored)
    return dtype_of(value) if dtype is None else dtype
