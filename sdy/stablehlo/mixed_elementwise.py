"""Elementwise operations whose operands and results differ in type: comparison, selection, complex numbers, ..."""

import re

from xdsl.dialects.builtin import I32, IntegerAttr, TensorType, i32
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
from sdy.stablehlo.definition import define
from sdy.stablehlo.element_types import (
    BOOLEANS,
    verify_elements,
)
from sdy.stablehlo.enums import ComparisonDirectionAttr, ComparisonTypeAttr
from sdy.stablehlo.shape_checks import (
    verify_broadcast_scalars,
    verify_same_element_type,
    verify_same_shape,
    verify_same_type,
)
from sdy.stablehlo.syntax import ComplexOpType, SameOperandsAndResultType, SelectOpType


@define
class IsFiniteOp(IRDLOperation):
    """Whether each element is neither infinite nor NaN."""

    name = "stablehlo.is_finite"
    x = operand_def(TensorType)
    y = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def verify_(self) -> None:
        """Refuse a result of another shape."""
        verify_same_shape(self)


@define
class ComplexOp(IRDLOperation):
    """Complex numbers of their real (lhs) and imaginary (rhs) parts."""

    name = "stablehlo.complex"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "operands attr-dict `:` custom<ComplexOpType>(type(operands), type($result))"
    custom_directives = (ComplexOpType,)

    def verify_(self) -> None:
        """Refuse shapes that differ."""
        verify_same_shape(self)


@define
class CompareOp(IRDLOperation):
    """Whether lhs and rhs stand in the given relation, as booleans."""

    name = "stablehlo.compare"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    comparison_direction = prop_def(ComparisonDirectionAttr)
    compare_type = opt_prop_def(ComparisonTypeAttr)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = (
        "$comparison_direction `,` $lhs `,` $rhs (`,` $compare_type^)? attr-dict `:` functional-type(operands, results)"
    )

    def verify_(self) -> None:
        """Refuse a result that is not boolean, and shapes that differ."""
        verify_elements("result #0", self.result, BOOLEANS)
        verify_same_shape(self, "all non-scalar operands/results must have the same shape and base type")


@define
class SelectOp(IRDLOperation):
    """Elements of on_true where pred holds and of on_false elsewhere; pred may be a single element."""

    name = "stablehlo.select"
    pred = operand_def(TensorType)
    on_true = operand_def(TensorType)
    on_false = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "operands attr-dict `:` custom<SelectOpType>(type(operands), type($result))"
    custom_directives = (SelectOpType,)

    def verify_(self) -> None:
        """Refuse a predicate that is not boolean, and shapes that differ."""
        verify_elements("operand #0", self.pred, BOOLEANS)
        verify_broadcast_scalars(self.on_true, (self.pred,), (self.on_false, self.result))


@define
class ClampOp(IRDLOperation):
    """The operand's elements limited to min..max; either limit may be a single element."""

    name = "stablehlo.clamp"
    min = operand_def(TensorType)
    operand = operand_def(TensorType)
    max = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = (
        "$min `,` $operand `,` $max attr-dict `:` custom<SameOperandsAndResultType>(type(operands), type($result))"
    )
    custom_directives = (SameOperandsAndResultType,)

    def verify_(self) -> None:
        """Refuse element types and shapes that differ."""
        verify_same_element_type(self)
        verify_broadcast_scalars(self.operand, (self.min, self.max), (self.result,))


@irdl_custom_directive
class ExponentMantissa(CustomDirective):
    """`e5m10`, the numbers of bits in exponent and mantissa."""

    exponent_bits: AttributeVariable
    mantissa_bits: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read both numbers out of one word."""
        start = parser.pos
        word = parser.parse_identifier()
        match = re.fullmatch(r"e(\d+)m(\d+)", word)
        if match is None:
            parser.raise_error(f"expected exponent mantissa in format e#m#, saw {word}", start, parser.pos)
        self.exponent_bits.set(state, IntegerAttr(int(match[1]), i32))
        self.mantissa_bits.set(state, IntegerAttr(int(match[2]), i32))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write them as one word."""
        assert isinstance(op, ReducePrecisionOp)
        state.print_whitespace(printer)
        printer.print_string(f"e{op.exponent_bits.value.data}m{op.mantissa_bits.value.data}")


@define
class ReducePrecisionOp(IRDLOperation):
    """The operand rounded to a floating-point format with fewer bits, and back."""

    name = "stablehlo.reduce_precision"
    operand = operand_def(TensorType)
    exponent_bits = prop_def(IntegerAttr[I32])
    mantissa_bits = prop_def(IntegerAttr[I32])
    output = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = (
        "$operand `,` `format` `=` custom<ExponentMantissa>($exponent_bits, $mantissa_bits)"
        " attr-dict `:` custom<SameOperandsAndResultType>(type(operands), type($output))"
    )
    custom_directives = (ExponentMantissa, SameOperandsAndResultType)

    def verify_(self) -> None:
        """Refuse numbers of bits that make no format, and a result of another type."""
        for name, bits, least in (("exponent_bits", self.exponent_bits, 1), ("mantissa_bits", self.mantissa_bits, 0)):
            if bits.value.data < least:
                values = f"32-bit signless integer attribute whose value is {'positive' if least else 'non-negative'}"
                raise VerifyException(f"attribute '{name}' failed to satisfy constraint: {values}")
        verify_same_type(self)
