"""Quantized tensors, represented as arrays of the stored integers.

Arithmetic operations dequantize their operands, and quantize their results. Data-movement operations work on the stored
integers. Other operations raise an error.
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
    """Return the quantization of a tensor's elements; None if they are not quantized."""
    type_: Attribute = element_type(value)
    return type_.data if isinstance(type_, UniformQuantizedType) else None


def _levels(op: Operation, how: UniformQuantization, rank: int) -> tuple[Array, Array]:
    """Return scales and zero points, broadcastable to a tensor of this rank.

    Raises:
        DiagnosticError: The quantization is blockwise.
    """
    if how.blocks is not None:
        raise op_error(op, "with blockwise quantized elements cannot be interpreted")
    scales, zero_points = (np.array(values) for values in zip(*how.levels, strict=True))
    sizes = [1] * rank
    if how.axis is not None:
        sizes[how.axis] = len(how.levels)
    return scales.astype(element_dtype(how.expressed)).reshape(sizes), zero_points.reshape(sizes)


def dequantized(op: Operation, value: SSAValue, array: Array) -> Array:
    """Dequantize an operand, if it is quantized."""
    how = quantization(value)
    if how is None:
        return array
    scales, zero_points = _levels(op, how, array.ndim)
    stored = widened(array).astype(np.int64)
    if how.low >= 0:
        # The stored integers are unsigned.
        stored &= (1 << how.bits) - 1
    return ((stored - zero_points) * scales).astype(element_dtype(how.expressed))


def quantized(op: Operation, value: SSAValue, array: Array) -> Array:
    """Quantize a result to the nearest stored integers, if it is quantized."""
    how = quantization(value)
    if how is None:
        return of_type(array, value)
    scales, zero_points = _levels(op, how, array.ndim)
    stored = np.rint(np.clip(widened(array) / scales + zero_points, how.low, how.high))
    return stored.astype(np.int64).astype(element_dtype(how.stored))


def on_expressed_types(op: Operation) -> Operation:
    """Return a copy of `op` on the expressed types of its quantized operands and results."""
    operands = Block(arg_types=[_expressed_type(operand) for operand in op.operands]).args
    return op.create(
        operands=operands,
        result_types=[_expressed_type(result) for result in op.results],
        properties=op.properties,
        attributes=op.attributes,
        regions=[region.clone() for region in op.regions],
        location=op.location,
    )


def _expressed_type(value: SSAValue) -> Attribute:
    how = quantization(value)
    return value.type if how is None else TensorType(how.expressed, shape_of(value))


def storage_dtype(value: SSAValue) -> DType:
    """Return the storage type of a tensor's elements, which is the element type unless they are quantized."""
    how = quantization(value)
    dtype = None if how is None else element_dtype(how.stored)
    return dtype_of(value) if dtype is None else dtype
