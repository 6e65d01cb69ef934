"""Verification of quantized tensors: their scales and zero points, and operations on them, with MLIR's messages."""

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.checks.agreement import element_type
from sdy.stablehlo.types.quantized import UniformQuantization, UniformQuantizedType


def quantization_of(element_type: Attribute) -> UniformQuantization | None:
    """Return the quantization of an element type, None if it is not quantized."""
    return element_type.data if isinstance(element_type, UniformQuantizedType) else None


def verify_binary_quantization(lhs_type: Attribute, rhs_type: Attribute, result_type: Attribute) -> None:
    """Raise VerifyException if the quantizations of a binary operation's operands and result are incompatible."""
    lhs, rhs, result = map(quantization_of, (lhs_type, rhs_type, result_type))
    if lhs is None or rhs is None or result is None:
        raise VerifyException("expects  all operands and results to be either quantized or non-quantized")
    if not lhs.stored == rhs.stored == result.stored:
        raise VerifyException("mismatched operands and result quantization storage types")
    if not lhs.expressed == rhs.expressed == result.expressed:
        raise VerifyException("mismatched operands and result quantization expressed types")
    per_axis = [(name, side, type_) for name, side, type_ in (("lhs", lhs, lhs_type), ("rhs", rhs, rhs_type))]
    per_axis = [(name, side, type_) for name, side, type_ in per_axis if side.axis is not None]
    if per_axis and result.axis is None:
        raise VerifyException("result is not per_axis quantized but lhs or rhs are")
    for name, side, type_ in per_axis:
        if side.axis != result.axis:
            raise VerifyException(
                f"quantization_dimension of {name} and result are not same '{type_}' vs '{result_type}'"
            )
    if not per_axis and result.axis is not None:
        raise VerifyException("result per_axis quantized but none from rhs and lhs are per_axis quantized")


def verify_same_per_tensor_quantization(operand: TensorType[Attribute], result: TensorType[Attribute]) -> None:
    """Raise VerifyException if per-tensor quantized operand and result differ in scale or zero point."""
    operand_q, result_q = quantization_of(operand.element_type), quantization_of(result.element_type)
    if operand_q is None or result_q is None or operand_q.axis is not None or result_q.axis is not None:
        return
    if operand_q != result_q:
        raise VerifyException(f"expect same quantization scale and zero_point but got '{operand}' vs '{result}'")


def verify_same_quantization(operand: TensorType[Attribute], result: TensorType[Attribute]) -> None:
    """Raise VerifyException if operand and result, both per-tensor or per-axis, differ in scales or zero points."""
    verify_same_per_tensor_quantization(operand, result)
    operand_q, result_q = quantization_of(operand.element_type), quantization_of(result.element_type)
    if operand_q is None or result_q is None or operand_q.axis is None or result_q.axis is None:
        return
    if any(level != other_level for level, other_level in zip(operand_q.levels, result_q.levels, strict=False)):
        raise VerifyException(f"expect same quantization scales and zero_points but got '{operand}' vs '{result}'")


def verify_reshaped_quantization(operand: TensorType[Attribute], result: TensorType[Attribute]) -> None:
    """Raise VerifyException if a reshape does not map the operand's quantized dimension to the result's."""
    verify_same_quantization(operand, result)
    operand_q, result_q = quantization_of(operand.element_type), quantization_of(result.element_type)
    if operand_q is None or result_q is None or operand_q.axis is None or result_q.axis is None:
        return
    shape, result_shape = operand.get_shape(), result.get_shape()
    sizes = shape[operand_q.axis], result_shape[result_q.axis]
    if DYNAMIC_INDEX not in sizes and sizes[0] != sizes[1]:
        raise VerifyException(
            f"expect same quantization dimension size for operand and result '{operand}' and '{result}'"
        )
    if DYNAMIC_INDEX in (*shape, *result_shape):
        return
    before = math.prod(shape[: operand_q.axis]), math.prod(result_shape[: result_q.axis])
    if before[0] != before[1]:
        raise VerifyException(
            "product of dimensions before quantization dimension must match between operand and result for "
            f"{before[0]} and {before[1]}"
        )


def verify_broadcast_quantization(
    operand: TensorType[Attribute], result: TensorType[Attribute], dims: Sequence[int]
) -> None:
    """Raise VerifyException if a broadcast changes the quantized dimension, or the scales of an expanded one."""
    operand_q, result_q = quantization_of(operand.element_type), quantization_of(result.element_type)
    if operand_q is None or result_q is None or operand_q.axis is None or result_q.axis is None:
        return
    if result_q.axis != dims[operand_q.axis]:
        raise VerifyException(
            f"result quantization_dimension {result_q.axis} not same as broadcast_dimensions[{operand_q.axis}] = "
            f"{dims[operand_q.axis]}"
        )
    if operand.get_shape()[operand_q.axis] != 1:
        return
    scale, zero_point = operand_q.levels[0]
    for number, (result_scale, result_zero_point) in enumerate(result_q.levels):
        if result_scale != scale:
            raise VerifyException(f"mismatch result scale {number} ({result_scale:e}) and operand scale 0 ({scale:e})")
        if result_zero_point != zero_point:
            raise VerifyException(
                f"mismatch result zero_point {number} ({result_zero_point}) and operand zero_point 0 ({zero_point})"
            )


def verify_transposed_quantization(
    operand: TensorType[Attribute], result: TensorType[Attribute], permutation: Sequence[int]
) -> None:
    """Raise VerifyException if a transpose does not map the operand's quantized dimension to the result's."""
    verify_same_quantization(operand, result)
    operand_q, result_q = quantization_of(operand.element_type), quantization_of(result.element_type)
    if operand_q is None or result_q is None or operand_q.axis is None or result_q.axis is None:
        return
    if result_q.axis < len(permutation) and operand_q.axis != permutation[result_q.axis]:
        raise VerifyException(
            f"operand quantization_dimension {operand_q.axis} is not same as permutation[{result_q.axis}] = "
            f"{permutation[result_q.axis]}"
        )


def quantization(value: SSAValue) -> UniformQuantization | None:
    """Return the quantization of a tensor's elements, None if they are not quantized."""
    return quantization_of(element_type(value))


def verify_quantized_product(lhs: SSAValue, rhs: SSAValue, result: SSAValue) -> None:
    """Raise VerifyException if the quantizations of operands and result are incompatible."""
    lhs_quantization, rhs_quantization, result_quantization = map(quantization, (lhs, rhs, result))
    if rhs_quantization is None or (lhs_quantization is None) != (result_quantization is None):
        raise VerifyException(
            "rhs should be quantized for quantized operations and is_quantized(lhs)=is_quantized(result) should hold"
        )
    if lhs_quantization is None or result_quantization is None:
        types = {element_type(lhs), element_type(result), rhs_quantization.expressed}
        if len(types) > 1:
            raise VerifyException("mismatched rhs quantization expressed type and lhs and result element type")
        return
    if lhs_quantization.stored != rhs_quantization.stored:
        raise VerifyException("mismatched lhs and rhs quantization storage types")
    if len({lhs_quantization.expressed, rhs_quantization.expressed, result_quantization.expressed}) > 1:
        raise VerifyException("mismatched lhs, rhs and result quantization expressed types")
    if rhs_quantization.axis is None and result_quantization.axis is not None:
        raise VerifyException("mismatched rhs and result quantization granularity")
