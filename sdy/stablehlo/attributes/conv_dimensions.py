"""The dimension numbers of a convolution, `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.

Each list names a tensor's dimensions in order: `b` is the batch, `f` the features, `i` and `o` the kernel's input and
output features, and a number a spatial dimension.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from xdsl.ir import Data
from xdsl.irdl import IRDLOperation, irdl_attr_definition
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer

from sdy.parse_errors import parse_error
from sdy.stablehlo.attributes.dimension_numbers import parse_dimension_numbers

_LISTED_MISSING = 10
"""The most missing dimensions listed in an error."""


@dataclass(frozen=True)
class ConvDimensionNumbers:
    """The roles of the dimensions of input, kernel and output."""

    input_batch_dimension: int = 0
    input_feature_dimension: int = 0
    input_spatial_dimensions: tuple[int, ...] = ()
    kernel_input_feature_dimension: int = 0
    kernel_output_feature_dimension: int = 0
    kernel_spatial_dimensions: tuple[int, ...] = ()
    output_batch_dimension: int = 0
    output_feature_dimension: int = 0
    output_spatial_dimensions: tuple[int, ...] = ()

    @property
    def input(self) -> tuple[int, ...]:
        """The dimensions of the input: batch, features, spatial ones."""
        return self.input_batch_dimension, self.input_feature_dimension, *self.input_spatial_dimensions

    @property
    def kernel(self) -> tuple[int, ...]:
        """The dimensions of the kernel: input features, output features, spatial ones."""
        return (
            self.kernel_input_feature_dimension,
            self.kernel_output_feature_dimension,
            *self.kernel_spatial_dimensions,
        )

    @property
    def output(self) -> tuple[int, ...]:
        """The dimensions of the output: batch, features, spatial ones."""
        return self.output_batch_dimension, self.output_feature_dimension, *self.output_spatial_dimensions

    def __str__(self) -> str:
        return f"{_list_text('bf', self.input)}x{_list_text('io', self.kernel)}->{_list_text('bf', self.output)}"


def _list_text(letters: str, dims: Sequence[int]) -> str:
    symbols = dict(zip(dims, (*letters, *map(str, range(len(dims)))), strict=False))
    return f"[{', '.join(symbols[dim] for dim in sorted(symbols))}]"


def _parse_list(parser: AttrParser, letters: str) -> tuple[int, int, tuple[int, ...]]:
    """Parse a list in any order; return the positions of both letters and of the spatial dimensions."""
    positions: dict[str, int] = {}
    spatial: dict[int, int] = {}
    parser.parse_punctuation("[")
    while True:
        start, position = parser.pos, len(positions) + len(spatial)
        number = parser.parse_optional_integer()
        if number is None:
            positions[_parse_letter(parser, [letter for letter in letters if letter not in positions])] = position
        elif number < 0:
            raise parse_error(parser, f"Unexpected dimension {number}", start)
        elif spatial.setdefault(number, position) != position:
            raise parse_error(parser, f"Duplicate entries for spatial dimension {number}", start)
        if parser.parse_optional_punctuation(",") is None:
            break
    missing_letters = [letter for letter in letters if letter not in positions]
    if missing_letters:
        raise parse_error(parser, f"Expected dimensions {', '.join(missing_letters)} not specified")
    parser.parse_punctuation("]")
    missing = (str(number) for number in range(max(spatial, default=-1)) if number not in spatial)
    if listed := ", ".join(islice(missing, _LISTED_MISSING)):
        raise parse_error(parser, f"Expected spatial dimensions {listed} not specified")
    first, second = (positions[letter] for letter in letters)
    return first, second, tuple(spatial[number] for number in range(len(spatial)))


def _parse_letter(parser: AttrParser, allowed: Sequence[str]) -> str:
    start = parser.pos
    word = parser.parse_identifier()
    if len(word) != 1 or not allowed:
        raise parse_error(parser, f"Unexpected keyword {word}", start)
    if word not in allowed:
        raise parse_error(parser, f"Unexpected dimension {word}, expecting {', '.join(allowed)}", start)
    return word


def parse_conv_dimensions(parser: AttrParser) -> ConvDimensionNumbers:
    """Parse `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""
    input_ = _parse_list(parser, "bf")
    parser.parse_keyword("x")
    kernel = _parse_list(parser, "io")
    parser.parse_punctuation("->")
    return ConvDimensionNumbers(*input_, *kernel, *_parse_list(parser, "bf"))


@irdl_attr_definition
class ConvDimensionNumbersAttr(Data[ConvDimensionNumbers]):
    """The dimension numbers of a convolution, `#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`."""

    name = "stablehlo.conv"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ConvDimensionNumbers:
        """Parse `<...>`, or `<raw ...>` with named fields."""
        parser.parse_punctuation("<")
        if parser.parse_optional_keyword("raw") is not None:
            return parse_dimension_numbers(parser, ConvDimensionNumbers, "dot dimension numbers")
        numbers = parse_conv_dimensions(parser)
        parser.parse_punctuation(">")
        return numbers

    def print_parameter(self, printer: Printer) -> None:
        """Print `<...>`."""
        printer.print_string(f"<{self.data}>")


@irdl_custom_directive
class ConvolutionDimensions(CustomDirective):
    """The dimension numbers in a convolution's assembly format, `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""

    dimension_numbers: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the three lists."""
        self.dimension_numbers.set(state, ConvDimensionNumbersAttr(parse_conv_dimensions(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the three lists."""
        attribute = self.dimension_numbers.get(op)
        assert isinstance(attribute, ConvDimensionNumbersAttr)
        state.print_whitespace(printer)
        printer.print_string(str(attribute.data))
