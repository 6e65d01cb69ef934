"""Custom directives shared by the assembly formats of StableHLO operations."""

from collections.abc import Sequence
from typing import Protocol

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

from sdy.parse_errors import ChainedParseError, Statement, parse_error
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.attributes.struct_attribute import dims_text, parse_dims


def _operand_count(state: ParsingState) -> int:
    return sum(len(operands) for operands in state.operands if operands is not None)


class _OperandsAndResult(Protocol):
    operands: TypeDirective
    result: TypeDirective


def _set_from_function_type(
    types: _OperandsAndResult, parser: Parser, state: ParsingState, type_: FunctionType, start: int
) -> None:
    """Set the types of the operands, which have been parsed before, and of the single result."""
    inputs, outputs = type_.inputs.data, type_.outputs.data
    if len(inputs) != (count := _operand_count(state)):
        raise parse_error(parser, f"{count} operands present, but expected {len(inputs)}", start)
    if len(outputs) != 1:
        raise parse_error(parser, "expected single output", start)
    types.operands.set(state, inputs)
    types.result.set(state, outputs)


@irdl_custom_directive
class SameOperandsAndResultType(CustomDirective):
    """`tensor<4xf32>` if operands and result all have that type, else `(operand types) -> result type`."""

    operands: TypeDirective
    result: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the type, and set those of all operands, which have been parsed before, and of the result."""
        start = parser.pos
        type_ = parser.parse_type()
        if isinstance(type_, FunctionType):
            _set_from_function_type(self, parser, state, type_, start)
        else:
            self.operands.set(state, (type_,) * _operand_count(state))
            self.result.set(state, (type_,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the short form if it is valid, otherwise the function type."""
        state.print_whitespace(printer)
        (result,) = op.result_types
        if all(operand == result for operand in op.operand_types):
            printer.print_attribute(result)
        else:
            printer.print_function_type(op.operand_types, op.result_types)


@irdl_custom_directive
class Dims(CustomDirective):
    """`[0, 2]`, a faster form of xDSL's own syntax of i64 arrays."""

    dims: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the dimensions."""
        try:
            self.dims.set(state, i64_array(*parse_dims(parser)))
        except ChainedParseError as problem:
            # MLIR also reports the missing end of the list.
            end = Statement(parser.pos, "expected ']'", is_open=False)
            raise ChainedParseError(problem.span, *problem.statements, end) from None

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the dimensions."""
        dims = self.dims.get(op)
        assert isinstance(dims, DenseArrayBase)
        state.print_whitespace(printer)
        printer.print_string(dims_text(dims.get_values()))


@irdl_custom_directive
class SpacedOperands(CustomDirective):
    """`%0, %1`, with a space before them that MLIR prints even without operands."""

    operands: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the operands."""
        self.operands.parse(parser, state)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the space and the operands."""
        operands: Sequence[SSAValue] = getattr(op, self.operands.name)
        state.print_whitespace(printer)
        printer.print_list(operands, printer.print_operand)


@irdl_custom_directive
class OperandsBeforeAttribute(CustomDirective):
    """`%0, %1, %2,`: operands, each followed by a comma, before a `key = value`.

    Without operands, MLIR prints a comma that it does not read: `dynamic_slice %scalar, , sizes = []`. It is read here.
    """

    operands: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse operands up to the next other token."""
        operands: list[UnresolvedOperand] = []
        while (operand := parser.parse_optional_unresolved_operand()) is not None:
            operands.append(operand)
            parser.parse_punctuation(",")
        if not operands:
            parser.parse_optional_punctuation(",")
        self.operands.set(state, operands)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print each operand and its comma."""
        operands: Sequence[SSAValue] = getattr(op, self.operands.name)
        state.print_whitespace(printer)
        printer.print_list(operands, printer.print_operand)
        printer.print_string(",")


@irdl_custom_directive
class ComplexOpType(CustomDirective):
    """`tensor<4xcomplex<f32>>` if the operands have the type of its parts, else `(operand types) -> result type`."""

    operands: TypeDirective
    result: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the type, and set those of both parts and of the result."""
        start = parser.pos
        type_ = parser.parse_type()
        if isinstance(type_, FunctionType):
            _set_from_function_type(self, parser, state, type_, start)
            return
        part = real_part_type(type_)
        if part is None:
            raise parse_error(parser, "expected tensor with complex element type", start)
        self.operands.set(state, (part, part))
        self.result.set(state, (type_,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the short form if it is valid, otherwise the function type."""
        state.print_whitespace(printer)
        (result,) = op.result_types
        part = real_part_type(result)
        if all(operand == part for operand in op.operand_types):
            printer.print_attribute(result)
        else:
            printer.print_function_type(op.operand_types, op.result_types)


def real_part_type(type_: Attribute) -> TensorType[Attribute] | None:
    """Return the type of a complex tensor's real part, None for any other type."""
    if not isa(type_, TensorType[ComplexType]):
        return None
    return TensorType(type_.element_type.element_type, type_.shape, type_.encoding)


@irdl_custom_directive
class SelectOpType(CustomDirective):
    """`predicate type, result type` if both choices have the result's type, else the function type."""

    operands: TypeDirective
    result: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the types, and set those of the predicate, both choices and the result."""
        start = parser.pos
        match parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type):
            case [FunctionType() as type_]:
                _set_from_function_type(self, parser, state, type_, start)
            case [predicate, result]:
                self.operands.set(state, (predicate, result, result))
                self.result.set(state, (result,))
            case _:
                raise parse_error(parser, "expected functional type or list of two types", start)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the short form if it is valid, otherwise the function type."""
        state.print_whitespace(printer)
        pred, on_true, on_false = op.operand_types
        (result,) = op.result_types
        if on_true == on_false == result:
            printer.print_list((pred, result), printer.print_attribute)
        else:
            printer.print_function_type(op.operand_types, op.result_types)
