"""Convolution and its dimension numbers, `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.

Each list is a tensor's dimensions in order: `b` the batch, `f` the features, `i` and `o` the kernel's input and output
features, and a number that spatial dimension.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    I64,
    ArrayAttr,
    DenseArrayBase,
    DenseIntElementsAttr,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    TensorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Data
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
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
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes import BOOL_ARRAY, I64_ARRAY, i64_array
from sdy.stablehlo.definition import define
from sdy.stablehlo.dimension_checks import verify_dims, verify_positive
from sdy.stablehlo.enums import PrecisionAttr
from sdy.stablehlo.shape_checks import tensor_type
from sdy.stablehlo.struct_attribute import dims_text, parse_dims, parse_struct


@dataclass(frozen=True)
class ConvDimensionNumbers:
    """Which dimension of input, kernel and output is what; `spatial` ones are listed in order."""

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
    def tensors(self) -> tuple[tuple[int, ...], ...]:
        """The dimensions of input, kernel and output, each the two that are not spatial and then the spatial ones."""
        kernel = (self.kernel_input_feature_dimension, self.kernel_output_feature_dimension)
        return (
            (self.input_batch_dimension, self.input_feature_dimension, *self.input_spatial_dimensions),
            (*kernel, *self.kernel_spatial_dimensions),
            (self.output_batch_dimension, self.output_feature_dimension, *self.output_spatial_dimensions),
        )

    def __str__(self) -> str:
        return "".join(
            (
                _tensor_text(
                    "bf", self.input_batch_dimension, self.input_feature_dimension, self.input_spatial_dimensions
                ),
                "x",
                _tensor_text(
                    "io",
                    self.kernel_input_feature_dimension,
                    self.kernel_output_feature_dimension,
                    self.kernel_spatial_dimensions,
                ),
                "->",
                _tensor_text(
                    "bf", self.output_batch_dimension, self.output_feature_dimension, self.output_spatial_dimensions
                ),
            )
        )


def _tensor_text(letters: str, first: int, second: int, spatial: Sequence[int]) -> str:
    symbols = {first: letters[0], second: letters[1]} | {dim: str(i) for i, dim in enumerate(spatial)}
    return f"[{', '.join(symbols[dim] for dim in sorted(symbols))}]"


class _TensorDimensions(NamedTuple):
    first: int
    second: int
    spatial: tuple[int, ...]


def _parse_tensor(parser: AttrParser, letters: str) -> _TensorDimensions:
    places: dict[str, int] = {}

    def parse_symbol() -> None:
        start = parser.pos
        number = parser.parse_optional_integer(allow_boolean=False)
        symbol = parser.parse_identifier() if number is None else str(number)
        if number is None and symbol not in letters:
            parser.raise_error(f"Unexpected dimension {symbol}, expecting {', '.join(letters)}", start, parser.pos)
        if symbol in places:
            parser.raise_error(f"Duplicate entries for dimension {symbol}", start, parser.pos)
        places[symbol] = len(places)

    start = parser.pos
    parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse_symbol)
    expected = [*letters, *(str(i) for i in range(len(places) - len(letters)))]
    missing = [symbol for symbol in expected if symbol not in places]
    if missing:
        parser.raise_error(f"Expected dimensions {', '.join(missing)} not specified", start, parser.pos)
    first, second, *spatial = (places[symbol] for symbol in expected)
    return _TensorDimensions(first, second, tuple(spatial))


def parse_conv_dimensions(parser: AttrParser) -> ConvDimensionNumbers:
    """Read `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""
    input_ = _parse_tensor(parser, "bf")
    parser.parse_keyword("x")
    kernel = _parse_tensor(parser, "io")
    parser.parse_punctuation("->")
    return ConvDimensionNumbers(*input_, *kernel, *_parse_tensor(parser, "bf"))


@irdl_attr_definition
class ConvDimensionNumbersAttr(Data[ConvDimensionNumbers]):
    """`#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`."""

    name = "stablehlo.conv"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ConvDimensionNumbers:
        """Read `<...>`, or `<raw ...>` with each number by its name."""
        with parser.in_angle_brackets():
            if parser.parse_optional_keyword("raw") is not None:
                return parse_struct(parser, ConvDimensionNumbers, parser.Delimiter.NONE)
            return parse_conv_dimensions(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Write `<...>`."""
        printer.print_string(f"<{self.data}>")


@irdl_custom_directive
class ConvolutionDimensions(CustomDirective):
    """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""

    dimension_numbers: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read the three lists."""
        self.dimension_numbers.set(state, ConvDimensionNumbersAttr(parse_conv_dimensions(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the three lists."""
        assert isinstance(op, ConvolutionOp)
        state.print_whitespace(printer)
        printer.print_string(str(op.dimension_numbers.data))


class WindowKey(NamedTuple):
    """How one key of `window = {...}` is read and written."""

    parse: Callable[[Parser], Attribute]
    text: Callable[[Attribute], str]


def _array_text(array: Attribute) -> str:
    assert isinstance(array, DenseArrayBase)
    return dims_text(array.get_values())


def _parse_padding(parser: Parser) -> DenseIntElementsAttr:
    pairs = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_dims(parser))
    if any(len(pair) != 2 for pair in pairs):
        parser.raise_error("Expected array with 2 elements")
    return DenseIntElementsAttr.from_list(TensorType(i64, [len(pairs), 2]), [size for pair in pairs for size in pair])


def _padding_text(padding: Attribute) -> str:
    assert isinstance(padding, DenseIntOrFPElementsAttr)
    sizes = [int(size) for size in padding.get_values()]
    return f"[{', '.join(dims_text(pair) for pair in zip(sizes[::2], sizes[1::2], strict=True))}]"


