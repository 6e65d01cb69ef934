"""Elementwise operations with operands and results of different types: comparison, selection, complex numbers, ..."""

import re
from collections.abc import Sequence

from xdsl.dialects.builtin import ComplexType, IntegerAttr, TensorType, i1, i32
from xdsl.ir import Attribute
from xdsl.irdl import (
    IRDLOperation,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sdy.dialect.interfaces import Elementwise
from sdy.ir.constraints import NON_NEGATIVE_I32, POSITIVE_I32
from sdy.parse_errors import parse_error
from sdy.stablehlo.attributes.enums import ComparisonDirectionAttr, ComparisonTypeAttr
from sdy.stablehlo.checks.agreement import (
    verify_compatible_elements,
    verify_compatible_operand_elements,
    verify_elementwise,
    verify_same_operand_elements,
)
from sdy.stablehlo.checks.inference import InferredResults, message_only, verify_inferred, with_element_type
from sdy.stablehlo.checks.quantization_checks import quantization_of
from sdy.stablehlo.checks.shape_checks import (
    compatible_shapes,
    tensor_type,
    verify_same_shape,
    verify_same_type,
)
from sdy.stablehlo.elementwise import UnaryElementwiseOp
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.syntax.directives import ComplexOpType, SameOperandsAndResultType, SelectOpType
from sdy.stablehlo.types.element_types import COMPLEX, FLOATS, PRECISE_FLOATS, QUANTIZED, QUANTIZED_BY_AXIS, ROUNDABLE
from sdy.stablehlo.types.sizes import most_specific, sizes_text
from sdy.stablehlo.types.tensor_types import PREDICATE, TENSOR, ranked


@define
class IsFiniteOp(InferredResults):
    """Test each element for being neither infinite nor NaN."""

    name = "stablehlo.is_finite"
    x = operand_def(ranked(ROUNDABLE))
    y = result_def(PREDICATE)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def verify_(self) -> None:
        """Verify that the result has booleans in the operand's shape."""
        verify_elementwise(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return booleans in the operand's shape."""
        return [with_element_type(self.x.type, i1)]


@define
class ComplexOp(InferredResults):
    """Complex numbers from their real (lhs) and imaginary (rhs) parts."""

    name = "stablehlo.complex"
    lhs = operand_def(ranked(PRECISE_FLOATS))
    rhs = operand_def(ranked(PRECISE_FLOATS))
    result = result_def(ranked(COMPLEX))
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "operands attr-dict `:` custom<ComplexOpType>(type(operands), type($result))"
    custom_directives = (ComplexOpType,)

    def verify_(self) -> None:
        """Verify that the parts have the same type, and the result type."""
        verify_same_operand_elements(self)
        verify_same_shape(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the complex type of the parts."""
        part = tensor_type(self.lhs)
        return [TensorType(ComplexType(part.element_type), part.shape, part.encoding)]  # pyright: ignore


@define
class CompareOp(InferredResults):
    """Compare lhs and rhs elementwise."""

    name = "stablehlo.compare"
    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    comparison_direction = prop_def(ComparisonDirectionAttr)
    compare_type = opt_prop_def(ComparisonTypeAttr)
    result = result_def(PREDICATE)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = (
        "$comparison_direction `,` $lhs `,` $rhs (`,` $compare_type^)? attr-dict `:` functional-type(operands, results)"
    )

    def verify_(self) -> None:
        """Verify that the operands have compatible types, and the result type."""
        verify_elementwise(self)
        verify_compatible_operand_elements(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return booleans in the operands' shape."""
        return [with_element_type(self.lhs.type, i1)]


@define
class SelectOp(InferredResults):
    """Elements of on_true where pred is true and of on_false elsewhere; pred may be a scalar."""

    name = "stablehlo.select"
    pred = operand_def(PREDICATE)
    on_true = operand_def(TENSOR)
    on_false = operand_def(TENSOR)
    result = result_def(TENSOR)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "operands attr-dict `:` custom<SelectOpType>(type(operands), type($result))"
    custom_directives = (SelectOpType,)

    def verify_(self) -> None:
        """Verify that the result has the type of on_true and on_false."""
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the most specific type of on_true and on_false."""
        pred, choice = tensor_type(self.pred), tensor_type(self.on_true)
        other = tensor_type(self.on_false)
        if choice.element_type != other.element_type or not compatible_shapes(choice.get_shape(), other.get_shape()):
            raise VerifyException("requires compatible types for non-predicate operands")
        if pred.get_num_dims() and not compatible_shapes(pred.get_shape(), choice.get_shape()):
            raise VerifyException("requires the same shape for all operands")
        return [most_specific([choice, other])]


@define
class ClampOp(InferredResults):
    """Clamp the operand's elements to [min, max]; either limit may be a scalar."""

    name = "stablehlo.clamp"
    min = operand_def(TENSOR)
    operand = operand_def(TENSOR)
    max = operand_def(TENSOR)
    result = result_def(TENSOR)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = (
        "$min `,` $operand `,` $max attr-dict `:` custom<SameOperandsAndResultType>(type(operands), type($result))"
    )
    custom_directives = (SameOperandsAndResultType,)

    def verify_(self) -> None:
        """Verify that element types are compatible and the result has the operand's type."""
        verify_compatible_elements(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the operand's type without its bounds, as MLIR does."""
        type_ = tensor_type(self.operand)
        shape = type_.get_shape()
        for name, limit in (("min", self.min), ("max", self.max)):
            sizes = tensor_type(limit).get_shape()
            if sizes and not compatible_shapes(sizes, shape):
                raise VerifyException(
                    f"{name} shape [{sizes_text(sizes)}] is not scalar and is not compatible to operand shape "
                    f"[{sizes_text(shape)}]"
                )
        return [TensorType(type_.element_type, shape)]


@irdl_custom_directive
class ExponentMantissa(CustomDirective):
    """`e5m10`, the numbers of bits in exponent and mantissa."""

    exponent_bits: AttributeVariable
    mantissa_bits: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse both widths from one keyword."""
        start = parser.pos
        word = parser.parse_identifier()
        match = re.fullmatch(r"e([0-9]+)m([0-9]+)", word)
        if match is None:
            raise parse_error(parser, f"expected exponent mantissa in format e#m#, saw {word}", start)
        for name, digits, bits in (
            ("exponent", match[1], self.exponent_bits),
            ("mantissa", match[2], self.mantissa_bits),
        ):
            if int(digits) >= 1 << 31:
                raise parse_error(parser, f"unable to parse {name} '{digits}'", start)
            bits.set(state, IntegerAttr(int(digits), i32))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print both widths as one keyword."""
        assert isinstance(op, ReducePrecisionOp)
        state.print_whitespace(printer)
        printer.print_string(f"e{op.exponent_bits.value.data}m{op.mantissa_bits.value.data}")


@define
class ReducePrecisionOp(IRDLOperation):
    """The operand rounded to a floating-point format with fewer bits, and back."""

    name = "stablehlo.reduce_precision"
    operand = operand_def(ranked(ROUNDABLE))
    exponent_bits = prop_def(POSITIVE_I32)
    mantissa_bits = prop_def(NON_NEGATIVE_I32)
    output = result_def(ranked(ROUNDABLE))
    traits = traits_def(Elementwise(), Pure())
    assembly_format = (
        "$operand `,` `format` `=` custom<ExponentMantissa>($exponent_bits, $mantissa_bits)"
        " attr-dict `:` custom<SameOperandsAndResultType>(type(operands), type($output))"
    )
    custom_directives = (ExponentMantissa, SameOperandsAndResultType)

    def verify_(self) -> None:
        """Verify that operand and result have the same type."""
        verify_elementwise(self)
        verify_same_type(self)


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
