"""Custom directives of assembly formats, for syntax that MLIR's declarative formats cannot express."""

from typing import cast

from xdsl.dialects.builtin import FunctionType, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    RegionVariable,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRTokenKind

from sdy.dialect.attributes import TensorShardingPerValueAttr
from sdy.dialect.enums import I32Attr, PropagationDirection, direction_attr, reduction_attr, reduction_of
from sdy.dialect.sharding_syntax import parse_optional_reduction, parse_sharding_list, sharding_list_text
from sdy.ir.constraints import RANKED_TENSOR, SHAPED, Described
from sdy.ir.open_syntax import take_token
from sdy.parse_errors import parse_error


@irdl_custom_directive
class Shardings(CustomDirective):
    """`[<@mesh, [{"x"}]>, <@mesh, []>]`: shardings per value, without enclosing angle brackets."""

    shardings: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the list."""
        self.shardings.set(state, TensorShardingPerValueAttr(parse_sharding_list(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the list."""
        attribute = self.shardings.get(op)
        assert isinstance(attribute, TensorShardingPerValueAttr)
        state.print_whitespace(printer)
        printer.print_string(sharding_list_text(attribute.data))

    def is_present(self, op: IRDLOperation) -> bool:
        """Return whether the shardings are present."""
        return self.shardings.get(op) is not None

    def is_anchorable(self) -> bool:
        """Return that the directive can anchor an optional group."""
        return True


@irdl_custom_directive
class SingleBlockRegionNoBlockId(CustomDirective):
    """`(%arg0: tensor<8xf32>) { ... }`: a region of one block, preceded by its arguments."""

    body: RegionVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse arguments and region."""
        arguments = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_argument, " in argument list"
        )
        self.body.set(state, parser.parse_region(arguments))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print arguments and region."""
        region = self.body.get(op)
        state.print_whitespace(printer)
        with printer.in_parens():
            printer.print_list(region.block.args, printer.print_block_argument)
        printer.print_string(" ")
        printer.print_region(region, print_entry_block_args=False)


@irdl_custom_directive
class Direction(CustomDirective):
    """`FORWARD`: a propagation direction."""

    direction: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the keyword."""
        start = parser.pos
        word = parser.parse_optional_str_literal() or parser.parse_optional_identifier()
        if word is None or word not in PropagationDirection.__members__:
            words = ", ".join(PropagationDirection.__members__)
            expected = "string or keyword containing one of the following enum values for attribute 'allowed_direction'"
            raise parse_error(parser, f"expected {expected} [{words}]", start)
        self.direction.set(state, direction_attr(PropagationDirection[word]))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the keyword."""
        attribute = self.direction.get(op)
        assert isinstance(attribute, IntegerAttr)
        state.print_whitespace(printer)
        printer.print_string(PropagationDirection(attribute.value.data).name)


_MAX_DIGITS = 24
"""Maximal length of a literal that may fit in 64 bits."""


def _parse_integer_literal(parser: Parser) -> tuple[int, int] | None:
    """Return the value of an integer literal and the offset of its digits, None where another attribute is next.

    Raises ParseError for a floating-point number.
    """
    is_negative = parser.parse_optional_punctuation("-") is not None
    start = parser.pos
    if (token := take_token(parser, MLIRTokenKind.INTEGER_LIT)) is not None:
        text = token.text
        value = int(text, 16 if text[:2] in ("0x", "0X") else 10) if len(text) <= _MAX_DIGITS else 2**64
        return -value if is_negative else value, start
    if take_token(parser, MLIRTokenKind.FLOAT_LIT) is not None:
        parser.raise_error("floating point value not valid for specified type", parser.pos)
    if is_negative:
        parser.raise_error("expected constant integer or floating point value", start)
    return None


@irdl_custom_directive
class GroupId(CustomDirective):
    """`21`, a 64-bit integer; numbers from 2^63 on wrap around to negative ones, as in MLIR."""

    group_id: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the number."""
        start = parser.pos
        if (literal := _parse_integer_literal(parser)) is None:
            attribute = parser.parse_attribute()
            if not isinstance(attribute, IntegerAttr):
                raise parse_error(parser, "invalid kind of attribute specified", start)
            self.group_id.set(state, cast(Attribute, attribute))
            return
        value, start = literal
        if not -(2**63) <= value < 2**64:
            parser.raise_error("integer constant out of range for attribute", start)
        self.group_id.set(state, IntegerAttr(value - 2**64 if value >= 2**63 else value, i64))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the number."""
        attribute = self.group_id.get(op)
        assert isinstance(attribute, IntegerAttr)
        state.print_whitespace(printer)
        printer.print_string(str(attribute.value.data))


@irdl_custom_directive
class Name(CustomDirective):
    """`"f"`: a string literal."""

    name: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the string."""
        start = parser.pos
        if (text := parser.parse_optional_str_literal()) is not None:
            self.name.set(state, StringAttr(text))
            return
        if (literal := _parse_integer_literal(parser)) is not None:
            parser.raise_error("integer literal not valid for specified type", literal[1])
        parser.parse_attribute()
        raise parse_error(parser, "invalid kind of attribute specified", start)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the string."""
        state.print_whitespace(printer)
        attribute = self.name.get(op)
        assert attribute is not None
        printer.print_attribute(attribute)


def _parse_type(parser: Parser, constraint: Described, expected: str) -> Attribute:
    """Parse a type that `constraint` accepts; the error for other types names the `expected` type, if not empty."""
    start = parser.pos
    type_ = parser.parse_type()
    if not constraint.accepts(type_):
        detail = f": expected {expected}, but found '{type_}'" if expected else ""
        raise parse_error(parser, f"invalid kind of type specified{detail}", start)
    return type_


@irdl_custom_directive
class RankedTensorType(CustomDirective):
    """`tensor<8xf32>`: a ranked tensor type."""

    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the type."""
        self.type.set(state, (_parse_type(parser, RANKED_TENSOR, "builtin.tensor"),))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the type."""
        self.type.print(printer, state, op)


@irdl_custom_directive
class ShapedType(CustomDirective):
    """`tensor<8xf32>`: a shaped type."""

    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the type."""
        self.type.set(state, (_parse_type(parser, SHAPED, ""),))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the type."""
        self.type.print(printer, state, op)


@irdl_custom_directive
class FunctionalType(CustomDirective):
    """`(tensor<8xf32>) -> tensor<8xf32>`: the types of operands and results."""

    operands: TypeDirective
    results: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the function type."""
        start = parser.pos
        type_ = parser.parse_type()
        if not isinstance(type_, FunctionType):
            detail = f"expected builtin.function, but found '{type_}'"
            raise parse_error(parser, f"invalid kind of type specified: {detail}", start)
        self.operands.set(state, type_.inputs.data)
        self.results.set(state, type_.outputs.data)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the function type."""
        state.print_whitespace(printer)
        printer.print_attribute(FunctionType.from_lists(self.operands.get(op), self.results.get(op)))


@irdl_custom_directive
class OptionalReduction(CustomDirective):
    """`max`, or nothing for a sum."""

    reduction: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the keyword, if present."""
        self.reduction.set(state, reduction_attr(parse_optional_reduction(parser) or "sum"))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the keyword, unless the reduction is a sum."""
        reduction = reduction_of(cast(I32Attr, self.reduction.get(op)))
        if reduction != "sum":
            state.print_whitespace(printer)
            printer.print_string(reduction)
