"""The window of a convolution: `stride = [1, 1], pad = [[0, 0], [1, 1]], rhs_dilate = [2, 1], reverse = [true, 0]`."""

from collections.abc import Callable
from typing import NamedTuple

from xdsl.dialects.builtin import DenseArrayBase, DenseIntElementsAttr, DenseIntOrFPElementsAttr, TensorType, i1, i64
from xdsl.ir import Attribute
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

from sdy.parse_errors import parse_error
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.attributes.struct_attribute import dims_text, parse_dims


class WindowKey(NamedTuple):
    """A key of the window: its property, parser and printer."""

    name: str
    parse: Callable[[Parser], Attribute]
    text: Callable[[Attribute], str]


def _parse_array(parser: Parser) -> Attribute:
    return i64_array(*parse_dims(parser))


def _array_text(array: Attribute) -> str:
    assert isinstance(array, DenseArrayBase)
    return dims_text(array.get_values())


def _parse_pair(parser: Parser) -> tuple[int, ...]:
    pair = parse_dims(parser)
    if len(pair) != 2:
        raise parse_error(parser, f"Expected array with 2 elements, got {len(pair)} elements instead")
    return pair


def _parse_padding(parser: Parser) -> DenseIntElementsAttr:
    pairs = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_pair(parser))
    return DenseIntElementsAttr.from_list(TensorType(i64, [len(pairs), 2]), [size for pair in pairs for size in pair])


def _padding_text(padding: Attribute) -> str:
    assert isinstance(padding, DenseIntOrFPElementsAttr)
    sizes = padding.get_values()
    return f"[{', '.join(f'[{low}, {high}]' for low, high in zip(sizes[::2], sizes[1::2], strict=True))}]"


def _parse_reversal(parser: Parser) -> Attribute:
    return DenseArrayBase.from_list(i1, [flag != 0 for flag in parse_dims(parser)])


def _reversal_text(reversal: Attribute) -> str:
    assert isinstance(reversal, DenseArrayBase)
    return f"[{', '.join('true' if flag else 'false' for flag in reversal.get_values())}]"


WINDOW_KEYS: dict[str, WindowKey] = {
    "stride": WindowKey("window_strides", _parse_array, _array_text),
    "pad": WindowKey("padding", _parse_padding, _padding_text),
    "lhs_dilate": WindowKey("lhs_dilation", _parse_array, _array_text),
    "rhs_dilate": WindowKey("rhs_dilation", _parse_array, _array_text),
    "reverse": WindowKey("window_reversal", _parse_reversal, _reversal_text),
}


@irdl_custom_directive
class WindowAttributes(CustomDirective):
    """The window of a convolution, `stride = [1, 1], pad = [[0, 0], [1, 1]], lhs_dilate = ..., reverse = ...`."""

    window_strides: AttributeVariable
    padding: AttributeVariable
    lhs_dilation: AttributeVariable
    rhs_dilation: AttributeVariable
    window_reversal: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse `key = value` pairs in any order."""
        while (word := parser.parse_optional_identifier()) is not None:
            key = WINDOW_KEYS.get(word)
            if key is None or key.name in state.properties:
                raise parse_error(parser, f"Unexpected keyword {word}")
            parser.parse_punctuation("=")
            state.properties[key.name] = key.parse(parser)
            if parser.parse_optional_punctuation(",") is None:
                break

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the keys of the operation's properties."""
        present = ((word, key, op.properties.get(key.name)) for word, key in WINDOW_KEYS.items())
        texts = (f"{word} = {key.text(value)}" for word, key, value in present if value is not None)
        printer.print_string(", ".join(texts))
        state.last_was_punctuation = True
        state.should_emit_space = False
