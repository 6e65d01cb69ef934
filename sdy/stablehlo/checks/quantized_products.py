"""Verification of quantized dot products and convolutions.

The right-hand side must be quantized. If the left-hand side and the result are quantized too, the product is computed
on integers; if neither is (hybrid quantization), the right-hand side is dequantized first.
"""

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.checks.agreement import element_type
from sdy.stablehlo.checks.quantization_checks import quantization_of
from sdy.stablehlo.types.quantized import UniformQuantization


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
