"""The parts of operations' texts that MLIR's declarative formats have no words for."""

from typing import cast

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    RegionVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from sdy.dialect.attributes import TensorShardingPerValueAttr
from sdy.dialect.enums import I32Attr, PropagationDirection, direction_attr, reduction_attr, reduction_of
from sdy.dialect.sharding_syntax import parse_optional_reduction, parse_sharding_list, sharding_list_text


@irdl_custom_directive
class Shardings(CustomDirective):
    """`[<@mesh, [{"x"}]>, <@mesh, []>]`: shardings per value without the angle brackets around them."""

    shardings: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read the list."""
        self.shardings.set(state, TensorShardingPerValueAttr(parse_sharding_list(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the list."""
        attribute = self.shardings.get(op)
        assert isinstance(attribute, TensorShardingPerValueAttr)
        state.print_whitespace(printer)
        printer.print_string(sharding_list_text(attribute.data))

    def is_present(self, op: IRDLOperation) -> bool:
        """Whether there are shardings."""
        return self.shardings.get(op) is not None

    def is_anchorable(self) -> bool:
        """Whether an optional group can depend on them."""
        return True


@irdl_custom_directive
class SingleBlockRegionNoBlockId(CustomDirective):
    """`(%arg0: tensor<8xf32>) { ... }`: a region of one block, whose arguments come before it."""

    body: RegionVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read arguments and region."""
        arguments = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_argument, " in argument list"
        )
        self.body.set(state, parser.parse_region(arguments))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write arguments and region."""
        region = self.body.get(op)
        state.print_whitespace(printer)
        with printer.in_parens():
            printer.print_list(region.block.args, printer.print_block_argument)
        printer.print_string(" ")
        printer.print_region(region, print_entry_block_args=False)


@irdl_custom_directive
class Direction(CustomDirective):
    """`FORWARD`."""

    direction: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read the word."""
        word = parser.parse_keyword_in(PropagationDirection.__members__)
        self.direction.set(state, direction_attr(PropagationDirection[word]))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the word."""
        attribute = self.direction.get(op)
        assert isinstance(attribute, IntegerAttr)
        state.print_whitespace(printer)
        printer.print_string(PropagationDirection(attribute.value.data).name)


@irdl_custom_directive
class OptionalReduction(CustomDirective):
    """`max`, or nothing for a sum."""

    reduction: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read the word, if it is there."""
        self.reduction.set(state, reduction_attr(parse_optional_reduction(parser) or "sum"))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the word, if the reduction is not a sum."""
        reduction = reduction_of(cast(I32Attr, self.reduction.get(op)))
        if reduction != "sum":
            state.print_whitespace(printer)
            printer.print_string(reduction)
