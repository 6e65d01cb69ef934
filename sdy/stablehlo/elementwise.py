"""Elementwise operations with operands and results of the same or similar types.

The base classes define the operands, results and checks of a family; an operation adds its name and its element types.
"""

from collections.abc import Sequence

from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, operand_def, opt_prop_def, result_def, traits_def
from xdsl.traits import Commutative, Pure
from xdsl.utils.exceptions import VerifyException

from sdy.dialect.interfaces import Elementwise
from sdy.stablehlo.attributes.operation_attributes import DEFAULT_ACCURACY, ResultAccuracyAttr
from sdy.stablehlo.checks.agreement import verify_elementwise
from sdy.stablehlo.checks.inference import InferredResults, message_only, verify_inferred
from sdy.stablehlo.checks.quantization_checks import verify_binary_quantization
from sdy.stablehlo.checks.shape_checks import tensor_type, verify_same_shape, verify_same_type
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.syntax.directives import SameOperandsAndResultType, real_part_type
from sdy.stablehlo.types.element_types import (
    BITS,
    CONTINUOUS,
    FLOATS,
    INEXACT,
    INTEGERS,
    NUMBERS,
    QUANTIZED,
    ROUNDABLE,
    SIGNED_NUMBERS,
    SIGNLESS,
)
from sdy.stablehlo.types.quantized import UniformQuantizedType
from sdy.stablehlo.types.sizes import most_specific
from sdy.stablehlo.types.tensor_types import TENSOR, TENSOR_BY_AXIS, UNQUANTIZED_TENSOR, ranked


class UnaryElementwiseOp(IRDLOperation):
    """Base of unary operations whose result may have another element type."""

    operand = operand_def(TENSOR)
    result = result_def(TENSOR)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$operand attr-dict `:` custom<SameOperandsAndResultType>(type(operands), type($result))"
    custom_directives = (SameOperandsAndResultType,)

    def verify_(self) -> None:
        """Verify that operand and result have the same shape."""
        verify_elementwise(self)


class SameTypeUnaryOp(UnaryElementwiseOp):
    """Base of unary operations whose result has the operand's type."""

    def verify_(self) -> None:
        """Verify that operand and result have the same type."""
        verify_same_type(self)


class TranscendentalOp(SameTypeUnaryOp):
    """Base of transcendental functions, with a result accuracy."""

    operand = operand_def(ranked(CONTINUOUS))
    result_accuracy = opt_prop_def(ResultAccuracyAttr, DEFAULT_ACCURACY)
    result = result_def(ranked(CONTINUOUS))
    irdl_options = (ParsePropInAttrDict(),)


class RoundingOp(SameTypeUnaryOp):
    """Base of roundings to integers."""

    operand = operand_def(ranked(ROUNDABLE))
    result = result_def(ranked(ROUNDABLE))


class CountingOp(SameTypeUnaryOp):
    """Base of bit counts."""

    operand = operand_def(ranked(INTEGERS))
    result = result_def(ranked(INTEGERS))


