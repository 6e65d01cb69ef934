"""Elementwise operations: each element of the result is computed from the elements at the same place.

The bases say what the operations of a family share; an operation adds its name, and sometimes operands of its own.
"""

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Commutative, Pure
from xdsl.utils.exceptions import VerifyException

from sdy.dialect.interfaces import Elementwise
from sdy.stablehlo.agreement import verify_elementwise
from sdy.stablehlo.attributes import DEFAULT_ACCURACY, ResultAccuracyAttr
from sdy.stablehlo.definition import define
from sdy.stablehlo.element_types import (
    BITS,
    COMPLEX,
    CONTINUOUS,
    FLOATS,
    INTEGERS,
    NUMBERS,
    ROUNDABLE,
    SIGNED_NUMBERS,
    Elements,
    verify_elements,
)
from sdy.stablehlo.inference import InferredResults, unnamed, verify_inferred
from sdy.stablehlo.quantization_checks import verify_binary_quantization
from sdy.stablehlo.quantized import UniformQuantizedType
from sdy.stablehlo.shape_checks import tensor_type, verify_same_shape, verify_same_type
from sdy.stablehlo.specific_types import most_specific
from sdy.stablehlo.syntax import SameOperandsAndResultType, real_type


class UnaryElementwiseOp(IRDLOperation):
    """One operand; the result may have another element type."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = ()
    """The kinds of elements that the operand may have; any if empty."""

    operand = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$operand attr-dict `:` custom<SameOperandsAndResultType>(type(operands), type($result))"
    custom_directives = (SameOperandsAndResultType,)

    def verify_(self) -> None:
        """Refuse elements of another kind, and a result of another shape."""
        if self.ELEMENTS:
            verify_elements("operand #0", self.operand, self.ELEMENTS)
        self.verify_result()

    def verify_result(self) -> None:
        """Refuse a result of another shape."""
        verify_elementwise(self)


class SameTypeUnaryOp(UnaryElementwiseOp):
    """One operand; the result has its type."""

    def verify_result(self) -> None:
        """Refuse a result of another type."""
        verify_same_type(self)


class TranscendentalOp(SameTypeUnaryOp):
    """One operand, the result of its type, and how exact it must be."""

    ELEMENTS: ClassVar = CONTINUOUS

    result_accuracy = opt_prop_def(ResultAccuracyAttr, DEFAULT_ACCURACY)
    irdl_options = (ParsePropInAttrDict(),)


class RealPartOp(UnaryElementwiseOp, InferredResults):
    """One operand and a result of its type, real where the operand is complex."""

    def verify_result(self) -> None:
        """Refuse a result of another type."""
        verify_elementwise(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """The type of the operand, of its parts' elements if it is complex."""
        return [real_type(self.operand.type) or self.operand.type]


