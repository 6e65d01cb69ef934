"""Quantization and dequantization."""

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, result_def
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.checks.agreement import verify_elementwise
from sdy.stablehlo.checks.inference import InferredResults, message_only, verify_inferred
from sdy.stablehlo.checks.quantization_checks import quantization_of
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.definition import define
from sdy.stablehlo.elementwise import UnaryElementwiseOp
from sdy.stablehlo.types.element_types import FLOATS, QUANTIZED, QUANTIZED_BY_AXIS
from sdy.stablehlo.types.tensor_types import ranked


@define
class UniformDequantizeOp(UnaryElementwiseOp, InferredResults):
    """Convert quantized to floating-point elements."""

    name = "stablehlo.uniform_dequantize"
    operand = operand_def(ranked(QUANTIZED + QUANTIZED_BY_AXIS))
    result = result_def(ranked(FLOATS))

    def verify_(self) -> None:
        """Verify that the result has the operand's expressed type."""
        verify_elementwise(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the operand's expressed type."""
        type_ = tensor_type(self.operand)
        return [TensorType(_expressed(type_.element_type), type_.shape)]


@define
class UniformQuantizeOp(UnaryElementwiseOp):
    """Convert floating-point or quantized elements to another quantization."""

    name = "stablehlo.uniform_quantize"
    operand = operand_def(ranked(FLOATS + QUANTIZED + QUANTIZED_BY_AXIS))
    result = result_def(ranked(QUANTIZED + QUANTIZED_BY_AXIS))

    def verify_(self) -> None:
        """Verify that operand and result have the same shape and expressed type."""
        verify_elementwise(self)
        expected, actual = (_expressed(tensor_type(value).element_type) for value in (self.operand, self.result))
        if expected != actual:
            with message_only(self):
                raise VerifyException(f"Expressed type of result expected to be '{expected}', but got '{actual}'")


def _expressed(element_type: Attribute) -> Attribute:
    quantization = quantization_of(element_type)
    return element_type if quantization is None else quantization.expressed