class RealResultOp(UnaryElementwiseOp, InferredResults):
    """Base of unary operations whose result is real if the operand is complex."""

    def verify_(self) -> None:
        """Verify the result's type."""
        verify_elementwise(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the operand's type, or the real type of a complex operand's parts."""
        return [real_part_type(self.operand.type) or self.operand.type]


class PartOp(RealResultOp):
    """Base of the real and the imaginary part."""

    operand = operand_def(ranked(INEXACT))
    result = result_def(ranked(FLOATS))


class BinaryElementwiseOp(InferredResults):
    """Base of binary operations, whose operands and result have the same type."""

    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    result = result_def(TENSOR)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` custom<SameOperandsAndResultType>(type(operands), type($result))"
    custom_directives = (SameOperandsAndResultType,)

    def verify_(self) -> None:
        """Verify that operands and result have the same type."""
        verify_same_type(self)
        verify_same_shape(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the most specific type of the operands."""
        return [most_specific(self.operand_types)]


class ArithmeticOp(BinaryElementwiseOp):
    """Base of arithmetic operations, which exclude booleans."""

    lhs = operand_def(ranked(NUMBERS))
    rhs = operand_def(ranked(NUMBERS))
    result = result_def(ranked(NUMBERS))


class ShiftOp(BinaryElementwiseOp):
    """Base of shifts of integers."""

    lhs = operand_def(ranked(INTEGERS))
    rhs = operand_def(ranked(INTEGERS))
    result = result_def(ranked(INTEGERS))


class CommutativeElementwiseOp(BinaryElementwiseOp):
    """Base of commutative binary operations."""

    traits = traits_def(Commutative())


class BitwiseOp(CommutativeElementwiseOp):
    """Base of logical and bitwise operations."""

    lhs = operand_def(ranked(BITS))
    rhs = operand_def(ranked(BITS))


@define
class AbsOp(RealResultOp):
    """The absolute value; of complex numbers, a real one."""

    name = "stablehlo.abs"
    operand = operand_def(ranked(SIGNED_NUMBERS))
    result = result_def(ranked(SIGNLESS + FLOATS + QUANTIZED))


@define
class ConvertOp(UnaryElementwiseOp):
    """Conversion to another element type."""

    name = "stablehlo.convert"
    operand = operand_def(UNQUANTIZED_TENSOR)
    result = result_def(UNQUANTIZED_TENSOR)

    def verify_(self) -> None:
        """Verify that operand and result have the same shape."""
        verify_same_shape(self)


@define
class ImagOp(PartOp):
    """The imaginary part."""

    name = "stablehlo.imag"


@define
class RealOp(PartOp):
    """The real part."""

    name = "stablehlo.real"


@define
class CeilOp(RoundingOp):
    """Rounding up."""

    name = "stablehlo.ceil"


@define
class ClzOp(CountingOp):
    """The number of leading zero bits."""

    name = "stablehlo.count_leading_zeros"


@define
class FloorOp(RoundingOp):
    """Rounding down."""

    name = "stablehlo.floor"


@define
class NegOp(SameTypeUnaryOp):
    """The negation."""

    name = "stablehlo.negate"
    operand = operand_def(ranked(NUMBERS))
    result = result_def(ranked(NUMBERS))


@define
class NotOp(SameTypeUnaryOp):
    """Logical or bitwise not."""

    name = "stablehlo.not"
    operand = operand_def(ranked(BITS))
    result = result_def(ranked(BITS))


@define
class PopulationCountOp(CountingOp):
    """The number of one bits."""

    name = "stablehlo.popcnt"


@define
class RoundOp(RoundingOp):
    """Rounding to the nearest integer, halves away from zero."""

    name = "stablehlo.round_nearest_afz"


@define
class RoundNearestEvenOp(RoundingOp):
    """Rounding to the nearest integer, halves to even."""

    name = "stablehlo.round_nearest_even"


@define
class SignOp(SameTypeUnaryOp):
    """-1, 0 or 1; for a complex number its direction."""

    name = "stablehlo.sign"
    operand = operand_def(ranked(SIGNED_NUMBERS))
    result = result_def(ranked(SIGNED_NUMBERS))


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
    """e to the power of the operand, minus one, accurate near zero."""

    name = "stablehlo.exponential_minus_one"


@define
class LogOp(TranscendentalOp):
    """The natural logarithm."""

    name = "stablehlo.log"


@define
class Log1pOp(TranscendentalOp):
    """The natural logarithm of one plus the operand, accurate near zero."""

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
    lhs = operand_def(ranked(CONTINUOUS))
    rhs = operand_def(ranked(CONTINUOUS))
    result = result_def(ranked(CONTINUOUS))


@define
class DivOp(ArithmeticOp):
    """The quotient."""

    name = "stablehlo.divide"


@define
class PowOp(ArithmeticOp):
    """lhs to the power of rhs."""

    name = "stablehlo.power"


@define
class RemOp(ArithmeticOp):
    """The remainder of the division, with the sign of lhs."""

    name = "stablehlo.remainder"


@define
class ShiftLeftOp(ShiftOp):
    """lhs shifted left by rhs bits."""

    name = "stablehlo.shift_left"


@define
class ShiftRightArithmeticOp(ShiftOp):
    """lhs shifted right by rhs bits, the sign bit filling."""

    name = "stablehlo.shift_right_arithmetic"


@define
class ShiftRightLogicalOp(ShiftOp):
    """lhs shifted right by rhs bits, zeros filling."""

    name = "stablehlo.shift_right_logical"


@define
class SubtractOp(ArithmeticOp):
    """The difference."""

    name = "stablehlo.subtract"


@define
class AddOp(CommutativeElementwiseOp):
    """The sum; of booleans, logical or."""

    name = "stablehlo.add"
    lhs = operand_def(TENSOR_BY_AXIS)
    rhs = operand_def(TENSOR_BY_AXIS)
    result = result_def(TENSOR_BY_AXIS)

    def verify_(self) -> None:
        """Verify that operands and result have the same type, with MLIR's messages for this operation."""
        verify_same_shape(self)
        verify_elementwise(self)
        if self.lhs.type == self.rhs.type == self.result.type:
            return
        with message_only(self):
            self._verify_elements()
        verify_inferred(self)

    def _verify_elements(self) -> None:
        lhs, rhs, result = (tensor_type(value).element_type for value in (self.lhs, self.rhs, self.result))
        if any(isinstance(element, UniformQuantizedType) for element in (lhs, rhs, result)):
            verify_binary_quantization(lhs, rhs, result)
        elif not lhs == rhs == result:
            raise VerifyException("op requires the same element type for all operands and results")


@define
class AndOp(BitwiseOp):
    """Logical or bitwise and."""

    name = "stablehlo.and"


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
class OrOp(BitwiseOp):
    """Logical or bitwise or."""

    name = "stablehlo.or"


@define
class XorOp(BitwiseOp):
    """Logical or bitwise exclusive or."""

    name = "stablehlo.xor"
