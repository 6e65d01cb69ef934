"""The pieces of syntax that StableHLO's operations share, as custom directives of xDSL's assembly formats."""

from collections.abc import Sequence

from xdsl.dialects.builtin import ComplexType, DenseArrayBase, FunctionType, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.hints import isa

from sdy.stablehlo.attributes import i64_array
from sdy.stablehlo.struct_attribute import dims_text, parse_dims


@irdl_custom_directive
class SameOperandsAndResultType(CustomDirective):
    """`tensor<4xf32>` where operands and result all have that type, else `(operand types) -> result type`."""

    operands: TypeDirective
    result: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Set the types of all operands, which have been read before, and of the result."""
        written = parser.parse_type()
        if isinstance(written, FunctionType):
            self.operands.set(state, written.inputs.data)
            self.result.set(state, written.outputs.data)
        else:
            count = sum(len(operand) for operand in state.operands if operand is not None)
            self.operands.set(state, (written,) * count)
            self.result.set(state, (written,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the shorter of the two forms that is right."""
        state.print_whitespace(printer)
        (result,) = op.result_types
        if all(operand == result for operand in op.operand_types):
            printer.print_attribute(result)
        else:
            printer.print_function_type(op.operand_types, op.result_types)


@irdl_custom_directive
class Dims(CustomDirective):
    """`[0, 2]`, what xDSL reads and writes for an array of i64 as well, only faster."""

    dims: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read the numbers."""
        self.dims.set(state, i64_array(*parse_dims(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the numbers."""
        dims = self.dims.get(op)
        assert isinstance(dims, DenseArrayBase)
        state.print_whitespace(printer)
        printer.print_string(dims_text(dims.get_values()))


@irdl_custom_directive
class SpacedOperands(CustomDirective):
    """`%0, %1`, with the space before them that MLIR writes even where there are none."""

    operands: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read what operands there are."""
        self.operands.parse(parser, state)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the space and the operands."""
        operands: Sequence[SSAValue] = getattr(op, self.operands.name)
        state.print_whitespace(printer)
        printer.print_list(operands, printer.print_operand)


@irdl_custom_directive
class OperandsBeforeAttribute(CustomDirective):
    """`%0, %1, %2,`: operands of any number, each with its comma, because `key = value` follows."""

    operands: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read operands up to the first thing that is none."""
        operands: list[UnresolvedOperand] = []
        while (operand := parser.parse_optional_unresolved_operand()) is not None:
            operands.append(operand)
            parser.parse_punctuation(",")
        self.operands.set(state, operands)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write each operand and its comma."""
        operands: Sequence[SSAValue] = getattr(op, self.operands.name)
        state.print_whitespace(printer)
        printer.print_list(operands, printer.print_operand)
        printer.print_string(",")


@irdl_custom_directive
class ComplexOpType(CustomDirective):
    """`tensor<4xcomplex<f32>>` where the operands are its parts' types, else `(operand types) -> result type`."""

    operands: TypeDirective
    result: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Set the types of both parts and of the result."""
        start = parser.pos
        written = parser.parse_type()
        if isinstance(written, FunctionType):
            self.operands.set(state, written.inputs.data)
            self.result.set(state, written.outputs.data)
            return
        part = real_type(written)
        if part is None:
            parser.raise_error("expected tensor with complex element type", start, parser.pos)
        self.operands.set(state, (part, part))
        self.result.set(state, (written,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the shorter of the two forms that is right."""
        state.print_whitespace(printer)
        (result,) = op.result_types
        part = real_type(result)
        if all(operand == part for operand in op.operand_types):
            printer.print_attribute(result)
        else:
            printer.print_function_type(op.operand_types, op.result_types)


def real_type(type_: Attribute) -> TensorType[Attribute] | None:
    """The type of a complex tensor's real part, None for any other type."""
    if not isa(type_, TensorType[ComplexType]):
        return None
    return TensorType(type_.element_type.element_type, type_.shape, type_.encoding)


@irdl_custom_directive
class SelectOpType(CustomDirective):
    """`predicate type, result type` where both choices have the result's type, else the functional type."""

    operands: TypeDirective
    result: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Set the types of the predicate, both choices and the result."""
        start = parser.pos
        written = parser.parse_type()
        if isinstance(written, FunctionType):
            self.operands.set(state, written.inputs.data)
            self.result.set(state, written.outputs.data)
        elif parser.parse_optional_punctuation(",") is not None:
            result = parser.parse_type()
            self.operands.set(state, (written, result, result))
            self.result.set(state, (result,))
        else:
            parser.raise_error("expected functional type or list of two types", start, parser.pos)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the shorter of the two forms that is right."""
        state.print_whitespace(printer)
        pred, on_true, on_false = op.operand_types
        (result,) = op.result_types
        if on_true == on_false == result:
            printer.print_list((pred, result), printer.print_attribute)
        else:
            printer.print_function_type(op.operand_types, op.result_types)
