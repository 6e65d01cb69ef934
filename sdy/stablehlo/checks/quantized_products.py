"""What must hold of the element types of dot products and convolutions where any of them is quantized.

The right-hand side is always quantized. The left-hand side and the result are both quantized, and the product is
computed on integers, or neither is, and the right-hand side is dequantized first.
"""

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.checks.agreement import element_type
from sdy.stablehlo.checks.quantization_checks import quantization_of
from sdy.stablehlo.types.quantized import UniformQuantization


def quantization(value: SSAValue) -> UniformQuantization | None:
    """How a tensor's elements are quantized, None where they are not."""
    return quantization_of(element_type(value))


def verify_quantized_product(lhs: SSAValue, rhs: SSAValue, result: SSAValue) -> None:
    """Refuse quantizations that do not go together."""
    of_lhs, of_rhs, of_result = map(quantization, (lhs, rhs, result))
    if of_rhs is None or (of_lhs is None) != (of_result is None):
        raise VerifyException(
            "rhs should be quantized for quantized operations and is_quantized(lhs)=is_quantized(result) should hold"
        )
    if of_lhs is None or of_result is None:
        types = {element_type(lhs), element_type(result), of_rhs.expressed}
        if len(types) > 1:
            raise VerifyException("mismatched rhs quantization expressed type and lhs and result element type")
        return
    if of_lhs.stored != of_rhs.stored:
        raise VerifyException("mismatched lhs and rhs quantization storage types")
    if len({of_lhs.expressed, of_rhs.expressed, of_result.expressed}) > 1:
        raise VerifyException("mismatched lhs, rhs and result quantization expressed types")
    if of_rhs.axis is None and of_result.axis is not None:
        raise VerifyException("mismatched rhs and result quantization granularity")