class BinaryElementwiseOp(InferredResults):
    """Two operands and a result of one type."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = ()
    """The kinds of elements that the operands may have; any if empty."""

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` custom<SameOperandsAndResultType>(type(operands), type($result))"
    custom_directives = (SameOperandsAndResultType,)

    def verify_(self) -> None:
        """Refuse elements of another kind, and types that differ."""
        if self.ELEMENTS:
            verify_elements("operand #0", self.lhs, self.ELEMENTS)
        verify_same_type(self)
        verify_elementwise(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """What both operands say about the type."""
        return [most_specific(self.operand_types)]


class CommutativeElementwiseOp(BinaryElementwiseOp):
    """Two operands whose order does not matter, and a result of their type."""

    traits = traits_def(Commutative())


@define
class AbsOp(RealPartOp):
    """The absolute value; of complex numbers, a real one."""

    name = "stablehlo.abs"
    ELEMENTS: ClassVar = SIGNED_NUMBERS


@define
class ConvertOp(UnaryElementwiseOp):
    """The same values as another element type."""

    name = "stablehlo.convert"

    def verify_result(self) -> None:
        """Refuse a result of another shape."""
        verify_same_shape(self)


@define
class ImagOp(RealPartOp):
    """The imaginary part."""

    name = "stablehlo.imag"
    ELEMENTS: ClassVar = FLOATS + COMPLEX


@define
class RealOp(RealPartOp):
    """The real part."""

    name = "stablehlo.real"
    ELEMENTS: ClassVar = FLOATS + COMPLEX


@define
class CeilOp(SameTypeUnaryOp):
    """Rounding up."""

    name = "stablehlo.ceil"
    ELEMENTS: ClassVar = ROUNDABLE


@define
class ClzOp(SameTypeUnaryOp):
    """The number of leading zero bits."""

    name = "stablehlo.count_leading_zeros"
    ELEMENTS: ClassVar = INTEGERS


@define
class FloorOp(SameTypeUnaryOp):
    """Rounding down."""

    name = "stablehlo.floor"
    ELEMENTS: ClassVar = ROUNDABLE


@define
class NegOp(SameTypeUnaryOp):
    """The negation."""

    name = "stablehlo.negate"
    ELEMENTS: ClassVar = NUMBERS


@define
class NotOp(SameTypeUnaryOp):
    """Logical or bitwise not."""

    name = "stablehlo.not"
    ELEMENTS: ClassVar = BITS


@define
class PopulationCountOp(SameTypeUnaryOp):
    """The number of one bits."""

    name = "stablehlo.popcnt"
    ELEMENTS: ClassVar = INTEGERS


@define
class RoundOp(SameTypeUnaryOp):
    """Rounding to the nearest integer, halves away from zero."""

    name = "stablehlo.round_nearest_afz"
    ELEMENTS: ClassVar = ROUNDABLE


@define
class RoundNearestEvenOp(SameTypeUnaryOp):
    """Rounding to the nearest integer, halves to even."""

    name = "stablehlo.round_nearest_even"
    ELEMENTS: ClassVar = ROUNDABLE


@define
class SignOp(SameTypeUnaryOp):
    """-1, 0 or 1; for a complex number its direction."""

    name = "stablehlo.sign"
    ELEMENTS: ClassVar = SIGNED_NUMBERS


@define
class CbrtOp(TranscendentalOp):
    """The cube root."""

    name = "stablehlo.cbrt"


@define
class CosineOp(TranscendentalOp):
    """The cosine."""

    name = "stablehlo.cosine"


@define
class ExpOp(TranscendentalOp):
    """e to the power of the operand."""

    name = "stablehlo.exponential"


@define
class Expm1Op(TranscendentalOp):
    """e to the power of the operand, minus one, exact near zero."""

    name = "stablehlo.exponential_minus_one"


@define
class LogOp(TranscendentalOp):
    """The natural logarithm."""

    name = "stablehlo.log"


@define
class Log1pOp(TranscendentalOp):
    """The natural logarithm of one plus the operand, exact near zero."""

    name = "stablehlo.log_plus_one"


@define
class LogisticOp(TranscendentalOp):
    """The logistic function 1 / (1 + exp(-x))."""

    name = "stablehlo.logistic"


@define
class RsqrtOp(TranscendentalOp):
    """One over the square root."""

    name = "stablehlo.rsqrt"


@define
class SineOp(TranscendentalOp):
    """The sine."""

    name = "stablehlo.sine"


@define
class SqrtOp(TranscendentalOp):
    """The square root."""

    name = "stablehlo.sqrt"


@define
class TanOp(TranscendentalOp):
    """The tangent."""

    name = "stablehlo.tan"


@define
class TanhOp(TranscendentalOp):
    """The hyperbolic tangent."""

    name = "stablehlo.tanh"


@define
class Atan2Op(BinaryElementwiseOp):
    """The angle of the point (rhs, lhs)."""

    name = "stablehlo.atan2"
    ELEMENTS: ClassVar = CONTINUOUS


@define
class DivOp(BinaryElementwiseOp):
    """The quotient."""

    name = "stablehlo.divide"
    ELEMENTS: ClassVar = NUMBERS


@define
class PowOp(BinaryElementwiseOp):
    """lhs to the power of rhs."""

    name = "stablehlo.power"
    ELEMENTS: ClassVar = NUMBERS


@define
class RemOp(BinaryElementwiseOp):
    """The remainder of the division, with the sign of lhs."""

    name = "stablehlo.remainder"
    ELEMENTS: ClassVar = NUMBERS


@define
class ShiftLeftOp(BinaryElementwiseOp):
    """lhs shifted left by rhs bits."""

    name = "stablehlo.shift_left"
    ELEMENTS: ClassVar = INTEGERS


@define
class ShiftRightArithmeticOp(BinaryElementwiseOp):
    """lhs shifted right by rhs bits, the sign bit filling."""

    name = "stablehlo.shift_right_arithmetic"
    ELEMENTS: ClassVar = INTEGERS


@define
class ShiftRightLogicalOp(BinaryElementwiseOp):
    """lhs shifted right by rhs bits, zeros filling."""

    name = "stablehlo.shift_right_logical"
    ELEMENTS: ClassVar = INTEGERS


@define
class SubtractOp(BinaryElementwiseOp):
    """The difference."""

    name = "stablehlo.subtract"
    ELEMENTS: ClassVar = NUMBERS


@define
class AddOp(CommutativeElementwiseOp):
    """The sum; of booleans, logical or."""

    name = "stablehlo.add"

    def verify_(self) -> None:
        """Refuse types that differ; MLIR says so in other words than of other operations."""
        verify_same_shape(self)
        verify_elementwise(self)
        if self.lhs.type == self.rhs.type == self.result.type:
            return
        with unnamed(self):
            self._verify_elements()
        verify_inferred(self)

    def _verify_elements(self) -> None:
        lhs, rhs, result = (tensor_type(value).element_type for value in (self.lhs, self.rhs, self.result))
        if any(isinstance(element, UniformQuantizedType) for element in (lhs, rhs, result)):
            verify_binary_quantization(lhs, rhs, result)
        elif not lhs == rhs == result:
            raise VerifyException("op requires the same element type for all operands and results")


@define
class AndOp(CommutativeElementwiseOp):
    """Logical or bitwise and."""

    name = "stablehlo.and"
    ELEMENTS: ClassVar = BITS


@define
class MaxOp(CommutativeElementwiseOp):
    """The larger element; of booleans, logical or."""

    name = "stablehlo.maximum"


@define
class MinOp(CommutativeElementwiseOp):
    """The smaller element; of booleans, logical and."""

    name = "stablehlo.minimum"


@define
class MulOp(CommutativeElementwiseOp):
    """The product; of booleans, logical and."""

    name = "stablehlo.multiply"


@define
class OrOp(CommutativeElementwiseOp):
    """Logical or bitwise or."""

    name = "stablehlo.or"
    ELEMENTS: ClassVar = BITS


@define
class XorOp(CommutativeElementwiseOp):
    """Logical or bitwise exclusive or."""

    name = "stablehlo.xor"
    ELEMENTS: ClassVar = BITS
