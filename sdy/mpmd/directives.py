"""Custom directives of the MPMD operations' assembly formats."""

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.hints import isa

from sdy.axes import quoted
from sdy.dialect.attributes import TensorShardingPerValueAttr
from sdy.dialect.axis_syntax import parse_axis_name as parse_string
from sdy.dialect.axis_syntax import parse_int, parse_keyword
from sdy.dialect.sharding_syntax import parse_sharding_list, sharding_list_text
from sdy.mpmd.attribute_syntax import parse_origin_list, parse_short_origin, short_origin_text
from sdy.mpmd.attributes import ReductionAttr, UserOriginAttr


@irdl_custom_directive
class ShortOrigin(CustomDirective):
    """`"f"(1)`: a user origin without angle brackets."""

    origin: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the origin."""
        self.origin.set(state, UserOriginAttr(parse_short_origin(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the origin."""
        attribute = self.origin.get(op)
        assert isinstance(attribute, UserOriginAttr)
        state.print_whitespace(printer)
        printer.print_string(short_origin_text(attribute.data))


@irdl_custom_directive
class MeshAndOrigin(CustomDirective):
    """`mesh="m1", origin=["f"(1), "g"]`: the mesh of a fragment and the computations that it stems from."""

    mesh: AttributeVariable
    origin: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse both."""
        parse_keyword(parser, "mesh")
        parser.parse_punctuation("=")
        self.mesh.set(state, StringAttr(parse_string(parser)))
        parser.parse_punctuation(",")
        parse_keyword(parser, "origin")
        parser.parse_punctuation("=")
        self.origin.set(state, ArrayAttr(map(UserOriginAttr, parse_origin_list(parser))))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print both."""
        mesh, origins = self.mesh.get(op), self.origin.get(op)
        assert isinstance(mesh, StringAttr)
        assert isa(origins, ArrayAttr[UserOriginAttr])
        texts = [short_origin_text(origin.data) for origin in origins]
        state.print_whitespace(printer)
        printer.print_string(f"mesh={quoted(mesh.data)}, origin=[{', '.join(texts)}]")


@irdl_custom_directive
class StageAndShardings(CustomDirective):
    """`, stage=1, in_shardings=[...], out_shardings=[...]`: the optional parameters of a fragment, in this order."""

    stage: AttributeVariable
    in_shardings: AttributeVariable
    out_shardings: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the parameters that are there."""
        has_comma = parser.parse_optional_punctuation(",") is not None
        if has_comma and parser.parse_optional_keyword("stage") is not None:
            parser.parse_punctuation("=")
            self.stage.set(state, IntegerAttr(parse_int(parser), i64))
            has_comma = parser.parse_optional_punctuation(",") is not None
        for name, variable in (("in_shardings", self.in_shardings), ("out_shardings", self.out_shardings)):
            if has_comma and parser.parse_optional_keyword(name) is not None:
                parser.parse_punctuation("=")
                variable.set(state, TensorShardingPerValueAttr(parse_sharding_list(parser)))
                has_comma = parser.parse_optional_punctuation(",") is not None

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the parameters that are there."""
        stage = self.stage.get(op)
        if isinstance(stage, IntegerAttr):
            printer.print_string(f", stage={stage.value.data}")
        for name, variable in (("in_shardings", self.in_shardings), ("out_shardings", self.out_shardings)):
            shardings = variable.get(op)
            if isinstance(shardings, TensorShardingPerValueAttr):
                printer.print_string(f", {name}={sharding_list_text(shardings.data)}")


@irdl_custom_directive
class CarriedTypes(CustomDirective):
    """`tensor<8xf32>, tensor<i32>`: the types of a loop's results, which are those of its operands."""

    operands: TypeDirective
    results: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the types."""
        types = tuple(parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type))
        self.operands.set(state, types)
        self.results.set(state, types)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the types."""
        state.print_whitespace(printer)
        printer.print_list(self.results.get(op), printer.print_attribute)


@irdl_custom_directive
class ReductionInBrackets(CustomDirective):
    """`<add>`: a reduction, printed even if it is the default."""

    reduction: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the reduction."""
        self.reduction.set(state, ReductionAttr(ReductionAttr.parse_parameter(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the reduction, directly after the operation's name."""
        reduction = self.reduction.get(op)
        assert isinstance(reduction, ReductionAttr)
        reduction.print_parameter(printer)
        state.should_emit_space = True