def _parse_reversal(parser: Parser) -> Attribute:
    flags = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    return DenseArrayBase.from_list(i1, [flag != 0 for flag in flags])


def _reversal_text(reversal: Attribute) -> str:
    assert isinstance(reversal, DenseArrayBase)
    return f"[{', '.join('true' if flag else 'false' for flag in reversal.get_values())}]"


def _parse_array(parser: Parser) -> Attribute:
    return i64_array(*parse_dims(parser))


_I64_KEY = WindowKey(_parse_array, _array_text)

WINDOW_KEYS: dict[str, tuple[str, WindowKey]] = {
    "stride": ("window_strides", _I64_KEY),
    "pad": ("padding", WindowKey(_parse_padding, _padding_text)),
    "lhs_dilate": ("lhs_dilation", _I64_KEY),
    "rhs_dilate": ("rhs_dilation", _I64_KEY),
    "reverse": ("window_reversal", WindowKey(_parse_reversal, _reversal_text)),
}


@irdl_custom_directive
class WindowAttributes(CustomDirective):
    """`stride = [1, 1], pad = [[0, 0], [1, 1]], lhs_dilate = ..., rhs_dilate = ..., reverse = ...`."""

    window_strides: AttributeVariable
    padding: AttributeVariable
    lhs_dilation: AttributeVariable
    rhs_dilation: AttributeVariable
    window_reversal: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read the keys there are, in any order."""
        while (key := parser.parse_optional_keyword_in(WINDOW_KEYS)) is not None:
            name, syntax = WINDOW_KEYS[key]
            if name in state.properties:
                parser.raise_error(f"Unexpected keyword {key}")
            parser.parse_punctuation("=")
            state.properties[name] = syntax.parse(parser)
            if parser.parse_optional_punctuation(",") is None:
                break

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the keys of the properties that the operation has."""
        present = ((key, syntax, op.properties.get(name)) for key, (name, syntax) in WINDOW_KEYS.items())
        texts = (f"{key} = {syntax.text(value)}" for key, syntax, value in present if value is not None)
        printer.print_string(", ".join(texts))
        state.last_was_punctuation = True
        state.should_emit_space = False


@define
class ConvolutionOp(IRDLOperation):
    """The dot product of the kernel (rhs) with each window of the input (lhs)."""

    name = "stablehlo.convolution"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    window_strides = opt_prop_def(I64_ARRAY)
    padding = opt_prop_def(DenseIntOrFPElementsAttr)
    lhs_dilation = opt_prop_def(I64_ARRAY)
    rhs_dilation = opt_prop_def(I64_ARRAY)
    window_reversal = opt_prop_def(BOOL_ARRAY)
    dimension_numbers = prop_def(ConvDimensionNumbersAttr)
    feature_group_count = prop_def(IntegerAttr[I64])
    batch_group_count = prop_def(IntegerAttr[I64])
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    result = result_def(TensorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "`(` operands `)` `dim_numbers` `=` custom<ConvolutionDimensions>($dimension_numbers) `,`"
        " `window` `=` `{` custom<WindowAttributes>($window_strides, $padding, $lhs_dilation, $rhs_dilation,"
        " $window_reversal) `}` attr-dict `:` functional-type(operands, results)"
    )
    custom_directives = (ConvolutionDimensions, WindowAttributes)

    def verify_(self) -> None:
        """Refuse dimension numbers outside of the tensors, and groups that do not divide batch and features."""
        numbers = self.dimension_numbers.data
        lhs, rhs, result = (tensor_type(value).get_shape() for value in (self.lhs, self.rhs, self.result))
        for name, shape, dims in zip(("input", "kernel", "output"), (lhs, rhs, result), numbers.tensors, strict=True):
            verify_dims(f"{name} dimension-numbers", dims, len(shape))
            if len(dims) != len(lhs):
                raise VerifyException(f"expects {name} dimension-numbers to be {len(lhs)}, got: {list(dims)}")
        batch_groups, feature_groups = self.batch_group_count.value.data, self.feature_group_count.value.data
        verify_positive("batch_group_count", batch_groups)
        verify_positive("feature_group_count", feature_groups)
        if batch_groups > 1 and feature_groups > 1:
            raise VerifyException(
                "expects batch_group_count and feature_group_count not to be both greater than 1. Got "
                f"{batch_groups} and {feature_groups} resp."
            )
        for name, size, groups in (
            ("input batch dimension", lhs[numbers.input_batch_dimension], batch_groups),
            ("input feature dimension", lhs[numbers.input_feature_dimension], feature_groups),
            ("output feature dimension", rhs[numbers.kernel_output_feature_dimension], batch_groups * feature_groups),
        ):
            if size != DYNAMIC_INDEX and size % groups:
                raise VerifyException(f"expects {name} ({size}) to be divisible by the number of groups, {groups}.")


@define
class DynamicConvOp(IRDLOperation):
    """A convolution whose padding is known only at run time."""

    name = "stablehlo.dynamic_conv"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    padding = operand_def(TensorType)
    window_strides = opt_prop_def(I64_ARRAY)
    lhs_dilation = opt_prop_def(I64_ARRAY)
    rhs_dilation = opt_prop_def(I64_ARRAY)
    window_reversal = opt_prop_def(BOOL_ARRAY)
    dimension_numbers = prop_def(ConvDimensionNumbersAttr)
    feature_group_count = prop_def(IntegerAttr[I64])
    batch_group_count = prop_def(IntegerAttr[I64])
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    result = result_def(TensorType)
    traits = traits_def(Pure())
