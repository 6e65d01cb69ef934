"""Elementwise conversion between real numbers and the quantized ones that stand for them."""

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, result_def
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.checks.agreement import verify_elementwise
from sdy.stablehlo.checks.inference import InferredResults, unnamed, verify_inferred
from sdy.stablehlo.checks.quantization_checks import quantization_of
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.definition import define
from sdy.stablehlo.elementwise import UnaryElementwiseOp
from sdy.stablehlo.types.element_types import FLOATS, QUANTIZED, QUANTIZED_BY_AXIS
from sdy.stablehlo.types.tensor_types import ranked


@define
class UniformDequantizeOp(UnaryElementwiseOp, InferredResults):
    """Floating-point values of quantized ones."""

    name = "stablehlo.uniform_dequantize"
    operand = operand_def(ranked(QUANTIZED + QUANTIZED_BY_AXIS))
    result = result_def(ranked(FLOATS))

    def verify_(self) -> None:
        """Refuse a result of another type than the operand expresses."""
        verify_elementwise(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """The floating-point type that the operand expresses."""
        type_ = tensor_type(self.operand)
        return [TensorType(_expressed(type_.element_type), type_.shape)]


@define
class UniformQuantizeOp(UnaryElementwiseOp):
    """Quantized values of floating-point or other quantized ones."""

    name = "stablehlo.uniform_quantize"
    operand = operand_def(ranked(FLOATS + QUANTIZED + QUANTIZED_BY_AXIS))
    result = result_def(ranked(QUANTIZED + QUANTIZED_BY_AXIS))

    def verify_(self) -> None:
        """Refuse a result of another shape, or one that expresses another type than the operand has."""
        verify_elementwise(self)
        expected, found = (_expressed(tensor_type(value).element_type) for value in (self.operand, self.result))
        if expected != found:
            with unnamed(self):
                raise VerifyException(f"Expressed type of result expected to be '{expected}', but got '{found}'")


def _expressed(element_type: Attribute) -> Attribute:
    quantization = quantization_of(element_type)
    return element_type if quantization is None else quantization.expressed
