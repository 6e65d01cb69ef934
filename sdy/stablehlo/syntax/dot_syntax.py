"""Custom directives of dot products."""

from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from sdy.stablehlo.attributes.dot_algorithm import DotAlgorithmAttr
from sdy.stablehlo.attributes.operation_attributes import DotDimensionNumbers, DotDimensionNumbersAttr
from sdy.stablehlo.attributes.precision import parse_precision, precision_text
from sdy.stablehlo.attributes.struct_attribute import dims_text, parse_dims


@irdl_custom_directive
class DotDimensions(CustomDirective):
    """`batching_dims = [0] x [0], contracting_dims = [2] x [1]`; empty batching dimensions are omitted."""

    dimension_numbers: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse both pairs of lists."""
        lhs_batching, rhs_batching = (), ()
        if parser.parse_optional_keyword("batching_dims") is not None:
            lhs_batching, rhs_batching = self._parse_pair(parser)
            parser.parse_punctuation(",")
        parser.parse_keyword("contracting_dims")
        lhs_contracting, rhs_contracting = self._parse_pair(parser)
        numbers = DotDimensionNumbers(lhs_batching, rhs_batching, lhs_contracting, rhs_contracting)
        self.dimension_numbers.set(state, DotDimensionNumbersAttr.of(numbers))

    @staticmethod
    def _parse_pair(parser: Parser) -> tuple[tuple[int, ...], tuple[int, ...]]:
        parser.parse_punctuation("=")
        lhs = parse_dims(parser)
        parser.parse_keyword("x")
        return lhs, parse_dims(parser)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print both pairs of lists."""
        attribute = self.dimension_numbers.get(op)
        assert isinstance(attribute, DotDimensionNumbersAttr)
        numbers = attribute.data
        state.print_whitespace(printer)
        if numbers.lhs_batching_dimensions or numbers.rhs_batching_dimensions:
            lhs, rhs = numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions
            printer.print_string(f"batching_dims = {dims_text(lhs)} x {dims_text(rhs)}, ")
        lhs, rhs = numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions
        printer.print_string(f"contracting_dims = {dims_text(lhs)} x {dims_text(rhs)}")


@irdl_custom_directive
class OptionalPrecision(CustomDirective):
    """Optional `, precision = [DEFAULT, HIGH]`."""

    precision_config: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the precisions if there is a comma."""
        if parser.parse_optional_punctuation(",") is not None:
            self.precision_config.set(state, parse_precision(parser))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the precisions if the operation has any."""
        config = self.precision_config.get(op)
        if config is not None:
            printer.print_string(f", {precision_text(config)}")


@irdl_custom_directive
class OptionalPrecisionAndAlgorithm(CustomDirective):
    """Optional `, precision = [...]`, then optional `, algorithm = <...>`."""

    precision_config: AttributeVariable
    algorithm: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the parts that are present."""
        if parser.parse_optional_punctuation(",") is None:
            return
        if parser.parse_optional_keyword("algorithm") is None:
            self.precision_config.set(state, parse_precision(parser))
            if parser.parse_optional_punctuation(",") is None:
                return
            parser.parse_keyword("algorithm")
        parser.parse_punctuation("=")
        self.algorithm.set(state, DotAlgorithmAttr(DotAlgorithmAttr.parse_parameter(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the parts that the operation has."""
        config, algorithm = self.precision_config.get(op), self.algorithm.get(op)
        if config is not None:
            printer.print_string(f", {precision_text(config)}")
        if algorithm is not None:
            assert isinstance(algorithm, DotAlgorithmAttr)
            printer.print_string(", algorithm = ")
            algorithm.print_parameter(printer)
